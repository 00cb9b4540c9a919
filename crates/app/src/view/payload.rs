//! A payload for a person: indented, as it was written, with what cannot be seen spelled out.
//!
//! The order of fields, the text of numbers and repeated keys stay the sender's, so nothing is parsed into values
//! here. A letter that turns the direction of a line or takes no room could make a payload look like another one.

/// The most bytes of indented text that are shown.
pub(crate) const SHOWN_BYTES_MAX: usize = 16 << 10;

/// The most letters of a name in a row of a list. Names may have some hundreds, and lists have 50 rows.
const ROW_LETTERS_MAX: usize = 120;
/// Spaces for each level.
const INDENT: usize = 2;

/// What a piece of the text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ink {
    Plain,
    Key,
    Text,
    Number,
    Hidden,
}

/// A piece of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Its style class; empty for what stands between values.
    pub(crate) class: &'static str,
    /// The text.
    pub(crate) text: String,
}

/// An indented payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pretty {
    pub(crate) pieces: Vec<Piece>,
    /// Bytes of the payload as it was written.
    pub(crate) bytes: usize,
    /// Whether more of it is not shown.
    pub(crate) clipped: bool,
}

impl Pretty {
    /// Indents JSON.
    pub(crate) fn new(json: &[u8]) -> Self {
        let text = String::from_utf8_lossy(json);
        let mut pen = Pen { pieces: Vec::new(), room: SHOWN_BYTES_MAX };
        let clipped = write(&text, &mut pen).is_none();
        Self { pieces: pen.pieces, bytes: json.len(), clipped }
    }

    /// The text alone.
    #[cfg(test)]
    fn text(&self) -> String {
        self.pieces.iter().map(|piece| piece.text.as_str()).collect()
    }

    /// Whether the payload says nothing.
    pub(crate) fn is_null(&self) -> bool {
        matches!(self.pieces.as_slice(), [only] if only.text == "null")
    }
}

/// Collects pieces while there is room.
struct Pen {
    pieces: Vec<Piece>,
    room: usize,
}

impl Pen {
    /// None when there is no more room.
    fn put(&mut self, ink: Ink, text: &str) -> Option<()> {
        self.room = self.room.checked_sub(text.len())?;
        let class = match ink {
            Ink::Plain => "",
            Ink::Key => "k",
            Ink::Text => "s",
            Ink::Number => "n",
            Ink::Hidden => "x",
        };
        match self.pieces.last_mut() {
            Some(last) if last.class == class && ink != Ink::Hidden => last.text.push_str(text),
            _other => self.pieces.push(Piece { class, text: text.to_owned() }),
        }
        Some(())
    }

    fn line(&mut self, depth: usize) -> Option<()> {
        self.put(Ink::Plain, "\n")?;
        self.put(Ink::Plain, &" ".repeat(depth * INDENT))
    }

    /// Text in which hidden letters are spelled out, letter by letter, so that it ends where the room does.
    fn spell(&mut self, ink: Ink, text: &str) -> Option<()> {
        let mut letters = [0; 4];
        for letter in text.chars() {
            match spelling(letter) {
                Some(spelled) => self.put(Ink::Hidden, &spelled)?,
                None => self.put(ink, letter.encode_utf8(&mut letters))?,
            }
        }
        Some(())
    }
}

/// Writes JSON with one value on a line. None when the room was used up.
fn write(json: &str, pen: &mut Pen) -> Option<()> {
    let blank = |letter: char| letter.is_ascii_whitespace();
    let (mut rest, mut depth) = (json.trim_start_matches(blank), 0_usize);
    while let Some(first) = rest.chars().next() {
        let end = match first {
            '"' => text_end(rest),
            '{' | '}' | '[' | ']' | ',' | ':' => 1,
            _value => rest.find([',', '}', ']', ' ', '\n', '\r', '\t']).unwrap_or(rest.len()),
        };
        let (token, after) = rest.split_at(end.max(first.len_utf8()));
        rest = after.trim_start_matches(blank);
        match first {
            '"' => pen.spell(if rest.starts_with(':') { Ink::Key } else { Ink::Text }, token)?,
            '{' | '[' => {
                pen.put(Ink::Plain, token)?;
                if !rest.starts_with(['}', ']']) {
                    depth += 1;
                    pen.line(depth)?;
                } else if let Some(closing) = rest.get(..1) {
                    pen.put(Ink::Plain, closing)?;
                    rest = rest[1..].trim_start_matches(blank);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                pen.line(depth)?;
                pen.put(Ink::Plain, token)?;
            }
            ',' => {
                pen.put(Ink::Plain, ",")?;
                pen.line(depth)?;
            }
            ':' => pen.put(Ink::Plain, ": ")?,
            _value => pen.spell(Ink::Number, token)?,
        }
    }
    Some(())
}

/// Where a text in quotes ends.
fn text_end(json: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in json.bytes().enumerate().skip(1) {
        match byte {
            _any if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _other => {}
        }
    }
    json.len()
}

/// Whether a letter cannot be seen, or changes how its neighbours are seen.
fn is_hidden(letter: char) -> bool {
    letter.is_control()
        || matches!(
            letter,
            '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}'
        )
}

/// How a hidden letter is written.
fn spelling(letter: char) -> Option<String> {
    is_hidden(letter).then(|| format!("\\u{{{:x}}}", u32::from(letter)))
}

/// JSON that means the same, with its hidden letters as JSON writes them. It is for a field, in which one sees and
/// sends the same text. Line ends between values stay.
pub(crate) fn escaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    let mut units = [0; 2];
    for letter in json.chars() {
        if is_hidden(letter) && !letter.is_ascii_whitespace() {
            text.extend(letter.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")));
        } else {
            text.push(letter);
        }
    }
    text
}

/// A name from outside in which hidden letters are spelled out.
pub(crate) fn spelled(text: &str) -> String {
    text.chars().map(|letter| spelling(letter).unwrap_or_else(|| letter.to_string())).collect()
}

/// As [`spelled`], as long as a row of a list has room for.
pub(crate) fn brief(text: &str) -> String {
    super::clip::middle(&spelled(text), ROW_LETTERS_MAX)
}

/// A word of a command line, in quotes when a shell would not take it as it is. None for one with hidden letters: what
/// cannot be seen should not be copied into a terminal.
pub(crate) fn quoted(word: &str) -> Option<String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./:@%+=,".contains(&byte);
    if word.chars().any(is_hidden) {
        None
    } else if !word.is_empty() && word.bytes().all(plain) {
        Some(word.to_owned())
    } else {
        Some(format!("'{}'", word.replace('\'', r"'\''")))
    }
}

#[cfg(test)]
mod tests {
    use super::{Pretty, SHOWN_BYTES_MAX, brief, escaped, quoted, spelled};

    fn text(json: &str) -> String {
        Pretty::new(json.as_bytes()).text()
    }

    #[test]
    fn json_is_indented_as_it_was_written() {
        let written = r#" {"b":1.50, "a" :[ ],"o":{},"b":[true,null,"x:,{\"y"] } "#;
        let expected = "{\n  \"b\": 1.50,\n  \"a\": [],\n  \"o\": {},\n  \"b\": [\n    true,\n    null,\n    \
                        \"x:,{\\\"y\"\n  ]\n}";
        assert_eq!(text(written), expected);
        assert_eq!(text("null"), "null");
        assert_eq!(text(r#""a""#), r#""a""#);
        let classes: Vec<&str> =
            Pretty::new(br#"{"k":"s"}"#).pieces.iter().map(|piece| piece.class).collect();
        assert_eq!(classes, ["", "k", "", "s", ""]);
    }

    #[test]
    fn the_same_values_are_read_from_what_is_shown() {
        for json in [r#"{"a":[{"b":[]},{"c":{}}],"d":-1e9}"#, "[[[[1],2],3],4]", r#"["\\",[],"\"]"]"#, "7"] {
            let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
            assert_eq!(value(&text(json)), value(json), "{json}");
        }
    }

    #[test]
    fn hidden_letters_are_spelled_out_apart() {
        let pretty = Pretty::new("{\"\u{202e}k\":\"a\u{200b}\u{7f}שלום\"}".as_bytes());
        let hidden: Vec<&str> = pretty
            .pieces
            .iter()
            .filter(|piece| piece.class == "x")
            .map(|piece| piece.text.as_str())
            .collect();
        assert_eq!(hidden, ["\\u{202e}", "\\u{200b}", "\\u{7f}"]);
        assert!(pretty.text().contains("שלום"));
        assert_eq!(spelled("a\u{2066}b\u{1b}[31m é"), "a\\u{2066}b\\u{1b}[31m é");
    }

    #[test]
    fn a_row_has_room_for_the_beginning_of_a_name() {
        assert_eq!(brief("a\u{202e}b"), "a\\u{202e}b");
        assert_eq!(brief(&"é".repeat(120)), "é".repeat(120));
        assert_eq!(brief(&"é".repeat(121)), format!("{}…{}", "é".repeat(80), "é".repeat(39)));
    }

    #[test]
    fn escaped_json_means_the_same() {
        let json = "{\n\t\"a\u{202e}\": \"\u{7f}\u{e0041}é\"}";
        let text = escaped(json);
        assert_eq!(text, "{\n\t\"a\\u202e\": \"\\u007f\\udb40\\udc41é\"}");
        let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(value(&text), value(json));
    }

    #[test]
    fn what_is_large_is_clipped() {
        let long = format!("\"{}\"", "é".repeat(SHOWN_BYTES_MAX));
        let deep = format!("{}{}{}", "[".repeat(110), "1,".repeat(100_000), "1");
        for json in [long, deep] {
            let pretty = Pretty::new(json.as_bytes());
            assert!(pretty.clipped && pretty.text().len() <= SHOWN_BYTES_MAX);
            assert_eq!(pretty.bytes, json.len());
        }
        assert!(!Pretty::new(b"[1]").clipped);
    }

    #[test]
    fn nothing_breaks_what_is_not_json() {
        for odd in ["", "\"", "\"\\", "}{", "]]", ":", "{", "\u{fffd}", "é,", "tru", "[é"] {
            drop(text(odd));
        }
    }

    #[test]
    fn a_shell_takes_a_quoted_word_as_one() {
        assert_eq!(quoted("build.finished").as_deref(), Some("build.finished"));
        assert_eq!(quoted("").as_deref(), Some("''"));
        assert_eq!(quoted("it's $(rm -rf /)").as_deref(), Some(r"'it'\''s $(rm -rf /)'"));
        assert_eq!(quoted("~root").as_deref(), Some("'~root'"));
        assert_eq!(quoted("a\nb"), None);
        assert_eq!(quoted("a\u{202e}b"), None);
    }
}
