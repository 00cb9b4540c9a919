//! Subscriptions: found by the key they watch and by their Work, and ended once.

use domain::alias::Subscription;
use domain::id::{Sequence, WaitId, WorkId};
use domain::store::{StoreError, Tx};
use domain::text::{EventType, ScopeName, SubscriptionId};

use super::StoreDriver;
use super::sample::{accept, conflicts, event, key, main_scope, read, second, write};

/// The subscription `id` of a Work to the key `watched`, which has observed up to `after`.
fn subscription(id: &str, work: i64, watched: &str, after: i64) -> Subscription {
    Subscription {
        id: SubscriptionId::known(id),
        work: WorkId::from_number(work),
        wait: Some(WaitId::from_number(work + 20)),
        scope: main_scope(),
        watched: key(watched),
        types: vec![EventType::known("build.finished"), EventType::known("build.failed")],
        own: key("mine"),
        becomes: EventType::known("test.alias"),
        after: Sequence::from_number(after),
        installed_at: second(1),
        ended_at: None,
    }
}

fn install(tx: &mut dyn Tx) -> Result<(), StoreError> {
    for one in [
        subscription("a", 1, "pr/1", 5),
        subscription("b", 2, "pr/1", 3),
        subscription("c", 2, "pr/2", 1),
        subscription("d", 3, "pr/1", 9),
    ] {
        tx.insert_subscription(&one)?;
    }
    Ok(())
}

fn ids(subscriptions: &[Subscription]) -> Vec<&str> {
    subscriptions.iter().map(|one| one.id.as_str()).collect()
}

/// Every field of a subscription comes back as it was written, while it goes on and ended.
pub async fn subscription_reads_back_as_written(driver: &impl StoreDriver) {
    let store = driver.store();
    assert!(!read(store, |snapshot| snapshot.is_subscribed()).await);
    let bare = Subscription {
        wait: None,
        scope: ScopeName::known("team/eng"),
        types: Vec::new(),
        ended_at: Some(second(9)),
        ..subscription("tracker/b é", 2, "pr/2", 0)
    };
    for sample in [bare, subscription("a", 1, "pr/1", 5)] {
        let (id, written) = (sample.id.clone(), sample.clone());
        write(store, move |tx| tx.insert_subscription(&written)).await;
        assert_eq!(read(store, move |snapshot| snapshot.subscription(&id)).await, Some(sample));
    }
    let absent = SubscriptionId::known("z");
    assert_eq!(read(store, move |snapshot| snapshot.subscription(&absent)).await, None);
    assert!(read(store, |snapshot| snapshot.is_subscribed()).await);
}

/// An id stands for one subscription, and one that has ended is not written again.
pub async fn subscription_id_is_used_once(driver: &impl StoreDriver) {
    let store = driver.store();
    write(store, install).await;
    conflicts(store, |tx| tx.insert_subscription(&subscription("a", 7, "pr/7", 0))).await;
    let moved = subscription("a", 1, "pr/1", 8);
    let ended = Subscription { ended_at: Some(second(9)), ..moved.clone() };
    write(store, move |tx| {
        tx.update_subscription(&moved)?;
        tx.update_subscription(&ended)
    })
    .await;
    conflicts(store, |tx| tx.update_subscription(&subscription("a", 1, "pr/1", 9))).await;
    conflicts(store, |tx| tx.update_subscription(&subscription("z", 1, "pr/1", 9))).await;
    conflicts(store, |tx| tx.insert_subscription(&subscription("a", 7, "pr/7", 0))).await;
    let kept = read(store, |snapshot| snapshot.subscription(&SubscriptionId::known("a"))).await;
    let expected = Subscription { ended_at: Some(second(9)), ..subscription("a", 1, "pr/1", 8) };
    assert_eq!(kept, Some(expected));
}

/// A key leads to those that watch it and have not observed a sequence, exclusive, furthest behind first.
pub async fn subscriptions_on_a_key_that_are_behind_are_listed(driver: &impl StoreDriver) {
    let store = driver.store();
    write(store, install).await;
    let on = async |watched: &str, sequence, limit| {
        let (watched, sequence) = (key(watched), Sequence::from_number(sequence));
        read(store, move |snapshot| snapshot.subscriptions_on(&watched, sequence, limit)).await
    };
    assert_eq!(on("pr/2", 9, 9).await, [subscription("c", 2, "pr/2", 1)]);
    assert_eq!(ids(&on("pr/1", 9, 9).await), ["b", "a"]);
    assert_eq!(ids(&on("pr/1", 10, 2).await), ["b", "a"]);
    assert_eq!(ids(&on("pr/1", 5, 9).await), ["b"]);
    assert!(on("pr/3", 99, 9).await.is_empty());
    write(store, |tx| tx.update_subscription(&subscription("b", 2, "pr/1", 9))).await;
    assert_eq!(ids(&on("pr/1", 9, 9).await), ["a"]);
}

/// The end of a Work ends what it subscribed to, and nothing else.
pub async fn subscriptions_end_with_their_work(driver: &impl StoreDriver) {
    let store = driver.store();
    write(store, install).await;
    let of = async |work| {
        read(store, move |snapshot| snapshot.subscriptions_of(WorkId::from_number(work), 9)).await
    };
    assert_eq!(ids(&of(2).await), ["b", "c"]);
    assert_eq!(write(store, |tx| tx.end_subscriptions_of(WorkId::from_number(2), second(7))).await, 2);
    assert_eq!(write(store, |tx| tx.end_subscriptions_of(WorkId::from_number(2), second(8))).await, 0);
    assert!(of(2).await.is_empty());
    let ended = read(store, |snapshot| snapshot.subscription(&SubscriptionId::known("b"))).await;
    assert_eq!(ended.and_then(|one| one.ended_at), Some(second(7)));
    let left =
        read(store, |snapshot| snapshot.subscriptions_on(&key("pr/1"), Sequence::from_number(99), 9)).await;
    assert_eq!(ids(&left), ["a", "d"]);
}

/// Events of any key follow a sequence in the order of acceptance.
pub async fn events_follow_a_sequence(driver: &impl StoreDriver) {
    let store = driver.store();
    write(store, |tx| {
        for number in 1..=3 {
            accept(tx, &event(number))?;
        }
        Ok(())
    })
    .await;
    let all = read(store, |snapshot| snapshot.events_after(Sequence::ZERO, 9)).await;
    let numbers: Vec<_> = all.iter().map(|event| event.id.number()).collect();
    assert_eq!(numbers, [1, 2, 3]);
    let first = all[0].sequence;
    let rest = read(store, move |snapshot| snapshot.events_after(first, 1)).await;
    assert_eq!(rest, all[1..2]);
}
