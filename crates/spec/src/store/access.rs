//! Tokens: found by digest, and gone when revoked.

use domain::store::{StoreError, Token};

use super::StoreDriver;
use super::sample::{read, second, write};

fn token(number: i64) -> Token {
    Token {
        digest: format!("{number:064x}"),
        label: format!("laptop “{number}” 🦀"),
        created_at: second(100 - number),
        expires_at: (number % 2 == 0).then_some(second(number)),
    }
}

/// A token is found by its whole digest. Whether it is still valid is for whoever asks.
pub async fn token_is_found_by_its_digest(driver: &impl StoreDriver) {
    let store = driver.store();
    write(store, |tx| (1..=3).try_for_each(|number| tx.insert_token(&token(number)))).await;
    for number in 1..=3 {
        let found = read(store, move |snapshot| snapshot.token(&token(number).digest)).await;
        assert_eq!(found, Some(token(number)));
    }
    let (part, oldest_first, two) = read(store, |snapshot| {
        Ok((snapshot.token(&token(1).digest[1..])?, snapshot.tokens(9)?, snapshot.tokens(2)?))
    })
    .await;
    assert_eq!(part, None);
    assert_eq!(oldest_first, [token(3), token(2), token(1)]);
    assert_eq!(two, [token(3), token(2)]);
}

/// A revoked token is gone at the commit. Revoking it again finds nothing.
pub async fn revoked_token_is_gone(driver: &impl StoreDriver) {
    let store = driver.store();
    write(store, |tx| (1..=2).try_for_each(|number| tx.insert_token(&token(number)))).await;
    assert!(write(store, |tx| tx.delete_token(&token(1).digest)).await);
    assert!(!write(store, |tx| tx.delete_token(&token(1).digest)).await);
    let (gone, left) =
        read(store, |snapshot| Ok((snapshot.token(&token(1).digest)?, snapshot.tokens(9)?))).await;
    assert_eq!(gone, None);
    assert_eq!(left, [token(2)]);
}

/// A digest is one token's.
pub async fn digest_belongs_to_one_token(driver: &impl StoreDriver) {
    let store = driver.store();
    write(store, |tx| tx.insert_token(&token(1))).await;
    let again: Result<(), StoreError> =
        store.transact("case", |tx| tx.insert_token(&Token { label: "other".to_owned(), ..token(1) })).await;
    again.expect_err("the digest is taken");
    assert_eq!(read(store, |snapshot| snapshot.tokens(9)).await, [token(1)]);
}
