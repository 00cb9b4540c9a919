//! Server-sent events, as far as the daemon uses them: an id, a name and one text.

use bytes::Bytes;

use super::{ClientError, Streamed};

/// A message of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Message {
    /// What kind of message it is; empty for the usual one.
    pub(crate) name: String,
    /// Its text.
    pub(crate) data: String,
}

/// A stream of messages.
#[derive(Debug)]
pub(crate) struct Messages {
    streamed: Streamed,
    parser: Parser,
}

impl Messages {
    pub(crate) fn new(streamed: Streamed) -> Self {
        Self { streamed, parser: Parser::default() }
    }

    /// The next message; none when the daemon ended the stream.
    ///
    /// # Errors
    /// [`ClientError::Broken`].
    pub(crate) async fn next(&mut self) -> Result<Option<Message>, ClientError> {
        loop {
            if let Some(message) = self.parser.take() {
                return Ok(Some(message));
            }
            match self.streamed.next().await? {
                Some(bytes) => self.parser.feed(&bytes),
                None => return Ok(None),
            }
        }
    }
}

/// Takes bytes as they come, gives messages as they become whole.
#[derive(Debug, Default)]
struct Parser {
    /// What is not a whole line yet.
    rest: Vec<u8>,
    message: Message,
    whole: std::collections::VecDeque<Message>,
}

impl Parser {
    fn feed(&mut self, bytes: &Bytes) {
        self.rest.extend_from_slice(bytes);
        while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.rest.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line);
            self.line(line.trim_end_matches(['\n', '\r']));
        }
    }

    fn take(&mut self) -> Option<Message> {
        self.whole.pop_front()
    }

    fn line(&mut self, line: &str) {
        if line.is_empty() {
            let message = std::mem::take(&mut self.message);
            if !message.data.is_empty() || !message.name.is_empty() {
                self.whole.push_back(message);
            }
            return;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => {
                if !self.message.data.is_empty() {
                    self.message.data.push('\n');
                }
                self.message.data.push_str(value);
            }
            "event" => value.clone_into(&mut self.message.name),
            // The id is for whoever comes back later; an empty field is a comment that keeps the line alive.
            _id_or_comment => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Message, Parser};
    use bytes::Bytes;

    #[test]
    fn messages_come_whole_however_the_bytes_are_cut() {
        let text = ": hello\n\nid: 7\ndata: {\"a\":1}\n\nevent: reset\r\ndata:\r\n\r\ndata: one\ndata: two\n\ndata: cut";
        let message = |name: &str, data: &str| Message { name: name.to_owned(), data: data.to_owned() };
        let expected = [message("", "{\"a\":1}"), message("reset", ""), message("", "one\ntwo")];
        for size in [1, 3, 1000] {
            let mut parser = Parser::default();
            for piece in text.as_bytes().chunks(size) {
                parser.feed(&Bytes::copy_from_slice(piece));
            }
            let found: Vec<Message> = std::iter::from_fn(|| parser.take()).collect();
            assert_eq!(found, expected);
        }
    }
}
