//! The reference of the metrics, from what a daemon answers to `GET /metrics`.

use super::{MARK, add, cell, unreadable};
use crate::error::Error;

const INTRODUCTION: &str = "\
`GET /metrics` answers these in the OpenMetrics form that Prometheus reads. Like all of the API but
`/healthz` it wants the token. Counters begin at zero with each start of the daemon, those with labels when there
is something to count; gauges are read at that moment.
";

/// The page.
pub(super) fn page(metrics: &str) -> Result<String, Error> {
    let mut text = format!(
        "# Metrics\n\n{MARK}\n\n{INTRODUCTION}\n| metric | type | labels | meaning |\n| --- | --- | --- | --- |\n"
    );
    let mut families = 0;
    for line in metrics.lines() {
        let Some((family, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' ')) else {
            continue;
        };
        let help = metrics.lines().find_map(|line| line.strip_prefix(&format!("# HELP {family} ")));
        let help = help.ok_or_else(|| unreadable("/metrics", format!("{family} has no help")))?;
        let name = if kind == "counter" { format!("{family}_total") } else { family.to_owned() };
        add(&mut text, format_args!("| `{name}` | {kind} | {} | {} |\n", labels(metrics, &name), cell(help)));
        families += 1;
    }
    if families == 0 {
        return Err(unreadable("/metrics", "it has no metric"));
    }
    Ok(text)
}

/// The names of the labels that a metric's values have.
fn labels(metrics: &str, name: &str) -> String {
    let values = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('{')?.split_once('}'));
    let labels = values.map(|(labels, _value)| labels).unwrap_or_default();
    // Texts stand between quotes, so the even parts are names.
    let names: Vec<String> = labels
        .split('"')
        .step_by(2)
        .map(|part| part.trim_matches([',', '=', ' ']))
        .filter(|name| !name.is_empty())
        .map(|name| format!("`{name}`"))
        .collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_names_counters_as_they_are_queried() {
        let metrics = "# HELP a_b Bs.\n# TYPE a_b counter\na_b_total{x=\"1,y\",z=\"\"} 1\n\
                       # HELP c Cs.\n# TYPE c gauge\nc 2\n";
        let page = page(metrics).unwrap();
        let rows = "| `a_b_total` | counter | `x`, `z` | Bs. |\n| `c` | gauge |  | Cs. |\n";
        assert!(page.ends_with(rows), "{page}");
    }

    #[test]
    fn page_refuses_a_metric_without_help_and_an_empty_answer() {
        assert!(page("# TYPE a gauge\n").is_err());
        assert!(page("# EOF\n").is_err());
    }
}
