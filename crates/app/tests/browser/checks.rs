//! What holds for every page: its structure, its names, its contrast, its width, its order.

use serde_json::Value;

use super::page::{Page, TAB};

/// The part of the checks that asks the page itself.
const CHECKS: &str = include_str!("checks.js");
/// Roles that a person can do something with, as Chromium calls them.
const CONTROLS: &[&str] = &[
    "button",
    "checkbox",
    "combobox",
    "DisclosureTriangle",
    "link",
    "listbox",
    "menuitem",
    "radio",
    "searchbox",
    "slider",
    "spinbutton",
    "switch",
    "tab",
    "textbox",
];
/// More stops of the tab key than any page has.
const STOPS_MAX: usize = 400;

/// Everything that is wrong with the page as it is shown.
pub(super) fn problems(page: &Page) -> Vec<String> {
    let mut problems: Vec<String> =
        serde_json::from_value(page.script(CHECKS, &[])).expect("the checks return a list of texts");
    let nodes = page.accessibility_nodes();
    let controls = nodes.iter().filter(|node| CONTROLS.contains(&role(node)) && node["ignored"] != true);
    problems.extend(
        controls
            .filter(|node| name(node).is_empty())
            .map(|node| format!("a {} has no name: {}", role(node), node["backendDOMNodeId"])),
    );
    problems
}

fn role(node: &Value) -> &str {
    node["role"]["value"].as_str().unwrap_or_default()
}

fn name(node: &Value) -> &str {
    node["name"]["value"].as_str().unwrap_or_default().trim()
}

/// Walks through the page with the tab key and tells what a person who does so would miss: a first stop that
/// leads past the navigation, a ring at each stop, the order in which the page is read, every control.
pub(super) fn tab_problems(page: &Page) -> Vec<String> {
    let mut problems = Vec::new();
    page.script("document.activeElement?.blur(); window.scrollTo(0, 0); window.stops = []", &[]);
    for _ in 0..STOPS_MAX {
        page.press(TAB);
        let stop = page.script(&format!("{TAB_NAMES}{TAB_STOP}"), &[]);
        let is_through = stop.is_null();
        let found = if is_through { page.script(&format!("{TAB_NAMES}{TAB_END}"), &[]) } else { stop };
        let found: Vec<String> = serde_json::from_value(found).expect("a stop tells a list of texts");
        problems.extend(found);
        if is_through {
            return problems;
        }
    }
    problems.push(format!("the tab key is not through after {STOPS_MAX} stops"));
    problems
}

/// How a stop is called, so that it is known again in a part of the page that was replaced meanwhile.
const TAB_NAMES: &str = r"
    const nameOf = one => [one.localName, one.id, one.getAttribute('href') ?? '',
        (one.getAttribute('aria-label') ?? one.textContent).trim().slice(0, 40)].filter(Boolean).join(' ');
";

/// Null where the tab key has left the page or begins again; else what is wrong with the stop.
const TAB_STOP: &str = r"
    const stop = document.activeElement;
    const name = stop && nameOf(stop);
    if (!stop || stop === document.body || window.stops.some(({ one }) => one === stop)) return null;
    const problems = [];
    if (window.stops.length === 0 && !stop.matches('a[href=\'#main\']')) problems.push(name + ' is the first stop');
    const before = window.stops.at(-1)?.one;
    if (before?.isConnected && !(before.compareDocumentPosition(stop) & Node.DOCUMENT_POSITION_FOLLOWING)) {
        problems.push(name + ' comes after what follows it');
    }
    // A control that is hidden in its label shows its ring there.
    const ringed = [stop, stop.closest('label')].filter(Boolean).some(one => {
        const { outlineStyle, outlineWidth } = getComputedStyle(one);
        return outlineStyle !== 'none' && parseFloat(outlineWidth) >= 1;
    });
    if (!ringed) problems.push(name + ' shows no ring');
    const { top, bottom } = stop.getBoundingClientRect();
    if (bottom <= 0 || top >= innerHeight) problems.push(name + ' is out of sight');
    window.stops.push({ one: stop, name });
    return problems;
";

/// What the tab key has not come to.
const TAB_END: &str = r"
    const known = new Set(window.stops.map(({ name }) => name));
    const isOwed = one => one.checkVisibility({ visibilityProperty: true }) && !one.disabled
        && (one.type !== 'radio' || one.checked) && one.type !== 'hidden';
    return [...document.querySelectorAll('a[href], button, input, select, textarea, summary')]
        .filter(isOwed).map(nameOf).filter(name => !known.has(name))
        .map(name => name + ' is never reached');
";
