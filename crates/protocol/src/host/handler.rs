//! What stands in for a handler of another process.

use std::sync::{Arc, Mutex, PoisonError};

use extension::{
    BoxFuture, Code, ConfigProblem, EXTENSION_UNAVAILABLE, EventType, Handler, HandlerError, HandlerName,
    Match, PreparedRoute, RouteInput,
};
use serde_json::Value;

use super::connection::{CallError, Connection, is_forgotten};
use super::{CALL_WITHIN, Process, recall};
use crate::convert;
use crate::wire::{DecideResult, ErrorCode, PrepareRouteResult, ReleaseRouteParams, method};

#[derive(Debug)]
pub(super) struct Outside {
    process: Arc<Process>,
    name: HandlerName,
}

impl Outside {
    pub(super) const fn new(process: Arc<Process>, name: HandlerName) -> Self {
        Self { process, name }
    }
}

impl Handler for Outside {
    fn name(&self) -> HandlerName {
        self.name.clone()
    }

    /// It never refuses: whoever applies a configuration asks with [`Process::check_route`] first.
    fn prepare(&self, config: &Value) -> Result<Box<dyn PreparedRoute>, Vec<ConfigProblem>> {
        let known = recall(&self.process.routes, self.name.as_str(), config);
        Ok(Box::new(Route {
            process: Arc::clone(&self.process),
            handler: self.name.clone(),
            config: config.clone(),
            handle: self.process.handle(),
            known: Mutex::new(known),
            prepared: tokio::sync::Mutex::new(0),
        }))
    }
}

#[derive(Debug)]
struct Route {
    process: Arc<Process>,
    handler: HandlerName,
    config: Value,
    handle: String,
    /// What the process said about it last; none before it ever has.
    known: Mutex<Option<PrepareRouteResult>>,
    /// The start of the process that knows the handle.
    prepared: tokio::sync::Mutex<u64>,
}

impl Route {
    fn known<T>(&self, read: impl FnOnce(&PrepareRouteResult) -> T) -> Option<T> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(read)
    }

    /// Prepares it where that start of the process has not.
    async fn prepare(&self, connection: &Connection) -> Result<(), CallError> {
        let mut prepared = self.prepared.lock().await;
        if *prepared != connection.start {
            let handler = self.handler.as_str();
            let answer = self.process.prepare_route(connection, &self.handle, handler, &self.config).await?;
            *self.known.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
            *prepared = connection.start;
        }
        Ok(())
    }

    async fn ask(&self, input: &RouteInput) -> Result<Option<Match>, HandlerError> {
        let ready = self.process.ready().map_err(unavailable)?;
        let connection = &ready.connection;
        let held = |error: CallError| self.failure(error);
        self.prepare(connection).await.map_err(held)?;
        let params = convert::asking(&self.handle, input);
        let asked = connection.call::<DecideResult>(method::DECIDE, &params, CALL_WITHIN).await;
        let answer = match asked {
            Err(error) if is_forgotten(&error) => {
                *self.prepared.lock().await = 0;
                Err(error)
            }
            asked => asked,
        };
        let wants = answer.map_err(held)?.matched.map(convert::wanted).transpose();
        wants.map_err(|error| HandlerError {
            code: Code::known("bad_answer"),
            reason: format!("extension `{}` answered what cannot be done: {error}", self.process.name),
            is_final: false,
        })
    }

    fn failure(&self, error: CallError) -> HandlerError {
        let name = &self.process.name;
        match error {
            CallError::Unavailable(reason) => {
                unavailable(format!("extension `{name}` does not answer: {reason}"))
            }
            CallError::Refused(body) if body.code == ErrorCode::NotDecided.number() => {
                let data = body.data.unwrap_or_default();
                let word = data.reason.and_then(|word| word.parse().ok());
                HandlerError {
                    code: word.unwrap_or_else(|| Code::known("not_decided")),
                    reason: body.message,
                    is_final: data.is_final,
                }
            }
            // What it took when it was applied it does not know or take now: a matter of the extension, not the Event.
            CallError::Refused(body)
                if [ErrorCode::UnknownName, ErrorCode::UnknownHandle, ErrorCode::InvalidConfig]
                    .iter()
                    .any(|code| code.number() == body.code) =>
            {
                unavailable(format!("extension `{name}` refuses the route: {}", body.message))
            }
            CallError::Refused(body) => HandlerError {
                code: Code::known("extension_error"),
                reason: format!("extension `{name}` failed with error {}: {}", body.code, body.message),
                is_final: false,
            },
            error @ (CallError::Unreadable { .. } | CallError::TooLong) => HandlerError {
                code: Code::known("bad_answer"),
                reason: format!("extension `{name}` cannot be asked: {error}"),
                is_final: false,
            },
        }
    }
}

fn unavailable(reason: String) -> HandlerError {
    HandlerError { code: Code::known(EXTENSION_UNAVAILABLE), reason, is_final: false }
}

impl PreparedRoute for Route {
    fn describe(&self) -> String {
        self.known(|known| known.describe.clone())
            .unwrap_or_else(|| format!("what extension `{}` decides", self.process.name))
    }

    fn leads_to(&self) -> String {
        self.known(|known| known.leads_to.clone())
            .flatten()
            .unwrap_or_else(|| "the Work that its handler names".to_owned())
    }

    fn ignores_work(&self) -> bool {
        self.known(|known| known.ignores_work).unwrap_or(false)
    }

    fn takes_announcement(&self, event_type: &EventType) -> bool {
        // Before it has said what it asks for, an announcement waits for it like any other Event.
        self.known(|known| known.announcements.iter().any(|word| word == event_type.as_str())).unwrap_or(true)
    }

    fn decide<'a>(&'a self, input: &'a RouteInput) -> BoxFuture<'a, Result<Option<Match>, HandlerError>> {
        Box::pin(self.ask(input))
    }
}

impl Drop for Route {
    fn drop(&mut self) {
        if let Ok(ready) = self.process.ready() {
            ready.connection.notify(method::RELEASE_ROUTE, ReleaseRouteParams { route: self.handle.clone() });
        }
    }
}
