//! Small records: one under each key of a namespace.

use domain::store::KvRow;

use super::StoreDriver;
use super::sample::{read, second, write};

fn row(key: &str, body: &str, at: i64) -> KvRow {
    KvRow { key: key.to_owned(), body: body.as_bytes().to_vec(), at: second(at) }
}

/// A record is replaced by the next one under its key, and namespaces do not meet.
pub async fn record_is_replaced_under_its_key(driver: &impl StoreDriver) {
    let store = driver.store();
    write(store, |tx| {
        tx.put_kv("a", &row("k", "{}", 1))?;
        tx.put_kv("b", &row("k", "[]", 2))?;
        tx.put_kv("a", &row("k", "{\"n\":1}", 3))
    })
    .await;
    let (one, other, none) =
        read(store, |snapshot| Ok((snapshot.kv("a", "k")?, snapshot.kv("b", "k")?, snapshot.kv("a", "K")?)))
            .await;
    assert_eq!(one, Some(row("k", "{\"n\":1}", 3)));
    assert_eq!(other, Some(row("k", "[]", 2)));
    assert_eq!(none, None);
    assert!(write(store, |tx| tx.delete_kv("a", "k")).await);
    assert!(!write(store, |tx| tx.delete_kv("a", "k")).await);
    assert_eq!(read(store, |snapshot| snapshot.kv("b", "k")).await, Some(row("k", "[]", 2)));
}

/// Records are listed in the order of their keys' bytes.
pub async fn records_are_listed_by_their_keys(driver: &impl StoreDriver) {
    let store = driver.store();
    write(store, |tx| {
        for key in ["b", "Z", "a/2", "a/10", "é"] {
            tx.put_kv("n", &row(key, "1", 1))?;
        }
        tx.put_kv("m", &row("a", "1", 1))
    })
    .await;
    let keys = |rows: Vec<KvRow>| rows.into_iter().map(|row| row.key).collect::<Vec<_>>();
    let all = read(store, |snapshot| snapshot.kv_after("n", "", 9)).await;
    assert_eq!(keys(all), ["Z", "a/10", "a/2", "b", "é"]);
    let some = read(store, |snapshot| snapshot.kv_after("n", "a/10", 2)).await;
    assert_eq!(keys(some), ["a/2", "b"]);
}
