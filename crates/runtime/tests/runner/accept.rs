//! Acceptance: durable once, whoever sends it and however often.

use domain::delivery::{AcceptRefusal, Acceptance, Authority, Delivery};
use domain::text::{EventType, ScopeName};
use runtime::AcceptError;
use serde_json::json;

use super::world::World;

#[tokio::test]
async fn a_duplicate_returns_the_original_and_runs_nothing_again() {
    let mut world = World::new().await;
    let first = world.accept(world.delivery("d-1", Some("k"), &json!({}))).await.unwrap();
    world.run().await;
    let again = world.accept(world.delivery("d-1", Some("k"), &json!({"keys": ["other"]}))).await.unwrap();
    world.run().await;

    assert_eq!(
        again,
        Acceptance::Duplicate { event: first.event(), sequence: first.sequence() },
        "the original answers"
    );
    assert_eq!(world.executor.runs(), 1);
    assert!(world.owner("other").await.is_none(), "the second payload was never looked at");
    let sequence = first.sequence();
    let redelivery =
        world.runtime.store().read("test", move |tx| tx.redelivery(sequence)).await.unwrap().unwrap();
    assert_eq!(redelivery.count, 1, "the duplicate is a visible fact");
}

#[tokio::test]
async fn concurrent_duplicates_make_one_event_and_one_run() {
    let mut world = World::new().await;
    let deliveries: Vec<Delivery> = (0..20).map(|_| world.delivery("same", Some("k"), &json!({}))).collect();
    let mut answers = Vec::new();
    for delivery in deliveries {
        answers.push(world.accept(delivery).await.unwrap());
    }
    world.run().await;
    let new = answers.iter().filter(|answer| matches!(answer, Acceptance::New { .. })).count();
    assert_eq!(new, 1);
    assert!(answers.iter().all(|answer| answer.event() == answers[0].event()));
    assert_eq!(world.executor.runs(), 1);
}

#[tokio::test]
async fn what_is_refused_leaves_nothing() {
    let world = World::new().await;
    let good = world.delivery("d-1", Some("k"), &json!({}));

    let elsewhere = Delivery { scope: ScopeName::known("nowhere"), ..good.clone() };
    assert!(matches!(world.accept(elsewhere).await, Err(AcceptError::UnknownScope(_))));

    let core = Delivery { event_type: EventType::known("core.retry.due"), ..good.clone() };
    for authority in [Authority::Operator, Authority::Ingress] {
        let answer = world.runtime.accept(core.clone(), authority).await;
        assert!(matches!(answer, Err(AcceptError::Refused(AcceptRefusal::ReservedType))));
    }
    assert!(world.events("core.retry.due").await.is_empty());
    assert!(world.events("test.happened").await.is_empty());

    // The id was not used up by the refusals.
    assert!(matches!(world.accept(good).await, Ok(Acceptance::New { .. })));
}

#[tokio::test]
async fn an_identity_that_contradicts_is_refused_and_not_resolved() {
    let mut world = World::new().await;
    world.deliver("d-1", "one").await;
    world.deliver("d-2", "two").await;
    world.run().await;
    let one = world.owner("one").await.unwrap();

    let mut both = world.delivery("d-3", Some("two"), &json!({}));
    both.work = Some(one.id);
    let answer = world.accept(both).await;
    assert!(matches!(answer, Err(AcceptError::Refused(AcceptRefusal::KeyMismatch(id))) if id == one.id));

    let mut unowned = world.delivery("d-4", Some("three"), &json!({}));
    unowned.work = Some(one.id);
    assert!(matches!(world.accept(unowned).await, Err(AcceptError::Refused(AcceptRefusal::KeyMismatch(_)))));

    let mut right = world.delivery("d-5", Some("one"), &json!({}));
    right.work = Some(one.id);
    let event = world.accept(right).await.unwrap().event();
    world.run().await;
    assert_eq!(world.checkpoint(event).await.unwrap().work, Some(one.id));
}
