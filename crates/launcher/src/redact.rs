//! Keeps values out of what is written, wherever a read happens to cut them.

use std::io::{self, Read, Write};

/// What stands in place of a value.
const MASK: &[u8] = b"***";
/// Shorter values are left alone: a word of three letters would be found everywhere.
pub const VALUE_BYTES_MIN: usize = 4;
/// How much is read at a time.
const CHUNK_BYTES: usize = 64 << 10;

/// Replaces values in a stream.
#[derive(Debug)]
pub struct Redactor {
    /// Without duplicates.
    patterns: Vec<Vec<u8>>,
    /// Which bytes a pattern begins with.
    first: [bool; 256],
    /// What may still become a value.
    held: Vec<u8>,
}

impl Redactor {
    /// A redactor for these values. A value of several lines is taken line by line, since a program that
    /// shows it may well indent it.
    pub fn new<'a>(values: impl IntoIterator<Item = &'a str>) -> Self {
        let mut patterns: Vec<Vec<u8>> = values
            .into_iter()
            .flat_map(str::lines)
            .map(str::trim)
            .filter(|line| line.len() >= VALUE_BYTES_MIN)
            .map(|line| line.as_bytes().to_vec())
            .collect();
        patterns.sort();
        patterns.dedup();
        let mut first = [false; 256];
        for pattern in &patterns {
            first[usize::from(pattern[0])] = true;
        }
        Self { patterns, first, held: Vec::new() }
    }

    /// Whether there is nothing to redact.
    pub fn is_idle(&self) -> bool {
        self.patterns.is_empty()
    }

    /// Takes in the next bytes; answers what can be written by now.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(bytes);
        self.drain(End::Open)
    }

    /// There is no more; answers the rest.
    pub fn finish(&mut self) -> Vec<u8> {
        self.drain(End::Closed)
    }

    fn drain(&mut self, end: End) -> Vec<u8> {
        let mut ready = Vec::with_capacity(self.held.len());
        let mut at = 0;
        while at < self.held.len() {
            if !self.first[usize::from(self.held[at])] {
                ready.push(self.held[at]);
                at += 1;
                continue;
            }
            match self.covered(at, end) {
                Covered::Undecided => break,
                Covered::Nothing => {
                    ready.push(self.held[at]);
                    at += 1;
                }
                Covered::UpTo(next) => {
                    ready.extend_from_slice(MASK);
                    at = next;
                }
            }
        }
        self.held.drain(..at);
        ready
    }

    /// How far values reach that begin at `at`, those that overlap them included.
    fn covered(&self, at: usize, end: End) -> Covered {
        let mut until = at;
        let mut from = at;
        while from == at || from < until {
            let rest = &self.held[from..];
            for pattern in &self.patterns {
                if rest.starts_with(pattern) {
                    until = until.max(from + pattern.len());
                } else if end == End::Open && pattern.starts_with(rest) {
                    return Covered::Undecided;
                }
            }
            from += 1;
        }
        if until == at { Covered::Nothing } else { Covered::UpTo(until) }
    }

    /// Redacts a whole text.
    pub fn text(&mut self, text: &str) -> String {
        let mut bytes = self.push(text.as_bytes());
        bytes.extend(self.finish());
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Copies a stream to its end. What cannot be written, such as on a full disk, is lost, but is still read:
    /// a command that cannot write its log should not die of it.
    ///
    /// # Errors
    /// When it cannot be read, or some of it could not be written.
    pub fn copy(mut self, mut from: impl Read, mut to: impl Write) -> io::Result<()> {
        let mut chunk = vec![0; CHUNK_BYTES];
        let mut written = Ok(());
        loop {
            match from.read(&mut chunk) {
                Ok(0) => return to.write_all(&self.finish()).and(written),
                Ok(length) => written = written.and(to.write_all(&self.push(&chunk[..length]))),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Whether more may follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Open,
    Closed,
}

/// What is known about the bytes from some place on.
enum Covered {
    /// The next bytes decide.
    Undecided,
    /// No value begins here.
    Nothing,
    /// Values reach to this place.
    UpTo(usize),
}

#[cfg(test)]
mod tests {
    use super::Redactor;

    #[track_caller]
    fn check(values: &[&str], text: &str, expect: &str) {
        assert_eq!(Redactor::new(values.iter().copied()).text(text), expect);
        for cut in 0..=text.len() {
            let mut redactor = Redactor::new(values.iter().copied());
            let mut bytes = redactor.push(&text.as_bytes()[..cut]);
            bytes.extend(redactor.push(&text.as_bytes()[cut..]));
            bytes.extend(redactor.finish());
            assert_eq!(String::from_utf8(bytes).unwrap(), expect, "cut at {cut}");
        }
    }

    #[test]
    fn redacts_wherever_a_read_cuts() {
        check(&["hunter22"], "a hunter22 b hunter2 hunter22", "a *** b hunter2 ***");
        check(&["aaab"], "aaaab aaa", "a*** aaa");
    }

    #[test]
    fn redacts_the_longest_and_what_overlaps_it() {
        check(&["abcd", "abcdef"], "abcdef abcd abcde", "*** *** ***e");
        check(&["abcd", "cdef"], "abcdefg", "***g");
    }

    #[test]
    fn copy_reads_to_the_end_even_when_nothing_can_be_written() {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut from = std::io::Cursor::new(vec![b'x'; 300_000]);
        assert!(Redactor::new(["hunter22"]).copy(&mut from, full).is_err());
        assert_eq!(from.position(), 300_000);
    }

    #[test]
    fn redacts_lines_and_spares_short_values() {
        check(&["-----KEY\n  line two\nab\n"], "x -----KEY\nline two\nab", "x ***\n***\nab");
        check(&["abc", ""], "abc", "abc");
        assert!(Redactor::new(["abc"]).is_idle());
    }
}
