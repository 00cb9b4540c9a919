//! Random commands on the reference and on the runtime, with everything compared after each.

use spec::differential::{Coverage, Numbers, compare, shrink};
use spec::reference::{Order, Reference};

use super::production::{Engine, Production};

/// Programs that once told the two apart, one in a line.
const SEEDS: &str = include_str!("seeds.txt");
/// How many fresh programs are run, and how long each is.
const PROGRAMS: u64 = 10;
const STEPS: usize = 120;

fn run(program: &[u32], coverage: &mut Coverage) -> Result<(), String> {
    let mut reference = Reference::new(Order::Listed);
    let mut runtime = Production::new(Engine::Memory);
    compare(&mut reference, &mut runtime, program, coverage).map_err(|difference| {
        let (commands, first) = (difference.commands.join("\n"), difference.first.join("\n"));
        let second = difference.second.join("\n");
        format!("{commands}\nthe reference says\n{first}\nthe runtime says\n{second}")
    })
}

/// Runs a program; when it fails, it is cut down first.
fn hold(name: &str, program: Vec<u32>, coverage: &mut Coverage) {
    if run(&program, coverage).is_ok() {
        return;
    }
    let shortest = shrink(program, |shorter| run(shorter, &mut Coverage::new()).is_err());
    let line: Vec<String> = shortest.iter().map(ToString::to_string).collect();
    let told = run(&shortest, &mut Coverage::new()).expect_err("it was kept because it fails");
    panic!("{name}: add this line to seeds.txt\n{}\n{told}", line.join(" "));
}

#[test]
fn the_reference_and_the_runtime_agree_about_random_commands() {
    let mut coverage = Coverage::new();
    for (at, line) in SEEDS.lines().enumerate().filter(|(_at, line)| !line.starts_with('#')) {
        let program = line.split_whitespace().map(|number| number.parse().unwrap()).collect();
        hold(&format!("line {}", at + 1), program, &mut coverage);
    }
    for seed in 0..PROGRAMS {
        hold(&format!("seed {seed}"), Numbers::of(seed).take(STEPS).collect(), &mut coverage);
    }
    for (command, word) in [
        ("Accept", "accepted"),
        ("Accept", "original"),
        ("Accept", "refused"),
        ("Route", "done"),
        ("Open", "done"),
        ("Claim", "attempts"),
        ("Claim", "none"),
        ("Launch", "done"),
        ("Report", "done"),
        ("Report", "refused"),
        ("Renew", "attempts"),
        ("Renew", "none"),
        ("Recover", "attempts"),
        ("Recover", "none"),
        ("Advance", "done"),
        ("Fire", "done"),
        ("Cancel", "done"),
        ("Cancel", "refused"),
        ("Retry", "accepted"),
        ("Retry", "original"),
        ("Retry", "refused"),
        ("Reopen", "done"),
    ] {
        let known = coverage.get(&(command.to_owned(), word.to_owned()));
        assert!(known.is_some(), "nothing was ever {word} by {command}: {coverage:?}");
    }
}
