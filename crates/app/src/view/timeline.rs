//! The timeline as it is drawn: bars, bands and ticks, each at a share of the width.
//!
//! A share is kept in hundredths of a percent and written as a percentage: the picture has any width.

use std::time::Duration;

use domain::time::Timestamp;

use super::clock::Clock;
use super::downtime::Downtime;
use super::look::{self, Family};
use super::payload::spelled;
use super::run::line::name;
use super::wait::goal;
use super::{clip, count, time};
use crate::api::wire::{StretchBody, TimelineBody, TimelineRowBody, TimelineRunBody, WaitBody};

/// The whole width.
const WHOLE: i64 = 10_000;
/// The least width of a bar, so that a run of a second can be seen and pointed at.
const BAR_WIDTH_MIN: i64 = 50;
/// The last place where a mark has room before the edge.
const MARK_MAX: i64 = WHOLE - 180;
/// The most bars of a row. More are drawn together, as far apart as that takes.
const BARS_MAX: usize = 40;
/// The most dotted lines of a row.
const RESTS_MAX: usize = 40;
/// How far apart bars may be that are drawn together, tried from left to right.
const GAPS: [i64; 5] = [0, 25, 50, 100, WHOLE / 40];
/// Letters of a row's name.
const NAME_LETTERS: usize = 60;
/// Letters of what a Work waits for.
const GOAL_LETTERS: usize = 160;
/// How far apart two words below the picture have to be.
const WORDS_APART: i64 = 700;

/// A share of the width.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Share(i64);

impl std::fmt::Display for Share {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:02}%", self.0 / 100, self.0 % 100)
    }
}

/// The picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Timeline {
    pub(crate) rows: Vec<TimelineRow>,
    /// `and 3 more`.
    pub(crate) more: Option<String>,
    pub(crate) ticks: Vec<Tick>,
    pub(crate) bands: Vec<Band>,
    pub(crate) words: Vec<AxisWord>,
    /// The newest time without a daemon.
    pub(crate) downtime: Option<Downtime>,
    /// Whether only the last of very many runs are drawn.
    pub(crate) cut: bool,
    /// Families of the bars that are there, for the legend.
    pub(crate) families: Vec<Shown>,
}

/// A Work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TimelineRow {
    pub(crate) work: String,
    pub(crate) name: String,
    pub(crate) bars: Vec<Bar>,
    /// When it waited, or waits: nothing ran.
    pub(crate) rests: Vec<Rest>,
}

/// A time at which a run was parked, or a Wait that goes on, up to now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rest {
    pub(crate) x: Share,
    pub(crate) width: Share,
    pub(crate) end: Share,
    /// The page it leads to.
    pub(crate) path: String,
    /// `Parked since 14:02, for build.finished on key ci a`.
    pub(crate) label: String,
}

/// A run, or several that are too close together to be told apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bar {
    pub(crate) x: Share,
    pub(crate) width: Share,
    pub(crate) shown: Shown,
    /// Where its mark stands, for one that failed.
    pub(crate) mark: Option<Share>,
    /// The page it leads to.
    pub(crate) path: String,
    pub(crate) label: String,
}

/// How a bar is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Shown {
    Done,
    Run,
    Wait,
    Fail,
    Other,
}

impl Shown {
    /// Its style class.
    pub(crate) const fn class(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Run => "run",
            Self::Wait => "wait",
            Self::Fail => "fail",
            Self::Other => "idle",
        }
    }

    /// Its word in the legend.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Done => "Completed",
            Self::Run => "Running",
            Self::Wait => "Waiting",
            Self::Fail => "Failed",
            Self::Other => "Cancelled",
        }
    }

    /// Whether it goes on as a dotted line, while nothing runs.
    pub(crate) const fn is_dotted(self) -> bool {
        matches!(self, Self::Wait)
    }

    /// Whether it has a mark beside its color.
    pub(crate) const fn is_marked(self) -> bool {
        matches!(self, Self::Fail)
    }
}

/// A line through all rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tick {
    pub(crate) x: Share,
    pub(crate) is_midnight: bool,
}

/// A time without a daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Band {
    pub(crate) x: Share,
    pub(crate) width: Share,
    pub(crate) end: Share,
}

/// A word below the picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AxisWord {
    pub(crate) x: Share,
    pub(crate) text: String,
    pub(crate) class: &'static str,
}

/// The stretch of time that is drawn.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    from: i64,
    length: i64,
}

impl Stretch {
    fn share(self, at: i64) -> i64 {
        let within = i128::from(at.saturating_sub(self.from).clamp(0, self.length));
        i64::try_from(within * i128::from(WHOLE) / i128::from(self.length.max(1))).unwrap_or(WHOLE)
    }

    fn of(self, iso: &str) -> Option<i64> {
        Some(self.share(Timestamp::parse(iso).ok()?.as_micros()))
    }
}

impl Timeline {
    /// Draws what the interface said, with the first `rows_max` rows.
    pub(crate) fn new(body: &TimelineBody, clock: &Clock, rows_max: usize) -> Self {
        let micros = |iso: &str| Timestamp::parse(iso).map_or(0, Timestamp::as_micros);
        let from = micros(&body.from);
        let stretch = Stretch { from, length: micros(&body.until).saturating_sub(from).max(1) };
        let rows: Vec<TimelineRow> =
            body.rows.iter().take(rows_max).map(|row| drawn(row, stretch, clock)).collect();
        let more = body.rows.len().saturating_sub(rows_max) + body.more;
        let mut families: Vec<Shown> = rows.iter().flat_map(|row| &row.bars).map(|bar| bar.shown).collect();
        families.sort_unstable();
        families.dedup();
        let bands = bands(body, stretch);
        let (ticks, words) = axis(stretch, clock, &bands);
        Self {
            rows,
            more: i64::try_from(more).ok().filter(|more| *more > 0).map(|more| count(more, "Work", "Works")),
            ticks,
            bands,
            words,
            downtime: body.downtimes.first().and_then(|start| Downtime::new(start, clock)),
            cut: body.cut,
            families,
        }
    }
}

fn drawn(row: &TimelineRowBody, stretch: Stretch, clock: &Clock) -> TimelineRow {
    let mut runs: Vec<(i64, i64, &TimelineRunBody)> =
        row.runs.iter().flat_map(|run| turns(row, run, stretch)).collect();
    runs.sort_by_key(|(x, _width, run)| (*x, run.attempt));
    let bars = GAPS.iter().map(|gap| together(&runs, *gap)).find(|bars| bars.len() <= BARS_MAX);
    let bars = bars.unwrap_or_else(|| together(&runs, WHOLE));
    TimelineRow {
        work: row.work.clone(),
        name: clip::middle(&spelled(name(&row.keys, &row.trigger_type)), NAME_LETTERS),
        bars: bars.iter().map(|group| bar(row, group, clock)).collect(),
        rests: {
            let was = row.runs.iter().flat_map(|run| rested(run, stretch, clock));
            let now = row.wait.as_ref().and_then(|wait| rest(row, wait, stretch, clock));
            was.chain(now).take(RESTS_MAX).collect()
        },
    }
}

/// The bars of a run, as place and width: one for each turn that the picture shows.
fn turns<'r>(
    row: &TimelineRowBody,
    run: &'r TimelineRunBody,
    stretch: Stretch,
) -> Vec<(i64, i64, &'r TimelineRunBody)> {
    // What is parked runs no more since its Wait began.
    let parked = row.wait.as_ref().filter(|_wait| run.state == "parked").map(|wait| &wait.registered_at);
    let end = run.ended_at.as_ref().or(parked).map_or(Some(WHOLE), |at| stretch.of(at));
    let (Some(mut start), Some(end)) = (stretch.of(&run.started_at), end) else { return Vec::new() };
    let mut bars = Vec::new();
    let mut bar = |from: i64, until: i64| {
        let width = (until - from).max(BAR_WIDTH_MIN);
        // A bar at the right edge grows to the left.
        bars.push(((until - width).max(0).min(WHOLE - width), width, run));
    };
    for rest in &run.parked {
        let (Some(from), Some(until)) = (stretch.of(&rest.from), stretch.of(&rest.until)) else { continue };
        // A turn from before the picture begins is not in it.
        if from > 0 {
            bar(start, from);
        }
        start = until.min(end);
    }
    bar(start, end);
    bars
}

/// When a run was parked.
fn rested(run: &TimelineRunBody, stretch: Stretch, clock: &Clock) -> Vec<Rest> {
    let rest = |rest: &StretchBody| {
        let (x, end) = (stretch.of(&rest.from)?, stretch.of(&rest.until)?);
        let (from, until) = (clock.moment(&rest.from).at, clock.moment(&rest.until).at);
        (end > x).then(|| Rest {
            x: Share(x),
            width: Share(end - x),
            end: Share(end),
            path: format!("/runs/{}", run.id),
            label: format!("Attempt {} parked, {from} to {until}", run.attempt),
        })
    };
    run.parked.iter().filter_map(rest).collect()
}

fn rest(row: &TimelineRowBody, wait: &WaitBody, stretch: Stretch, clock: &Clock) -> Option<Rest> {
    let x = stretch.of(&wait.registered_at)?.min(WHOLE - BAR_WIDTH_MIN);
    let is_parked = row.runs.iter().any(|run| run.id == wait.run && run.state == "parked");
    let word = if is_parked { "Parked" } else { "Waiting" };
    let since = clock.moment(&wait.registered_at).at;
    let goal = clip::end(&spelled(&goal(wait)), GOAL_LETTERS).replace('`', "");
    Some(Rest {
        x: Share(x),
        width: Share(WHOLE - x),
        end: Share(WHOLE),
        path: format!("/work/{}", row.work),
        label: format!("{word} since {since}, {goal}"),
    })
}

/// Neighbors that are drawn as one.
#[derive(Debug)]
struct Group<'r> {
    x: i64,
    end: i64,
    shown: Shown,
    runs: Vec<&'r TimelineRunBody>,
}

/// Neighbors of one kind with at most `gap` between them, each as one. Without a gap, each run stands alone.
fn together<'r>(runs: &[(i64, i64, &'r TimelineRunBody)], gap: i64) -> Vec<Group<'r>> {
    let mut groups: Vec<Group<'r>> = Vec::new();
    for (x, width, run) in runs {
        let (end, shown) = (x + width, shown(&run.state));
        match groups.last_mut() {
            Some(last) if gap > 0 && last.shown == shown && *x <= last.end + gap => {
                last.end = last.end.max(end);
                last.runs.push(run);
            }
            Some(_) | None => groups.push(Group { x: *x, end, shown, runs: vec![run] }),
        }
    }
    groups
}

fn shown(state: &str) -> Shown {
    match look::state(state).family {
        Family::Run => Shown::Run,
        Family::Wait => Shown::Wait,
        Family::Done => Shown::Done,
        Family::Fail => Shown::Fail,
        Family::Need | Family::Idle | Family::Odd => Shown::Other,
    }
}

fn bar(row: &TimelineRowBody, group: &Group<'_>, clock: &Clock) -> Bar {
    let (path, label) = match group.runs.as_slice() {
        [one, rest @ ..] if rest.iter().all(|run| run.id == one.id) => {
            (format!("/runs/{}", one.id), one_label(one, clock))
        }
        several => (format!("/work/{}", row.work), several_label(several, group.shown, clock)),
    };
    Bar {
        x: Share(group.x),
        width: Share(group.end - group.x),
        shown: group.shown,
        mark: group.shown.is_marked().then_some(Share(group.end.min(MARK_MAX))),
        path,
        label,
    }
}

fn one_label(run: &TimelineRunBody, clock: &Clock) -> String {
    let word = look::state(&run.state).word;
    let started = clock.moment(&run.started_at);
    let Some(ended) = run.ended_at.as_deref() else {
        return format!("Attempt {} {word} since {}", run.attempt, started.at);
    };
    let took = time::between(Some(&run.started_at), Some(ended)).unwrap_or_default();
    format!(
        "Attempt {} {word}, {} to {}, {}",
        run.attempt,
        started.at,
        clock.moment(ended).at,
        time::span(took)
    )
}

fn several_label(runs: &[&TimelineRunBody], shown: Shown, clock: &Clock) -> String {
    let number = i64::try_from(runs.len()).unwrap_or(i64::MAX);
    let (first, last) =
        (runs.iter().map(|run| &run.started_at).min(), runs.iter().map(|run| &run.started_at).max());
    let at = |iso: Option<&String>| iso.map(|iso| clock.moment(iso).at).unwrap_or_default();
    let word = shown.word().to_lowercase();
    format!("{} {word}, started {} to {}", count(number, "run", "runs"), at(first), at(last))
}

fn bands(body: &TimelineBody, stretch: Stretch) -> Vec<Band> {
    let band = |start: &crate::api::wire::StartBody| {
        let (x, end) = (stretch.of(start.down_since.as_deref()?)?, stretch.of(&start.started_at)?);
        Some(Band { x: Share(x), width: Share((end - x).max(1)), end: Share(end) })
    };
    body.downtimes.iter().filter_map(band).collect()
}

/// How far apart ticks are, and whether they stand at whole hours or days of the zone.
fn is_tick(length: i64, hour: i8, minute: i8) -> bool {
    let hours = Duration::from_micros(length.unsigned_abs()).as_secs() / 3600;
    match hours {
        0..=1 => minute % 10 == 0,
        2..=6 => minute == 0,
        7..=24 => minute == 0 && hour % 3 == 0,
        _days => minute == 0 && hour == 0,
    }
}

fn axis(stretch: Stretch, clock: &Clock, bands: &[Band]) -> (Vec<Tick>, Vec<AxisWord>) {
    /// Every zone is off by a multiple of this.
    const STEP: i64 = 5 * 60 * 1_000_000;
    let (mut ticks, mut words) = (Vec::new(), Vec::new());
    // One word of the downtime is enough; what lies below it gives way.
    let down = bands.iter().max_by_key(|band| band.width).filter(|band| band.width.0 >= BAR_WIDTH_MIN);
    let down = down.map(|band| i64::midpoint(band.x.0, band.end.0));
    let mut at = stretch.from - stretch.from.rem_euclid(STEP) + STEP;
    while at < stretch.from + stretch.length {
        if let Some(local) = clock.zoned(Timestamp::from_micros(at))
            && is_tick(stretch.length, local.hour(), local.minute())
        {
            let x = stretch.share(at);
            let is_midnight = local.hour() == 0 && local.minute() == 0;
            ticks.push(Tick { x: Share(x), is_midnight });
            let is_free = (WORDS_APART / 2..=WHOLE - WORDS_APART).contains(&x)
                && down.is_none_or(|down| (down - x).abs() >= WORDS_APART);
            if is_free {
                let text = local.strftime(if is_midnight { "%a %-d" } else { "%H:%M" }).to_string();
                // Every other one gives way where it is narrow, and the one that would touch `now`.
                let is_kept = words.len() % 2 == 0 && x <= WHOLE - 2 * WORDS_APART;
                let class = if is_kept { "" } else { "wide" };
                words.push(AxisWord { x: Share(x), text, class });
            }
        }
        at += STEP;
    }
    if let Some(down) = down.filter(|down| *down <= WHOLE - WORDS_APART) {
        words.push(AxisWord { x: Share(down), text: "down".to_owned(), class: "down" });
    }
    (ticks, words)
}

#[cfg(test)]
mod tests;
