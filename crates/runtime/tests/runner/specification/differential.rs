//! Random commands on the reference and on the runtime, with everything compared after each. The same, let run long,
//! is `cargo xtask simulate`.

use spec::differential::Ran;

use super::program::{Program, Speed};

/// Programs that once told the two apart, one in a line.
const SEEDS: &str = include_str!("seeds.txt");
/// Fresh programs are those of the seeds below this; of those the first few are run with care.
const SWIFT: u64 = 60;
const CAREFUL: u64 = 10;

#[track_caller]
fn hold(programs: impl IntoIterator<Item = Program>) -> Ran {
    let mut ran = Ran::default();
    for program in programs {
        if let Err(failure) = program.hold(&mut ran) {
            panic!("{}: add this line to seeds.txt\n{}\n{}", program.name(), failure.line, failure.told);
        }
    }
    ran
}

#[test]
fn programs_that_once_failed_hold() {
    hold(Program::read(SEEDS, Speed::Careful).unwrap());
}

/// The same programs that `cargo xtask simulate` begins with: the first few with every body of a transaction run
/// twice, and more of them as fast as it goes.
#[test]
fn the_reference_and_the_runtime_agree_about_random_commands() {
    let ran = hold((0..CAREFUL).map(|seed| Program::of(seed, Speed::Careful)));
    assert!(ran.steps > 20 * CAREFUL, "{ran:?}");
}

#[test]
fn the_reference_and_the_runtime_agree_about_more_random_commands() {
    let ran = hold((CAREFUL..SWIFT).map(|seed| Program::of(seed, Speed::Swift)));
    assert!(ran.steps > 20 * (SWIFT - CAREFUL), "{ran:?}");
    // Every command goes every way it can, or the programs have become too tame to tell anything.
    for went in [
        ("accept", "accepted"),
        ("accept", "original"),
        ("accept", "refused"),
        ("route", "died, something done"),
        ("launch", "done"),
        ("report waiting", "done"),
        ("report failed", "done"),
        ("fire", "done"),
        ("interrupt", "accepted"),
        ("dispatch accepted", "done"),
        ("translate", "done"),
        ("retry", "accepted"),
        ("recover unknown", "attempts"),
    ] {
        assert!(ran.coverage.contains_key(&went), "nothing went like {went:?}: {:#?}", ran.coverage);
    }
}
