//! Where open Works stand: how many there are in each state, since when the oldest is there, and who moves it next.

use domain::id::WorkId;
use domain::time::Timestamp;
use domain::work::{Queue, Work, WorkState};

use super::Checks;
use crate::view::{count, time};

/// Where an open Work stands, in the order in which they are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Running,
    Runnable,
    Held,
    Blocked,
    Waiting,
    Idle,
}

impl Place {
    const ALL: [Self; 6] =
        [Self::Running, Self::Runnable, Self::Held, Self::Blocked, Self::Waiting, Self::Idle];

    /// Where a Work stands; none when it has ended.
    fn of(work: &Work) -> Option<Self> {
        match (work.state, &work.queue) {
            (WorkState::Ready | WorkState::Waiting { .. }, _) if work.hold.is_some() => Some(Self::Held),
            (WorkState::Ready, Queue::Runnable) => Some(Self::Runnable),
            (WorkState::Ready, Queue::Blocked(_)) => Some(Self::Blocked),
            (WorkState::Ready, Queue::Idle) => Some(Self::Idle),
            (WorkState::Running { .. }, _) => Some(Self::Running),
            (WorkState::Waiting { .. }, _) => Some(Self::Waiting),
            (WorkState::Completed | WorkState::Failed | WorkState::Cancelled, _) => None,
        }
    }

    /// How it is told: the Works, and who moves them next.
    const fn words(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Running => ("Work runs", "Works run", "a run moves each"),
            Self::Runnable => {
                ("Work is about to start", "Works are about to start", "the daemon starts each")
            }
            Self::Held => {
                ("Work is held", "Works are held", "an operator lets each go on, or the end of what holds it")
            }
            Self::Blocked => {
                ("Work is blocked", "Works are blocked", "each starts when what blocks it is over")
            }
            Self::Waiting => ("Work waits", "Works wait", "an Event or a time ends that"),
            Self::Idle => ("Work rests", "Works rest", "the next input of each starts it"),
        }
    }
}

/// What was counted.
#[derive(Debug, Default)]
pub(super) struct States([Option<Tally>; Place::ALL.len()]);

#[derive(Debug, Clone, Copy)]
struct Tally {
    works: i64,
    since: Timestamp,
    oldest: WorkId,
}

impl States {
    /// Counts a Work, which stands where it does since then.
    pub(super) fn add(&mut self, work: &Work, since: Timestamp) {
        let Some(place) = Place::of(work) else { return };
        let index = Place::ALL.iter().position(|known| *known == place).expect("every place is listed");
        let tally = self.0[index].get_or_insert(Tally { works: 0, since, oldest: work.id });
        tally.works += 1;
        if (since, work.id) < (tally.since, tally.oldest) {
            (tally.since, tally.oldest) = (since, work.id);
        }
    }

    /// A line for each place where a Work stands.
    pub(super) fn report(&self, checks: &mut Checks) {
        for (place, tally) in Place::ALL.iter().zip(self.0) {
            let Some(Tally { works, since, oldest }) = tally else { continue };
            let (one, more, mover) = place.words();
            let works = count(works, one, more);
            let since = time::absolute(&since.to_string());
            checks.add("states", "ok", format!("{works}, {oldest} since {since}: {mover}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::capacity::Blocker;
    use domain::id::WorkId;
    use domain::text::{ScopeName, WorkKind};
    use domain::time::Timestamp;
    use domain::work::{Hold, HoldReason, Lifecycle, Queue, Work, WorkState};

    use super::{Checks, States};

    #[test]
    fn every_state_says_how_many_since_when_and_who_moves_them() {
        let at = |minute: i64| Timestamp::from_micros(minute * 60_000_000);
        let work = |number: i64| {
            let (scope, kind) = (ScopeName::known("main"), WorkKind::known("test"));
            Work::create(WorkId::from_number(number), scope, kind, Lifecycle::Standing, at(number))
        };
        let blocked = Queue::Blocked(Blocker::ScopeFull(ScopeName::known("main")));
        let hold = Hold { because: HoldReason::Budget, reason: "used up".to_owned(), since: at(0) };
        let run = domain::id::ExecutionId::from_number(1);
        let wait = domain::id::WaitId::from_number(1);
        let works = [
            Work { queue: Queue::Idle, ..work(1) },
            Work { queue: Queue::Runnable, ..work(2) },
            Work { queue: blocked.clone(), ..work(4) },
            Work { queue: blocked.clone(), ..work(3) },
            Work { queue: blocked, hold: Some(hold), ..work(5) },
            Work { state: WorkState::Running { execution: run }, ..work(6) },
            Work { state: WorkState::Waiting { wait }, ..work(7) },
            Work { state: WorkState::Completed, ..work(8) },
        ];
        let mut states = States::default();
        for work in &works {
            states.add(work, work.created_at);
        }
        let mut checks = Checks(Vec::new());
        states.report(&mut checks);
        let told: Vec<&str> = checks.0.iter().map(|check| check.sentence.as_str()).collect();
        insta::assert_snapshot!(told.join("\n"));
    }
}
