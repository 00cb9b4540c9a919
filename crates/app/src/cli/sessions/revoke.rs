//! `sessions revoke`.

use clap::Args;

use crate::api::wire::RevokedBody;
use crate::cli::Context;
use crate::cli::exit::Exit;
use crate::cli::failure::Stop;
use crate::client::Route;
use crate::view::count;

/// Log a browser out for good
#[derive(Debug, Args)]
pub(crate) struct RevokeArgs {
    /// Its session's id, or the beginning of it
    #[arg(value_name = "SESSION", required_unless_present = "all")]
    id: Option<String>,
    /// Log every browser out
    #[arg(long, conflicts_with = "id")]
    all: bool,
}

pub(crate) async fn revoke(args: &RevokeArgs, context: &Context) -> Result<Exit, Stop> {
    let mut segments = vec!["sessions"];
    segments.extend(args.id.as_deref());
    let revoked: RevokedBody = context.client()?.delete(&Route::new(&segments)).await?;
    let out = &context.out;
    if out.is_json() {
        out.object(&revoked)?;
    } else {
        let number = i64::try_from(revoked.sessions.len()).unwrap_or(i64::MAX);
        out.sentence(&format!("{} logged out.", count(number, "browser was", "browsers were")))?;
    }
    Ok(Exit::DONE)
}
