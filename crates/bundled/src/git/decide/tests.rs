use super::*;

fn record(execution: i64, work: i64, mode: Mode, state: State) -> Record {
    Record { state, ..Record::sample(execution, work, mode) }
}

fn run(number: i64) -> ExecutionId {
    ExecutionId::from_number(number)
}

const UNTIL: State = State::Until { at: 9 };

#[test]
fn begin_goes_on_with_what_the_attempt_has() {
    for mode in [Mode::Shared, Mode::Fresh, Mode::Worktree] {
        let of = |state| begin(mode, run(1), WorkId::from_number(1), &[record(1, 1, mode, state)]);
        assert_eq!(of(State::Making), Begin::Repair);
        for state in [State::Held, State::ForWork, UNTIL] {
            assert_eq!(of(state), Begin::Again);
        }
    }
}

#[test]
fn begin_waits_only_for_the_worktree_of_its_own_work() {
    let at = |mode, records: &[Record]| begin(mode, run(2), WorkId::from_number(1), records);
    for state in [State::Making, State::Held] {
        assert_eq!(at(Mode::Worktree, &[record(1, 1, Mode::Worktree, state)]), Begin::Busy(run(1)));
        assert_eq!(at(Mode::Worktree, &[record(1, 7, Mode::Worktree, state)]), Begin::Anew);
        assert_eq!(at(Mode::Fresh, &[record(1, 1, Mode::Fresh, state)]), Begin::Anew);
        assert_eq!(at(Mode::Shared, &[record(1, 1, Mode::Shared, state)]), Begin::Anew);
    }
    for state in [State::ForWork, UNTIL] {
        assert_eq!(at(Mode::Worktree, &[record(1, 1, Mode::Worktree, state)]), Begin::Anew);
    }
}

#[test]
fn sharer_is_another_run_in_the_same_main_checkout() {
    let checkout = Record::sample(1, 1, Mode::Shared).checkout;
    let with = |record: Record| sharer(&checkout, run(2), &[record]);
    assert_eq!(with(record(1, 1, Mode::Shared, State::Held)), Some(run(1)));
    assert_eq!(with(record(2, 1, Mode::Shared, State::Held)), None);
    assert_eq!(with(record(1, 1, Mode::Fresh, State::Held)), None);
    let elsewhere = Record { checkout: "/elsewhere".into(), ..record(1, 1, Mode::Shared, State::Held) };
    assert_eq!(with(elsewhere), None);
}

#[track_caller]
fn stays(checkout: &Checkout, word: &str) {
    let Forward::Stay(why) = forward(checkout) else { panic!("{checkout:?}") };
    assert!(why.contains(word), "{why}");
}

#[test]
fn forward_goes_only_where_nothing_is_in_the_way() {
    let main =
        Checkout { branch: Some("main".into()), wanted: "main".into(), behind: 2, ..Checkout::default() };
    assert_eq!(forward(&main), Forward::Go);
    assert_eq!(
        forward(&Checkout { behind: 0, dirty: true, shared: true, ..main.clone() }),
        Forward::UpToDate
    );
    stays(&Checkout { shared: true, ..main.clone() }, "another execution is using the checkout");
    stays(&Checkout { dirty: true, ..main.clone() }, "not committed");
    stays(&Checkout { ahead: 1, ..main.clone() }, "1 commit(s) that the remote has not");
    stays(&Checkout { branch: Some("topic".into()), ..main.clone() }, "on branch topic");
    stays(&Checkout { branch: None, ..main.clone() }, "no branch");
    stays(&Checkout { not_fetched: Some("no route".into()), behind: 0, ..main }, "no route");
}

#[test]
fn give_back_is_by_mode_and_end() {
    let at = Timestamp::from_micros(5);
    let end = |well, work_ended| WorkspaceEnded { well, work_ended, at };
    let of = |mode, state, ended| give_back(&record(1, 1, mode, state), ended);
    for ended in [end(true, true), end(false, false)] {
        assert_eq!(of(Mode::Shared, State::Held, ended), GiveBack::Forget);
        assert_eq!(of(Mode::Fresh, State::Making, ended), GiveBack::Discard);
        assert_eq!(of(Mode::Worktree, State::Making, ended), GiveBack::Discard);
        assert_eq!(of(Mode::Fresh, UNTIL, ended), GiveBack::Until(Timestamp::from_micros(9)));
    }
    assert_eq!(of(Mode::Fresh, State::Held, end(true, false)), GiveBack::Remove);
    let kept = at.after(Duration::from_secs(Record::sample(1, 1, Mode::Fresh).retain_failed_seconds));
    assert_eq!(of(Mode::Fresh, State::Held, end(false, true)), GiveBack::Until(kept));
    assert_eq!(of(Mode::Worktree, State::Held, end(true, false)), GiveBack::ForWork);
    assert_eq!(of(Mode::Worktree, State::Held, end(false, true)), GiveBack::Remove);
    assert_eq!(of(Mode::Worktree, State::ForWork, end(true, true)), GiveBack::Remove);
}

#[test]
fn keep_names_everything_that_would_be_lost() {
    assert_eq!(keep(Tree::default()), None);
    let dirty = keep(Tree { dirty: 2, unreachable: 0 }).unwrap();
    assert!(dirty.contains("2 file(s)") && !dirty.contains("commit(s)"), "{dirty}");
    let both = keep(Tree { dirty: 1, unreachable: 3 }).unwrap();
    assert!(both.contains("1 file(s)") && both.contains("3 commit(s)"), "{both}");
}
