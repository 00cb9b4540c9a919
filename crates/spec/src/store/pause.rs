//! Pauses of scopes: noted once, taken back once, and told with what is in force.

use domain::id::Generation;
use domain::pause::Pause;
use domain::store::InForce;
use domain::text::ScopeName;

use super::StoreDriver;
use super::config::generation;
use super::sample::{main_scope, read, second, write};

/// A pause is noted once: the earlier one stands, and keeps its time.
pub async fn a_pause_is_noted_once_and_taken_back_once(driver: &impl StoreDriver) {
    let store = driver.store();
    let pause = |scope: ScopeName, at| Pause { scope, since: second(at) };
    let other = ScopeName::known("team/eng");
    for (scope, at, noted) in [(main_scope(), 1, true), (other.clone(), 2, true), (main_scope(), 3, false)] {
        assert_eq!(write(store, move |tx| tx.insert_pause(&pause(scope.clone(), at))).await, noted);
    }
    let pauses = read(store, |snapshot| snapshot.pauses()).await;
    assert_eq!(pauses, [pause(main_scope(), 1), pause(other, 2)]);
    for taken_back in [true, false] {
        assert_eq!(write(store, |tx| tx.delete_pause(&main_scope())).await, taken_back);
    }
    assert_eq!(read(store, |snapshot| snapshot.pauses()).await.len(), 1);
}

/// What is in force is the newest generation, and whether anything is paused.
pub async fn what_is_in_force_tells_of_pauses(driver: &impl StoreDriver) {
    let store = driver.store();
    let found = read(store, |snapshot| snapshot.in_force()).await;
    assert_eq!(found, InForce { generation: None, any_pause: false });
    write(store, |tx| {
        tx.insert_generation(&generation(9))?;
        tx.insert_generation(&generation(10))?;
        tx.insert_pause(&Pause { scope: main_scope(), since: second(1) })
    })
    .await;
    let found = read(store, |snapshot| snapshot.in_force()).await;
    assert_eq!(found, InForce { generation: Some(Generation::from_number(10)), any_pause: true });
}
