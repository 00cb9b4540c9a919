//! The protocol `WebDriver` as far as the tests speak it: one request, one answer, both JSON.
//!
//! It is a few lines over a socket, and so not worth a client with its own HTTP, TLS and runtime.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// How long one command may take. Starting the browser is the longest, on a machine that has much else to do.
const ANSWER_TIME_MAX: Duration = Duration::from_mins(1);

/// What a command was refused with.
#[derive(Debug)]
pub(super) struct Refused {
    /// The protocol's word for it, such as `no such element`.
    pub(super) error: String,
    pub(super) message: String,
}

/// Sends a command to the driver at this port.
pub(super) fn command(port: u16, method: &str, path: &str, body: Option<&Value>) -> Result<Value, Refused> {
    let answer = exchange(port, method, path, body)
        .unwrap_or_else(|error| panic!("ChromeDriver does not answer {method} {path}: {error}"));
    let mut answer: Value = serde_json::from_slice(&answer)
        .unwrap_or_else(|error| panic!("{error} in {}", String::from_utf8_lossy(&answer)));
    let value = answer["value"].take();
    match value.get("error").and_then(Value::as_str) {
        Some(error) => {
            let message = value["message"].as_str().unwrap_or_default();
            Err(Refused {
                error: error.to_owned(),
                message: message.lines().next().unwrap_or_default().to_owned(),
            })
        }
        None => Ok(value),
    }
}

/// Sends a command and gives the bytes of the answer, whatever they say.
pub(super) fn exchange(
    port: u16,
    method: &str,
    path: &str,
    body: Option<&Value>,
) -> std::io::Result<Vec<u8>> {
    let body = body.map(Value::to_string).unwrap_or_default();
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(ANSWER_TIME_MAX))?;
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: localhost:{port}\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    )?;
    // The driver keeps the connection, whatever it is asked.
    let mut stream = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        stream.read_line(&mut line)?;
        if line.trim_end().is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().map_err(std::io::Error::other)?;
        }
    }
    let mut answer = vec![0; length];
    stream.read_exact(&mut answer)?;
    Ok(answer)
}
