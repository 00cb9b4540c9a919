//! Lines with a limit. A longer one is never read whole.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt as _};

/// How reading a line ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A line, without its end.
    Whole(Vec<u8>),
    /// It has more bytes than are allowed.
    TooLong,
    /// There is no more. What follows the last end of a line is no line.
    End,
}

/// Reads the next line of at most `bytes_max` bytes.
///
/// # Errors
/// When the stream cannot be read.
pub(crate) async fn read(from: &mut (impl AsyncBufRead + Unpin), bytes_max: usize) -> io::Result<Line> {
    let mut line = Vec::new();
    loop {
        let there = from.fill_buf().await?;
        if there.is_empty() {
            return Ok(Line::End);
        }
        let end = there.iter().position(|byte| *byte == b'\n');
        let taken = end.unwrap_or(there.len());
        if line.len() + taken > bytes_max {
            return Ok(Line::TooLong);
        }
        line.extend_from_slice(&there[..taken]);
        let used = end.map_or(taken, |end| end + 1);
        from.consume(used);
        if end.is_some() {
            return Ok(Line::Whole(line));
        }
    }
}

/// A message as a line.
pub(crate) fn of(message: &impl serde::Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).expect("a message of the wire is JSON");
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use tokio::io::BufReader;

    use super::{Line, read};

    #[tokio::test]
    async fn read_stops_at_the_limit_wherever_a_read_cuts() {
        for capacity in [1, 3, 64] {
            let mut from = BufReader::with_capacity(capacity, &b"four\n\n12345\n"[..]);
            assert_eq!(read(&mut from, 4).await.unwrap(), Line::Whole(b"four".to_vec()));
            assert_eq!(read(&mut from, 4).await.unwrap(), Line::Whole(Vec::new()));
            assert_eq!(read(&mut from, 4).await.unwrap(), Line::TooLong);
        }
        let mut from = BufReader::new(&b"a\nhalf"[..]);
        assert_eq!(read(&mut from, 4).await.unwrap(), Line::Whole(b"a".to_vec()));
        assert_eq!(read(&mut from, 4).await.unwrap(), Line::End);
    }
}
