//! `doctor`: what the daemon finds when it looks at itself.

use clap::Args;

use crate::api::wire::DoctorBody;
use crate::client::Route;
use crate::view::{Word, look};

use super::Context;
use super::exit::Exit;
use super::failure::Stop;

/// Look for what is wrong, and print the webhooks to create
#[derive(Debug, Args)]
pub(super) struct DoctorArgs {
    /// Resolve every secret, too; no value is shown
    #[arg(long)]
    check_secrets: bool,
}

pub(super) async fn doctor(args: &DoctorArgs, context: &Context) -> Result<Exit, Stop> {
    let check_secrets = args.check_secrets.then_some("true");
    let route = Route::new(&["doctor"]).with_some("check_secrets", check_secrets);
    let found: DoctorBody = context.client()?.get(&route).await?;
    let out = &context.out;
    if out.is_json() {
        out.object(&found)?;
    } else {
        let width = found.checks.iter().map(|check| check.level.len()).max().unwrap_or(0);
        for check in &found.checks {
            let tone = look::level(&check.level).word().tone;
            let level = Word::new(format!("{:width$}", check.level), tone);
            out.words(&[level, Word::from(format!("{}: {}", check.name, check.sentence))])?;
        }
        if !found.webhooks.is_empty() {
            out.line("")?;
            out.heading("Webhooks to create at their senders")?;
        }
        for webhook in &found.webhooks {
            out.line(format!("  {}", webhook.url))?;
            out.line(format!(
                "    entry `{}` of scope `{}`: {}",
                webhook.entry, webhook.scope, webhook.takes
            ))?;
        }
    }
    Ok(if found.ok { Exit::DONE } else { Exit::FAILED })
}
