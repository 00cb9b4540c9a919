//! An Event as an operator describes it, to send it or to ask what it would do.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::Args;
use domain::event::PAYLOAD_BYTES_MAX;
use serde_json::Value;

use crate::api::wire::KeyBody;
use crate::cli::failure::{Failure, Stop};

/// The parts that sending and explaining share.
#[derive(Debug, Args)]
pub(super) struct Described {
    /// The key to correlate by: its namespace
    #[arg(long, value_name = "NS", requires = "key_external_id")]
    key_source: Option<String>,
    /// The key to correlate by: its identifier
    #[arg(long, value_name = "ID", requires = "key_source")]
    key_external_id: Option<String>,
    /// The Work it is addressed to, by its id or the beginning of it
    #[arg(long, value_name = "WORK")]
    pub(super) work: Option<String>,
    /// A file with the payload, which is JSON; `-` reads standard input
    #[arg(long, value_name = "FILE", conflicts_with = "payload_json")]
    payload: Option<PathBuf>,
    /// The payload itself
    #[arg(long, value_name = "JSON")]
    payload_json: Option<String>,
}

impl Described {
    pub(super) fn key(&self) -> Option<KeyBody> {
        let (source, external_id) = (self.key_source.clone()?, self.key_external_id.clone()?);
        Some(KeyBody { source, external_id })
    }

    /// The payload, when one is given.
    ///
    /// # Errors
    /// [`Stop`] when it cannot be read, is too large or is not JSON.
    pub(super) fn payload(&self) -> Result<Option<Value>, Stop> {
        let (text, name) = match (&self.payload, &self.payload_json) {
            (Some(path), _) if path == Path::new("-") => {
                (read(std::io::stdin().lock(), "standard input")?, "standard input".to_owned())
            }
            (Some(path), _) => {
                let name = shown(path);
                let file = std::fs::File::open(path).map_err(|error| unreadable(&name, &error))?;
                (read(file, &name)?, name)
            }
            (None, Some(text)) => (text.clone().into_bytes(), "--payload-json".to_owned()),
            (None, None) => return Ok(None),
        };
        serde_json::from_slice(&text).map(Some).map_err(|error| {
            Failure::usage(format!("the payload in {name} is not JSON, at line {}", error.line()))
                .hint("a text alone needs quotes: --payload-json '\"hello\"'")
                .into()
        })
    }
}

fn read(source: impl std::io::Read, name: &str) -> Result<Vec<u8>, Stop> {
    let mut bytes = Vec::new();
    source
        .take(PAYLOAD_BYTES_MAX as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| unreadable(name, &error))?;
    if bytes.len() > PAYLOAD_BYTES_MAX {
        return Err(Failure::usage(format!(
            "the payload in {name} is larger than {PAYLOAD_BYTES_MAX} bytes"
        ))
        .hint("put it where the run can read it, and send its address")
        .into());
    }
    Ok(bytes)
}

fn unreadable(name: &str, error: &std::io::Error) -> Failure {
    Failure::usage(format!("cannot read the payload in {name}: {error}"))
        .hint("`--payload` takes a file; the payload itself goes to `--payload-json`")
}

/// A file's name, unless a payload was typed in its place: that is said nowhere.
fn shown(path: &Path) -> String {
    let text = path.display().to_string();
    if text.trim_start().starts_with(['{', '[', '"']) {
        "the file that `--payload` names".to_owned()
    } else {
        text
    }
}
