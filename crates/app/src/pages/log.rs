//! A run's output: its last piece on the run's page, all of it on a page of its own, one piece more for the script,
//! and the whole as a file.

use askama::Template;
use hyper::header::HeaderValue;

use super::Visit;
use super::frame::{Frame, Place};
use super::html;
use crate::api::failure::Failure;
use crate::api::query::Query;
use crate::api::runs::{self, LOG_BYTES_MAX, Output};
use crate::api::server::Answer;
use crate::view;
use crate::view::log::{Keep, Line, Piece, Raw, WEIGHT_BESIDE_MAX, WEIGHT_MAX};

/// Bytes of output that a page shows.
const PIECE_BYTES: usize = 48 << 10;
/// The most bytes of output in one piece.
const PIECE_BYTES_MAX: usize = 256 << 10;
/// Bytes that are looked at before a piece, to know the styles in force.
const BEFORE_BYTES: u64 = 4 << 10;
/// Lines are numbered while at most so many bytes stand before them; counting them costs reading those bytes.
const COUNTED_BYTES_MAX: u64 = 4 << 20;
/// Bytes at the end of the output in which a failure is looked for.
const SEARCHED_BYTES: usize = 256 << 10;
/// The most bytes that its lines are in memory for that, about. Nothing of them is shown.
const SEARCHED_WEIGHT: usize = 4 << 20;

/// Which piece of the output is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Window {
    /// The last one.
    End,
    /// The one that begins there.
    From(u64),
    /// The one that ends there.
    To(u64),
}

/// How much of the output is wanted at most.
#[derive(Debug, Clone, Copy)]
struct Bound {
    bytes: usize,
    weight: usize,
}

/// A piece of output, ready to be shown.
#[derive(Debug)]
pub(super) struct Shown {
    pub(super) run: String,
    pub(super) lines: Vec<Line>,
    pub(super) from: u64,
    pub(super) next: u64,
    pub(super) size: u64,
    pub(super) is_live: bool,
    /// Where the failure is told of.
    pub(super) failure: Option<String>,
}

impl Shown {
    /// Reads a piece.
    ///
    /// # Errors
    /// `log_unavailable`.
    async fn read(output: &Output, window: Window, bound: Bound) -> Result<Self, Failure> {
        let (mut piece, size) = piece(output, window, bound).await?;
        let is_numbered = piece.from <= COUNTED_BYTES_MAX;
        if is_numbered {
            let before = lines_before(output, piece.from).await?;
            piece.number(before + 1);
        }
        let Piece { lines, from, next } = piece;
        let (run, is_live) = (output.run().to_string(), !output.is_whole());
        Ok(Self { run, lines, from, next, size, is_live, failure: None })
    }

    /// Looks for the failure at the end of a failed run's output, marks its lines, and knows where it is.
    ///
    /// # Errors
    /// `log_unavailable`.
    async fn with_failure(mut self, output: &Output) -> Result<Self, Failure> {
        if !output.is_of_failure() {
            return Ok(self);
        }
        let bound = Bound { bytes: SEARCHED_BYTES, weight: SEARCHED_WEIGHT };
        let (mut searched, _size) = piece(output, Window::End, bound).await?;
        let Some(anchor) = searched.mark_failure() else { return Ok(self) };
        let hits: Vec<u64> = searched.lines.iter().filter(|line| line.hit).map(|line| line.at).collect();
        for line in &mut self.lines {
            line.hit = hits.contains(&line.at);
        }
        let first = hits.first().copied().unwrap_or_default();
        let is_here = self.lines.iter().any(|line| line.at == first);
        let path = if is_here { String::new() } else { format!("/runs/{}/log?from={first}", self.run) };
        self.failure = Some(format!("{path}#{anchor}"));
        Ok(self)
    }

    pub(super) const fn has_earlier(&self) -> bool {
        self.from > 0
    }

    pub(super) fn has_later(&self) -> bool {
        self.next < self.size && !self.lines.last().is_some_and(|line| line.open)
    }

    pub(super) fn earlier(&self) -> String {
        view::run::bytes(self.from)
    }

    pub(super) fn later(&self) -> String {
        view::run::bytes(self.size.saturating_sub(self.next))
    }

    pub(super) fn whole(&self) -> String {
        view::run::bytes(self.size)
    }

    pub(super) const fn state(&self) -> &'static str {
        if self.is_live { "live" } else { "ended" }
    }

    /// Which lines are shown, as far as their numbers are known.
    pub(super) fn place(&self) -> Option<String> {
        let number = |line: Option<&Line>| line.and_then(|line| line.number);
        let (first, last) = (number(self.lines.first())?, number(self.lines.last())?);
        Some(if first == last { format!("Line {first}") } else { format!("Lines {first} to {last}") })
    }
}

async fn piece(output: &Output, window: Window, bound: Bound) -> Result<(Piece, u64), Failure> {
    let bytes = bound.bytes as u64;
    let with_before = bytes + BEFORE_BYTES;
    let signed = |place: u64| i64::try_from(place).unwrap_or(i64::MAX);
    let (from, length, keep) = match window {
        Window::End => (-signed(with_before), with_before, Keep::Last),
        Window::From(from) => {
            let before = from.saturating_sub(BEFORE_BYTES);
            (signed(before), from - before + bytes, Keep::First)
        }
        Window::To(to) => {
            let before = to.saturating_sub(with_before);
            (signed(before), to - before, Keep::Last)
        }
    };
    let log = output.piece(from, usize::try_from(length).unwrap_or(LOG_BYTES_MAX)).await?;
    let read = log.from + log.bytes.len() as u64;
    let start = match window {
        Window::From(from) => from,
        Window::End | Window::To(_) => read.saturating_sub(bytes),
    };
    // What was only read to know the styles is no part of it.
    let skipped = usize::try_from(start.saturating_sub(log.from)).unwrap_or(usize::MAX);
    let (before, bytes) = log.bytes.split_at(skipped.min(log.bytes.len()));
    let raw = Raw {
        before,
        bytes,
        from: log.from + before.len() as u64,
        more: read < log.size,
        live: !output.is_whole(),
        weight_max: bound.weight,
    };
    Ok((view::log::piece(&raw, keep), log.size))
}

/// How many lines end before a place.
async fn lines_before(output: &Output, place: u64) -> Result<u64, Failure> {
    let (mut from, mut count) = (0_u64, 0_u64);
    while from < place {
        let length = usize::try_from(place - from).unwrap_or(LOG_BYTES_MAX).min(LOG_BYTES_MAX);
        let log = output.piece(i64::try_from(from).unwrap_or(i64::MAX), length).await?;
        if log.bytes.is_empty() {
            break;
        }
        from += log.bytes.len() as u64;
        count += log.bytes.split(|byte| *byte == b'\n').count() as u64 - 1;
    }
    Ok(count)
}

#[derive(Debug, Template)]
#[template(path = "log.html")]
struct Whole {
    frame: Frame,
    title: String,
    log: Shown,
    /// What stands around the output on a page of its own.
    is_alone: bool,
}

#[derive(Debug, Template)]
#[template(path = "log_lines.html")]
struct Part<'a> {
    log: &'a Shown,
}

/// Shows a piece of a run's output: as a page, or with `view=part` as the lines alone.
pub(super) async fn show(visit: &Visit) -> Answer {
    let query = &visit.asked.query;
    let window = window(query)?;
    let bytes = query.parsed("bytes")?.unwrap_or(PIECE_BYTES);
    if bytes == 0 || bytes > PIECE_BYTES_MAX {
        return Err(Failure::bad(format!("`bytes` goes from 1 to {PIECE_BYTES_MAX}")));
    }
    let is_part = match query.text("view") {
        None | Some("page") => false,
        Some("part") => true,
        Some(_other) => return Err(Failure::bad("`view` is `page` or `part`")),
    };
    let output = Output::of(&visit.daemon, visit.asked.id()).await?;
    let log = Shown::read(&output, window, Bound { bytes, weight: WEIGHT_MAX }).await?;
    if is_part {
        return part(&log);
    }
    let log = log.with_failure(&output).await?;
    let run = runs::one(&visit.daemon, &log.run).await?;
    let (frame, title) = (Frame::read(visit, Place::Runs).await?, view::run::title(&run));
    html::page(&Whole { frame, title, log, is_alone: true })
}

fn window(query: &Query) -> Result<Window, Failure> {
    match (query.parsed("from")?, query.parsed("to")?) {
        (None, None) => Ok(Window::End),
        (Some(from), None) => Ok(Window::From(from)),
        (None, Some(to)) => Ok(Window::To(to)),
        (Some(_), Some(_)) => Err(Failure::bad("a piece begins `from` or ends `to` a place, not both")),
    }
}

fn part(log: &Shown) -> Answer {
    let mut response = html::page(&Part { log })?;
    let headers = response.headers_mut();
    headers.insert("x-log-from", HeaderValue::from(log.from));
    headers.insert("x-log-next", HeaderValue::from(log.next));
    headers.insert("x-log-size", HeaderValue::from(log.size));
    headers.insert("x-run-state", HeaderValue::from_static(log.state()));
    Ok(response)
}

/// The last piece of a run's output, for its page.
///
/// # Errors
/// `log_unavailable`, and what reading the store answers.
pub(super) async fn last(visit: &Visit, run: &str) -> Result<Shown, Failure> {
    let output = Output::of(&visit.daemon, run).await?;
    let bound = Bound { bytes: PIECE_BYTES, weight: WEIGHT_BESIDE_MAX };
    Shown::read(&output, Window::End, bound).await?.with_failure(&output).await
}

/// Sends the whole output as a file.
pub(super) async fn download(visit: &Visit) -> Answer {
    Output::of(&visit.daemon, visit.asked.id()).await?.download(&visit.daemon).await
}
