//! Tokens and sessions: found by what they show, and gone when revoked.

use domain::id::SessionId;
use domain::store::{Session, StoreError, Token};

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

fn session(number: i64) -> Session {
    Session {
        id: SessionId::from_number(number),
        digest: format!("{:064x}", 1000 - number),
        label: format!("Firefox on “{number}” 🦀"),
        created_at: second(number),
        last_seen_at: second(10 + number),
        expires_at: second(20 + number),
    }
}

/// Sessions are listed oldest first, each as it was written. Whether one is still valid is for whoever asks.
pub async fn session_reads_back_as_written(driver: &impl StoreDriver) {
    let store = driver.store();
    assert_eq!(read(store, |snapshot| snapshot.sessions(9)).await, []);
    write(store, |tx| [2, 3, 1].into_iter().try_for_each(|number| tx.insert_session(&session(number)))).await;
    let (all, two) = read(store, |snapshot| Ok((snapshot.sessions(9)?, snapshot.sessions(2)?))).await;
    assert_eq!(all, [session(1), session(2), session(3)]);
    assert_eq!(two, [session(1), session(2)]);
}

/// A use writes when a session was seen and when it expires, and nothing else of it. One that has ended is not
/// brought back by a use.
pub async fn session_is_seen_and_keeps_the_rest(driver: &impl StoreDriver) {
    let store = driver.store();
    write(store, |tx| (1..=2).try_for_each(|number| tx.insert_session(&session(number)))).await;
    let seen = Session {
        last_seen_at: second(50),
        expires_at: second(60),
        digest: "other".to_owned(),
        label: "other".to_owned(),
        created_at: second(49),
        ..session(1)
    };
    assert!(write(store, move |tx| tx.update_session(&seen)).await);
    assert!(!write(store, |tx| tx.update_session(&session(3))).await);
    let expected = Session { last_seen_at: second(50), expires_at: second(60), ..session(1) };
    assert_eq!(read(store, |snapshot| snapshot.sessions(9)).await, [expected, session(2)]);
}

/// An ended session is gone at the commit. Ending it again finds nothing.
pub async fn ended_session_is_gone(driver: &impl StoreDriver) {
    let store = driver.store();
    write(store, |tx| (1..=2).try_for_each(|number| tx.insert_session(&session(number)))).await;
    assert!(write(store, |tx| tx.delete_session(session(1).id)).await);
    assert!(!write(store, |tx| tx.delete_session(session(1).id)).await);
    assert_eq!(read(store, |snapshot| snapshot.sessions(9)).await, [session(2)]);
}

/// A digest is one session's, and so is an id.
pub async fn session_digest_belongs_to_one_session(driver: &impl StoreDriver) {
    let store = driver.store();
    write(store, |tx| tx.insert_session(&session(1))).await;
    for taken in
        [Session { id: session(2).id, ..session(1) }, Session { digest: session(2).digest, ..session(1) }]
    {
        let again: Result<(), StoreError> = store.transact("case", move |tx| tx.insert_session(&taken)).await;
        again.expect_err("the digest or the id is taken");
    }
    assert_eq!(read(store, |snapshot| snapshot.sessions(9)).await, [session(1)]);
}
