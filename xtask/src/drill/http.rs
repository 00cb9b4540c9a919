//! A client for HTTP/1.1, one request to a connection: a drill must see broken answers as they are.

use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

/// How long a daemon may be silent within one exchange.
const SILENCE_MAX: Duration = Duration::from_secs(20);

/// Where a request goes.
#[derive(Debug, Clone)]
pub(super) enum Endpoint {
    /// A socket in the file system.
    Unix(PathBuf),
    /// A listener on this machine.
    Tcp(SocketAddr),
}

/// A request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request<'a> {
    pub(super) method: &'a str,
    pub(super) path: &'a str,
    pub(super) headers: &'a [(&'a str, &'a str)],
    pub(super) body: &'a [u8],
}

/// A whole answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Response {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

/// Sends a request and reads its answer. Any error means that what became of the request is not known.
pub(super) fn exchange(endpoint: &Endpoint, request: Request<'_>) -> io::Result<Response> {
    match endpoint {
        Endpoint::Unix(path) => {
            let stream = UnixStream::connect(path)?;
            stream.set_read_timeout(Some(SILENCE_MAX))?;
            stream.set_write_timeout(Some(SILENCE_MAX))?;
            talk(stream, "localhost", request)
        }
        Endpoint::Tcp(address) => {
            let stream = TcpStream::connect_timeout(address, SILENCE_MAX)?;
            stream.set_read_timeout(Some(SILENCE_MAX))?;
            stream.set_write_timeout(Some(SILENCE_MAX))?;
            talk(stream, &address.to_string(), request)
        }
    }
}

fn talk(mut stream: impl Read + Write, host: &str, request: Request<'_>) -> io::Result<Response> {
    let Request { method, path, headers, body } = request;
    let mut head = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n");
    for (name, value) in headers {
        write!(head, "{name}: {value}\r\n").expect("a string takes whatever is written");
    }
    write!(head, "Content-Length: {}\r\n\r\n", body.len()).expect("a string takes whatever is written");
    let mut bytes = head.into_bytes();
    bytes.extend_from_slice(body);
    // A request may be refused before all of it was read; then the answer is there although writing failed.
    let written = stream.write_all(&bytes);
    let mut answer = Vec::new();
    let read = stream.read_to_end(&mut answer);
    if let Some(response) = parse(&answer) {
        return Ok(response);
    }
    written?;
    read?;
    Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the answer is not whole"))
}

/// Reads an answer; `None` unless it is whole.
fn parse(answer: &[u8]) -> Option<Response> {
    let head_end = answer.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&answer[..head_end]).ok()?;
    let body = &answer[head_end + 4..];
    let mut lines = head.split("\r\n");
    let status = lines.next()?.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()?;
    let header = |wanted: &str| {
        lines.clone().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case(wanted).then(|| value.trim())
        })
    };
    let body = if header("transfer-encoding") == Some("chunked") {
        unchunk(body)?
    } else {
        let length: usize = header("content-length")?.parse().ok()?;
        body.get(..length)?.to_vec()
    };
    Some(Response { status, body })
}

fn unchunk(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line_end = rest.windows(2).position(|window| window == b"\r\n")?;
        let line = std::str::from_utf8(&rest[..line_end]).ok()?;
        let length = usize::from_str_radix(line.split(';').next()?.trim(), 16).ok()?;
        rest = &rest[line_end + 2..];
        if length == 0 {
            return Some(body);
        }
        body.extend_from_slice(rest.get(..length)?);
        rest = rest.get(length + 2..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::{Response, parse};

    #[test]
    fn parse_reads_both_ways_of_framing() {
        let expected = Response { status: 202, body: b"hello".to_vec() };
        let sized = b"HTTP/1.1 202 Accepted\r\nContent-Length: 5\r\n\r\nhello";
        assert_eq!(parse(sized), Some(expected.clone()));
        let chunked =
            b"HTTP/1.1 202 Accepted\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhe\r\n3;x\r\nllo\r\n0\r\n\r\n";
        assert_eq!(parse(chunked), Some(expected));
    }

    #[test]
    fn parse_takes_no_part_for_the_whole() {
        for cut in [&b"HTTP/1.1 202 Acc"[..], b"HTTP/1.1 202 Accepted\r\nContent-Length: 5\r\n\r\nhell", b""]
        {
            assert_eq!(parse(cut), None);
        }
        assert_eq!(parse(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"), None);
    }
}
