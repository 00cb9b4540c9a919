//! What an extension writes to its standard error: into the log, without secrets, and not more than a log can take.

use std::time::Duration;

use launcher::redact::Redactor;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::time::Instant;

/// The most lines that are kept in [`WINDOW`].
const LINES_MAX: u32 = 100;
/// The time over which lines are counted.
const WINDOW: Duration = Duration::from_secs(10);
/// The most bytes of a line; the rest of it is left out.
const LINE_BYTES_MAX: usize = 2000;
/// How much is read at a time.
const CHUNK_BYTES: usize = 8 << 10;

/// Copies standard error into the log, to its end.
pub(super) async fn copy(extension: &str, mut from: impl AsyncRead + Unpin, secrets: &[String]) {
    let mut redactor = Redactor::new(secrets.iter().map(String::as_str));
    let mut lines = Lines::default();
    let mut rate = Rate::new(Instant::now());
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        let length = from.read(&mut chunk).await.unwrap_or(0);
        let bytes = if length == 0 { redactor.finish() } else { redactor.push(&chunk[..length]) };
        let whole = lines.push(&bytes, length == 0);
        for line in whole {
            match rate.admit(Instant::now()) {
                Admitted::No => {}
                Admitted::Yes { left_out } => {
                    if left_out > 0 {
                        tracing::warn!(extension, left_out, "an extension wrote more than the log takes");
                    }
                    tracing::info!(extension, line, "an extension wrote");
                }
            }
        }
        if length == 0 {
            return;
        }
    }
}

/// Lines of bounded length out of pieces.
#[derive(Debug, Default)]
struct Lines {
    begun: Vec<u8>,
}

impl Lines {
    fn push(&mut self, bytes: &[u8], is_end: bool) -> Vec<String> {
        let mut whole = Vec::new();
        for byte in bytes {
            if *byte == b'\n' {
                whole.push(self.take());
            } else if self.begun.len() < LINE_BYTES_MAX {
                self.begun.push(*byte);
            }
        }
        if is_end && !self.begun.is_empty() {
            whole.push(self.take());
        }
        whole
    }

    fn take(&mut self) -> String {
        let line = String::from_utf8_lossy(&std::mem::take(&mut self.begun)).into_owned();
        line.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
    }
}

/// Whether a line is kept.
#[derive(Debug, PartialEq, Eq)]
enum Admitted {
    /// It is, and so many before it were not.
    Yes { left_out: u64 },
    /// It is left out.
    No,
}

/// How many lines there were lately.
#[derive(Debug)]
struct Rate {
    began_at: Instant,
    lines: u32,
    left_out: u64,
}

impl Rate {
    const fn new(now: Instant) -> Self {
        Self { began_at: now, lines: 0, left_out: 0 }
    }

    fn admit(&mut self, now: Instant) -> Admitted {
        if now.duration_since(self.began_at) >= WINDOW {
            (self.began_at, self.lines) = (now, 0);
        }
        if self.lines >= LINES_MAX {
            self.left_out += 1;
            return Admitted::No;
        }
        self.lines += 1;
        Admitted::Yes { left_out: std::mem::take(&mut self.left_out) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_whole_bounded_and_without_control_characters() {
        let mut lines = Lines::default();
        assert!(lines.push(b"half", false).is_empty());
        assert_eq!(lines.push(b" a line\n\x1b[1mnext", false), ["half a line"]);
        assert_eq!(lines.push(b"", true), [" [1mnext"]);
        let long = vec![b'x'; LINE_BYTES_MAX + 5];
        assert!(lines.push(&long, false).is_empty());
        assert_eq!(lines.push(b"\n", false)[0].len(), LINE_BYTES_MAX);
    }

    #[tokio::test(start_paused = true)]
    async fn rate_leaves_lines_out_and_says_how_many() {
        let start = Instant::now();
        let mut rate = Rate::new(start);
        let kept = (0..LINES_MAX + 3).filter(|_| rate.admit(start) != Admitted::No).count();
        assert_eq!(kept, LINES_MAX as usize);
        assert_eq!(rate.admit(start + WINDOW), Admitted::Yes { left_out: 3 });
        assert_eq!(rate.admit(start + WINDOW), Admitted::Yes { left_out: 0 });
    }
}
