//! Applied configurations: numbered, never changed, the newest in force.

use domain::id::Generation;
use domain::store::GenerationRow;

use super::StoreDriver;
use super::sample::{conflicts, read, second, write};

pub(super) fn generation(number: i64) -> GenerationRow {
    GenerationRow {
        number: Generation::from_number(number),
        body: format!("# {number} “é” 🦀\n[scope.main]\n\tsecret = \"env:TOKEN\" # it's $1 ?1 %\n"),
        digest: format!("{number:064x}"),
        applied_at: second(number),
    }
}

/// Before the first apply there is no configuration.
pub async fn no_generation_is_in_force_at_first(driver: &impl StoreDriver) {
    let found = read(driver.store(), |snapshot| {
        Ok((
            snapshot.current_generation()?,
            snapshot.current_generation_number()?,
            snapshot.generation(Generation::FIRST)?,
        ))
    })
    .await;
    assert_eq!(found, (None, None, None));
}

/// The newest generation is in force, and older ones stay readable as they were.
pub async fn newest_generation_is_in_force(driver: &impl StoreDriver) {
    let store = driver.store();
    // Numbers are compared as numbers: 10 follows 9.
    for number in [1, 2, 9, 10] {
        write(store, move |tx| tx.insert_generation(&generation(number))).await;
        let (current, number_alone) = read(store, |snapshot| {
            Ok((snapshot.current_generation()?, snapshot.current_generation_number()?))
        })
        .await;
        assert_eq!(current, Some(generation(number)));
        assert_eq!(number_alone, Some(Generation::from_number(number)));
    }
    let old = read(store, |snapshot| snapshot.generation(Generation::from_number(2))).await;
    assert_eq!(old, Some(generation(2)));
}

/// A generation's number is taken once: two applies cannot both be the next one.
pub async fn generation_number_is_taken_once(driver: &impl StoreDriver) {
    let store = driver.store();
    write(store, |tx| tx.insert_generation(&generation(1))).await;
    conflicts(store, |tx| {
        tx.insert_generation(&GenerationRow { body: "changed".to_owned(), ..generation(1) })
    })
    .await;
    let kept = read(store, |snapshot| snapshot.current_generation()).await;
    assert_eq!(kept, Some(generation(1)));
}
