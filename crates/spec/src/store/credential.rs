//! What holds credentials reads back, is replaced under its name, and comes due in order.

use domain::credential::{CredentialHold, CredentialWait};
use domain::id::ExecutionId;
use domain::text::CredentialName;

use super::StoreDriver;
use super::sample::{read, second, work, write};

fn hold(name: &str, until: i64) -> CredentialHold {
    CredentialHold {
        credential: CredentialName::known(name),
        until: second(until),
        since: second(5),
        reported_by: ExecutionId::from_number(until),
    }
}

/// A hold of a credential is replaced under its name, comes due in order, and is removed once.
pub async fn credential_holds_come_due_in_order(driver: &impl StoreDriver) {
    let store = driver.store();
    assert_eq!(read(store, |tx| tx.next_credential_due()).await, None);
    let (early, late, replaced) = (hold("b", 10), hold("a", 20), hold("c", 15));
    let written = [early.clone(), late.clone(), hold("c", 99), replaced.clone()];
    write(store, move |tx| written.iter().try_for_each(|hold| tx.put_credential_hold(hold))).await;
    let name = CredentialName::known("c");
    assert_eq!(read(store, move |tx| tx.credential_hold(&name)).await, Some(replaced.clone()));
    let other = CredentialName::known("d");
    assert_eq!(read(store, move |tx| tx.credential_hold(&other)).await, None);
    assert_eq!(read(store, |tx| tx.next_credential_due()).await, Some(second(10)));
    let due = read(store, |tx| {
        Ok((tx.due_credential_holds(second(15), 9)?, tx.due_credential_holds(second(15), 1)?))
    });
    assert_eq!(
        due.await,
        (vec![early.clone(), replaced.clone()], vec![early.clone()]),
        "until is inclusive here"
    );
    assert_eq!(read(store, |tx| tx.due_credential_holds(second(9), 9)).await, []);
    let after = CredentialName::known("a");
    let listed =
        read(store, move |tx| Ok((tx.credential_holds(None, 2)?, tx.credential_holds(Some(&after), 9)?)));
    assert_eq!(listed.await, (vec![late, early.clone()], vec![early.clone(), replaced]));
    for was_there in [true, false] {
        let name = early.credential.clone();
        assert_eq!(write(store, move |tx| tx.delete_credential_hold(&name)).await, was_there);
    }
}

/// A start waits since the first time that it is noted; it ends for the credential and the attempts that it is ended
/// for, and a Work's other attempts keep theirs.
pub async fn credential_waits_end_once_by_attempt(driver: &impl StoreDriver) {
    let store = driver.store();
    let mut owner = work(1);
    owner.attempts = 2;
    let wait = |attempt, turn, name: &str, since| CredentialWait {
        work: owner.id,
        attempt,
        turn,
        credential: CredentialName::known(name),
        since: second(since),
        until: None,
    };
    let (old, first, resumed, next) =
        (wait(1, 1, "a", 1), wait(2, 1, "a", 2), wait(2, 2, "b", 3), wait(3, 1, "a", 4));
    let mut again = first.clone();
    again.since = second(9);
    let written = [old.clone(), resumed.clone(), first.clone(), next.clone(), again];
    write(store, move |tx| written.iter().try_for_each(|wait| tx.put_credential_wait(wait))).await;
    let id = owner.id;
    let of = async |attempt| read(store, move |tx| tx.credential_waits(id, attempt, 9)).await;
    assert_eq!(of(2).await, [first.clone(), resumed.clone()]);
    write(store, move |tx| tx.end_credential_wait(&owner, &CredentialName::known("a"), second(7))).await;
    let ended = |wait: CredentialWait| CredentialWait { until: Some(second(7)), ..wait };
    assert_eq!(of(1).await, [old], "an earlier attempt's is history");
    assert_eq!(of(2).await, [ended(first), resumed]);
    assert_eq!(of(3).await, [ended(next)]);
    assert!(of(4).await.is_empty());
}
