//! Bodies: what is answered, and reading what is sent within a size and a time.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Limited};
use hyper::body::{Frame, SizeHint};
use tokio::sync::mpsc;

use super::failure::Failure;
use crate::error_code::ErrorCode;

/// How long a body may take to arrive.
pub(crate) const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// The body of an answer: whole, or pieces as they come.
#[derive(Debug)]
pub(crate) enum Body {
    /// All of it; none once it is sent.
    Full(Option<Bytes>),
    /// Pieces, for as long as the sender lives. Nobody makes a piece before the last one is taken.
    Pieces(mpsc::Receiver<Bytes>),
}

impl Body {
    /// A whole body.
    pub(crate) fn full(bytes: impl Into<Bytes>) -> Self {
        Self::Full(Some(bytes.into()))
    }

    /// No body.
    pub(crate) const fn empty() -> Self {
        Self::Full(None)
    }
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Full(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Pieces(pieces) => {
                pieces.poll_recv(context).map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Full(bytes) => bytes.is_none(),
            Self::Pieces(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Full(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Self::Pieces(_) => SizeHint::default(),
        }
    }
}

/// Reads a request's body whole.
///
/// # Errors
/// `payload_too_large` before a byte is read when the length says so, else as soon as there are too many;
/// `request_timeout` when it takes longer than [`BODY_TIMEOUT`]; `bad_request` when it is cut short.
pub(crate) async fn read(
    body: impl hyper::body::Body<Data = Bytes, Error = hyper::Error>,
    bytes_max: usize,
) -> Result<Bytes, Failure> {
    let too_large = || {
        let detail = format!("the body may have at most {bytes_max} bytes; nothing was stored");
        Failure::new(ErrorCode::PayloadTooLarge, detail).closing()
    };
    let declared = hyper::body::Body::size_hint(&body).lower();
    if declared > bytes_max as u64 {
        return Err(too_large());
    }
    match tokio::time::timeout(BODY_TIMEOUT, Limited::new(body, bytes_max).collect()).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => Err(too_large()),
        Ok(Err(_cut_short)) => Err(Failure::bad("the body ended before its length").closing()),
        Err(_elapsed) => {
            let detail = "the body took too long to arrive; nothing was stored";
            Err(Failure::new(ErrorCode::RequestTimeout, detail).closing())
        }
    }
}
