//! One line of a terminal: what is left of a line after carriage returns, erasures and styles did their work.
//!
//! Only what shapes the line that is being written has an effect. Titles, links, cursor movement between lines,
//! and everything else that a terminal would obey, is left out; what is left out is never shown as text.
//! A sequence that is not finished ends with its line, so that output cannot hide what follows.

use anstyle_parse::{DefaultCharAccumulator, Params, Parser, Perform};

use super::{Line, SPAN_WEIGHT, Span, letter_weight};

/// The most characters of a line that are shown.
const CHARACTERS_MAX: usize = 4000;
/// The most bytes of markup of a line. Only one that changes its style very often comes to it.
const WEIGHT_MAX: usize = 24_000;

/// A colour of the terminal's sixteen.
const COLORS: [&str; 16] = [
    "a-black",
    "a-red",
    "a-green",
    "a-yellow",
    "a-blue",
    "a-magenta",
    "a-cyan",
    "a-white",
    "a-bright-black",
    "a-bright-red",
    "a-bright-green",
    "a-bright-yellow",
    "a-bright-blue",
    "a-bright-magenta",
    "a-bright-cyan",
    "a-bright-white",
];

/// What they look like where nobody chose otherwise, to find the nearest of a colour.
const VALUES: [[u8; 3]; 16] = [
    [0, 0, 0],
    [205, 0, 0],
    [0, 205, 0],
    [205, 205, 0],
    [0, 0, 238],
    [205, 0, 205],
    [0, 205, 205],
    [229, 229, 229],
    [127, 127, 127],
    [255, 0, 0],
    [0, 255, 0],
    [255, 255, 0],
    [92, 92, 255],
    [255, 0, 255],
    [0, 255, 255],
    [255, 255, 255],
];

/// How a character looks. A background is left out: with it, text could be made unreadable.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "a terminal has as many switches")]
struct Style {
    color: Option<u8>,
    bold: bool,
    dim: bool,
    italic: bool,
    underline: bool,
}

impl Style {
    fn class(self) -> String {
        let mut names = Vec::new();
        names.extend(self.color.and_then(|color| COLORS.get(usize::from(color))).copied());
        let faces = [(self.bold, "b"), (self.dim, "dim"), (self.italic, "i"), (self.underline, "u")];
        names.extend(faces.iter().filter(|(is_on, _name)| *is_on).map(|(_is_on, name)| *name));
        names.join(" ")
    }

    /// Applies a `SGR` sequence.
    fn apply(&mut self, params: &Params) {
        let mut params = params.iter();
        while let Some(param) = params.next() {
            let [code, sub @ ..] = param else { continue };
            match code {
                0 => *self = Self::default(),
                1 => self.bold = true,
                2 => self.dim = true,
                3 => self.italic = true,
                4 => self.underline = sub.first() != Some(&0),
                22 => (self.bold, self.dim) = (false, false),
                23 => self.italic = false,
                24 => self.underline = false,
                30..=37 => self.color = u8::try_from(code - 30).ok(),
                90..=97 => self.color = u8::try_from(code - 90 + 8).ok(),
                39 => self.color = None,
                38 | 48 | 58 => {
                    let color = if sub.is_empty() { spread(&mut params) } else { joined(sub) };
                    if *code == 38
                        && let Some(color) = color
                    {
                        self.color = Some(color);
                    }
                }
                _other => {}
            }
        }
    }
}

/// A colour whose parts are parameters of their own: `38;5;n`, `38;2;r;g;b`.
fn spread<'p>(params: &mut impl Iterator<Item = &'p [u16]>) -> Option<u8> {
    let mut next = || params.next()?.first().copied();
    match next()? {
        5 => indexed(next()?),
        2 => nearest([next()?, next()?, next()?]),
        _other => None,
    }
}

/// A colour in one parameter: `38:5:n`, `38:2:r:g:b`, `38:2::r:g:b`.
fn joined(sub: &[u16]) -> Option<u8> {
    match sub {
        [5, index] => indexed(*index),
        [2, red, green, blue] | [2, _, red, green, blue, ..] => nearest([*red, *green, *blue]),
        _other => None,
    }
}

/// The nearest of the sixteen to one of the 256.
fn indexed(index: u16) -> Option<u8> {
    let index = u8::try_from(index).ok()?;
    let level = |step: u8| if step == 0 { 0 } else { 55 + u16::from(step) * 40 };
    match index {
        0..16 => Some(index),
        16..232 => {
            let index = index - 16;
            nearest([level(index / 36), level(index / 6 % 6), level(index % 6)])
        }
        232.. => nearest([8 + u16::from(index - 232) * 10; 3]),
    }
}

/// The nearest of the sixteen to a colour.
fn nearest(color: [u16; 3]) -> Option<u8> {
    let far = |known: &[u8; 3]| -> u32 {
        known
            .iter()
            .zip(color)
            .map(|(known, wanted)| u32::from(u16::from(*known).abs_diff(wanted.min(255))).pow(2))
            .sum()
    };
    (0_u8..).zip(&VALUES).min_by_key(|(_index, known)| far(known)).map(|(index, _known)| index)
}

/// A terminal that is one line high.
#[derive(Debug, Default)]
pub(super) struct Screen {
    parser: Parser<DefaultCharAccumulator>,
    row: Row,
}

#[derive(Debug, Default)]
struct Row {
    cells: Vec<(char, Style)>,
    /// Where the next character goes.
    column: usize,
    /// How long the line would be if all of it were kept.
    width: usize,
    style: Style,
}

impl Screen {
    /// The screen as it is after some output.
    pub(super) fn after(before: &[u8]) -> Self {
        let mut screen = Self::default();
        let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        drop(screen.lines(&before[..start]));
        screen.write(&before[start..]);
        screen.row.clear();
        screen
    }

    /// The lines of output. What has no end yet is a line as well, and is not continued by the next call.
    pub(super) fn lines(&mut self, bytes: &[u8]) -> Vec<Line> {
        let mut lines = Vec::new();
        let mut at = 0;
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.write(line.strip_suffix(b"\n").unwrap_or(line));
            let (spans, clipped) = self.row.take();
            lines.push(Line { at, number: None, spans, clipped, open: false, hit: false });
            at += line.len() as u64;
            // Whatever sequence was begun is over.
            self.parser = Parser::default();
        }
        lines
    }

    fn write(&mut self, bytes: &[u8]) {
        // First to text, so that a broken character cannot swallow what follows it.
        for byte in String::from_utf8_lossy(bytes).bytes() {
            self.parser.advance(&mut self.row, byte);
        }
    }
}

impl Row {
    fn clear(&mut self) {
        self.cells.clear();
        (self.column, self.width) = (0, 0);
    }

    /// Takes the line as it stands, and how many characters of it are not kept.
    fn take(&mut self) -> (Vec<Span>, usize) {
        let mut spans: Vec<Span> = Vec::new();
        let (mut last, mut weight, mut kept) = (None, 0, 0);
        for (letter, style) in &self.cells {
            let class = (last != Some(*style)).then(|| style.class());
            weight += letter_weight(*letter) + class.as_ref().map_or(0, |class| SPAN_WEIGHT + class.len());
            if weight > WEIGHT_MAX {
                break;
            }
            kept += 1;
            last = Some(*style);
            match (class, spans.last_mut()) {
                (None, Some(span)) => span.text.push(*letter),
                (class, _) => {
                    spans.push(Span { class: class.unwrap_or_default(), text: letter.to_string() });
                }
            }
        }
        let clipped = self.width.max(self.cells.len()) - kept;
        self.clear();
        (spans, clipped)
    }

    fn put(&mut self, letter: char) {
        if self.column < CHARACTERS_MAX {
            while self.cells.len() < self.column {
                self.cells.push((' ', Style::default()));
            }
            let cell = (letter, self.style);
            match self.cells.get_mut(self.column) {
                Some(old) => *old = cell,
                None => self.cells.push(cell),
            }
        }
        self.column += 1;
        self.width = self.width.max(self.column);
    }

    /// Shows a character that must not do what it would.
    fn put_name(&mut self, letter: char) {
        format!("<U+{:04X}>", u32::from(letter)).chars().for_each(|letter| self.put(letter));
    }

    fn erase(&mut self, part: u16) {
        match part {
            0 => {
                self.cells.truncate(self.column);
                self.width = self.width.min(self.column);
            }
            1 => {
                let until = self.cells.len().min(self.column.saturating_add(1));
                self.cells[..until].fill((' ', Style::default()));
            }
            2 => {
                self.cells.clear();
                self.width = 0;
            }
            _other => {}
        }
    }
}

impl Perform for Row {
    fn print(&mut self, letter: char) {
        match letter {
            '\u{7f}' => self.put('\u{2421}'),
            // They turn the order of what stands around them, so that it reads as something else.
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                self.put_name(letter);
            }
            '\u{80}'..='\u{9f}' => self.put_name(letter),
            letter => self.put(letter),
        }
    }

    fn execute(&mut self, byte: u8) {
        match byte {
            b'\r' => self.column = 0,
            b'\x08' => self.column = self.column.saturating_sub(1),
            b'\t' => self.put('\t'),
            // A bell is heard and not seen.
            b'\x07' => {}
            // The picture of a control character.
            0..0x20 => self.put(char::from_u32(0x2400 + u32::from(byte)).unwrap_or(' ')),
            other => self.put_name(char::from(other)),
        }
    }

    fn csi_dispatch(&mut self, params: &Params, intermediates: &[u8], _ignore: bool, action: u8) {
        if !intermediates.is_empty() {
            return;
        }
        let first = params.iter().next().and_then(|param| param.first()).copied().unwrap_or(0);
        let steps = usize::from(first.max(1));
        match action {
            b'm' => self.style.apply(params),
            b'K' => self.erase(first),
            b'G' => self.column = steps - 1,
            b'C' => self.column = self.column.saturating_add(steps),
            b'D' => self.column = self.column.saturating_sub(steps),
            _other => {}
        }
    }
}
