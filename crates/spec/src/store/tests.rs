/// Every file of cases.
const FILES: [&str; 23] = [
    include_str!("access.rs"),
    include_str!("alias.rs"),
    include_str!("budget.rs"),
    include_str!("config.rs"),
    include_str!("credential.rs"),
    include_str!("durability.rs"),
    include_str!("event.rs"),
    include_str!("execution.rs"),
    include_str!("feed.rs"),
    include_str!("intent.rs"),
    include_str!("kv.rs"),
    include_str!("listing.rs"),
    include_str!("ownership.rs"),
    include_str!("pause.rs"),
    include_str!("retention.rs"),
    include_str!("route.rs"),
    include_str!("start.rs"),
    include_str!("succession.rs"),
    include_str!("timer.rs"),
    include_str!("toolbelt.rs"),
    include_str!("transaction.rs"),
    include_str!("wait.rs"),
    include_str!("work.rs"),
];

macro_rules! names {
    ($($case:ident)*) => {
        [$(stringify!($case)),*].to_vec()
    };
}

/// The names of the cases in the sources whose driver is of the kind `bound`.
fn written(bound: &str) -> Vec<&'static str> {
    let lines = FILES.iter().flat_map(|file| file.lines());
    let functions = lines.filter_map(|line| line.strip_prefix("pub async fn "));
    let cases = functions.filter_map(|rest| rest.split_once('('));
    let mut names: Vec<_> =
        cases.filter(|(_name, rest)| rest.contains(bound)).map(|(name, _)| name).collect();
    names.sort_unstable();
    names
}

#[track_caller]
fn check(mut listed: Vec<&'static str>, bound: &str) {
    listed.sort_unstable();
    assert_eq!(listed, written(bound), "a case that is not listed never runs");
}

#[test]
fn every_case_is_listed() {
    check(for_each_store_case!(names), "driver: &impl StoreDriver");
    check(for_each_durability_case!(names), "driver: &mut impl DurableDriver");
}
