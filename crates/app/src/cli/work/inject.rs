//! `work inject`.

use clap::Args;
use serde_json::{Value, json};

use super::interrupt::said;
use crate::api::wire::{InjectBody, OrderedBody};
use crate::cli::Context;
use crate::cli::exit::Exit;
use crate::cli::failure::{Failure, Stop};
use crate::client::Route;

/// Give the run of a Work something to take in while it runs
///
/// It is an Event, and input of the Work: what the run does not prove to have taken in is given to the next one. It is
/// refused where the run's executor cannot do it.
#[derive(Debug, Args)]
pub(crate) struct InjectArgs {
    /// Its id, or the beginning of it
    #[arg(value_name = "WORK")]
    id: String,
    /// What to say; the payload is `{"text": "..."}`
    #[arg(value_name = "TEXT", conflicts_with = "payload_json", required_unless_present = "payload_json")]
    text: Option<String>,
    /// The payload itself
    #[arg(long, value_name = "JSON")]
    payload_json: Option<String>,
    /// What it is, such as `review.asked` [default: manual.message]
    #[arg(long = "type", value_name = "TYPE")]
    event_type: Option<String>,
    /// The name of the order; whoever gives it again uses the same one [default: a fresh one]
    #[arg(long, value_name = "ID")]
    delivery_id: Option<String>,
}

impl InjectArgs {
    fn payload(&self) -> Result<Option<Value>, Stop> {
        let Some(written) = &self.payload_json else {
            return Ok(self.text.as_ref().map(|text| json!({"text": text})));
        };
        serde_json::from_str(written).map(Some).map_err(|error| {
            Failure::usage(format!("the payload in --payload-json is not JSON, at line {}", error.line()))
                .hint("a text alone needs no --payload-json")
                .into()
        })
    }
}

pub(crate) async fn inject(args: &InjectArgs, context: &Context) -> Result<Exit, Stop> {
    let body = InjectBody {
        event_type: args.event_type.clone(),
        payload: args.payload()?,
        delivery_id: args.delivery_id.clone(),
    };
    let route = Route::new(&["work", &args.id, "inject"]);
    let ordered: OrderedBody = context.client()?.post(&route, &body).await?;
    let out = &context.out;
    if out.is_json() {
        out.object(&ordered)?;
    } else {
        out.sentence(&said(&ordered, "is given it"))?;
    }
    Ok(Exit::DONE)
}
