//! The other side: serves handlers and ingresses to a runtime, over standard streams.
//!
//! Requests are answered beside one another, each as its answer is there. A panic of a handler is an `internal` error
//! and the process goes on. The end of the input is the end: whoever asked is gone.

use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;

use extension::{
    BoxFuture, EventType, Handler, Ingress, IngressEntry, PreparedIngress, PreparedRoute, Secret,
    SecretError, Secrets,
};
use serde::de::DeserializeOwned;
use serde_json::Value;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::convert;
use crate::line::{self, Line};
use crate::wire::{
    Answer, Capabilities, DecideParams, DecideResult, DeliveryBody, ErrorBody, ErrorCode, InitializeParams,
    InitializeResult, MatchBody, PrepareEntryParams, PrepareEntryResult, PrepareRouteParams,
    PrepareRouteResult, REQUEST_BYTES_MAX, ReceiveParams, ReceiveResult, ReleaseEntryParams,
    ReleaseRouteParams, Request, SecretBody, Software, VERSION_MAX, VERSION_MIN, method,
};

/// Answers that wait to be written.
const ANSWERS_MAX: usize = 64;

/// What an extension serves.
#[derive(Debug)]
pub struct Guest {
    /// Its name and version.
    pub software: Software,
    /// Its handlers.
    pub handlers: Vec<Arc<dyn Handler>>,
    /// Its types of entries.
    pub ingresses: Vec<Arc<dyn Ingress>>,
}

/// Why serving ended before the input did.
#[derive(Debug, Error)]
pub enum ServeError {
    /// A stream failed.
    #[error("the streams to the runtime failed")]
    Stream(#[from] io::Error),
    /// A line has more than [`REQUEST_BYTES_MAX`] bytes.
    #[error("the runtime sent a line of more than {REQUEST_BYTES_MAX} bytes")]
    TooLong,
}

/// What was prepared, by its handle.
#[derive(Debug, Default)]
struct Prepared {
    routes: HashMap<String, Arc<dyn PreparedRoute>>,
    entries: HashMap<String, Arc<dyn PreparedIngress>>,
}

#[derive(Debug)]
struct Serving {
    guest: Guest,
    prepared: Mutex<Prepared>,
}

impl Guest {
    /// Answers requests until the input ends.
    ///
    /// # Errors
    /// [`ServeError`] when a stream fails or a line is too long.
    pub async fn serve(
        self,
        input: impl AsyncRead + Unpin,
        output: impl AsyncWrite + Unpin + Send + 'static,
    ) -> Result<(), ServeError> {
        let serving = Arc::new(Serving { guest: self, prepared: Mutex::default() });
        let (answers, lines) = mpsc::channel(ANSWERS_MAX);
        let mut tasks = JoinSet::new();
        tasks.spawn(write(lines, output));
        let ended = serving.read(input, &answers, &mut tasks).await;
        // What is still being answered has nobody to go to.
        tasks.shutdown().await;
        ended
    }
}

/// Writes answers in the order they come. When nobody reads them any more, the input ends as well.
async fn write(mut lines: mpsc::Receiver<Vec<u8>>, mut output: impl AsyncWrite + Unpin) {
    while let Some(line) = lines.recv().await {
        if output.write_all(&line).await.is_err() || output.flush().await.is_err() {
            return;
        }
    }
}

impl Serving {
    async fn read(
        self: &Arc<Self>,
        input: impl AsyncRead + Unpin,
        answers: &mpsc::Sender<Vec<u8>>,
        tasks: &mut JoinSet<()>,
    ) -> Result<(), ServeError> {
        let mut input = BufReader::new(input);
        let mut is_initialized = false;
        loop {
            let line = match line::read(&mut input, REQUEST_BYTES_MAX).await? {
                Line::Whole(line) => line,
                Line::TooLong => return Err(ServeError::TooLong),
                Line::End => return Ok(()),
            };
            while tasks.try_join_next().is_some() {}
            let request = match serde_json::from_slice::<Request<Value>>(&line) {
                Ok(request) => request,
                Err(error) => {
                    let code = if error.is_data() { ErrorCode::InvalidRequest } else { ErrorCode::Parse };
                    send(answers, None, Err(code.because("the line is not a request"))).await;
                    continue;
                }
            };
            if request.method == method::INITIALIZE || !is_initialized {
                let answer = self.initialize(&request, is_initialized);
                is_initialized |= answer.is_ok();
                if request.id.is_some() {
                    send(answers, request.id, answer).await;
                }
                continue;
            }
            let (serving, answers) = (Arc::clone(self), answers.clone());
            tasks.spawn(async move {
                let id = request.id;
                let answer = caught(serving.answer(request)).await;
                let answer = answer.unwrap_or_else(|| {
                    Err(ErrorCode::Internal.because("the extension failed by a bug of its own"))
                });
                if id.is_some() {
                    send(&answers, id, answer).await;
                }
            });
        }
    }

    /// Agrees on a version. Nothing else is answered before that.
    fn initialize(&self, request: &Request<Value>, again: bool) -> Result<Value, ErrorBody> {
        if request.method != method::INITIALIZE || again {
            return Err(ErrorCode::NotInitialized.because("`initialize` comes first, and once"));
        }
        let params: InitializeParams = parameters(request.params.clone())?;
        let protocol = params.protocol_max.min(VERSION_MAX);
        if protocol < params.protocol_min.max(VERSION_MIN) {
            let message = format!(
                "the runtime speaks versions {} to {}, and this extension {VERSION_MIN} to {VERSION_MAX}",
                params.protocol_min, params.protocol_max
            );
            return Err(ErrorCode::UnsupportedVersion.because(message));
        }
        let capabilities = Capabilities {
            handlers: self.guest.handlers.iter().map(|handler| handler.name().to_string()).collect(),
            ingresses: self.guest.ingresses.iter().map(|it| it.entry_type().to_owned()).collect(),
        };
        Ok(result(&InitializeResult { protocol, extension: self.guest.software.clone(), capabilities }))
    }

    async fn answer(&self, request: Request<Value>) -> Result<Value, ErrorBody> {
        match request.method.as_str() {
            method::PREPARE_ROUTE => self.prepare_route(parameters(request.params)?),
            method::DECIDE => self.decide(parameters(request.params)?).await,
            method::RELEASE_ROUTE => {
                let params: ReleaseRouteParams = parameters(request.params)?;
                self.prepared().routes.remove(&params.route);
                Ok(Value::Null)
            }
            method::PREPARE_ENTRY => self.prepare_entry(parameters(request.params)?),
            method::RECEIVE => self.receive(parameters(request.params)?).await,
            method::RELEASE_ENTRY => {
                let params: ReleaseEntryParams = parameters(request.params)?;
                self.prepared().entries.remove(&params.entry);
                Ok(Value::Null)
            }
            _unknown => Err(ErrorCode::MethodNotFound.because("there is no such method")),
        }
    }

    fn prepared(&self) -> std::sync::MutexGuard<'_, Prepared> {
        self.prepared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn prepare_route(&self, params: PrepareRouteParams) -> Result<Value, ErrorBody> {
        let handler = self.guest.handlers.iter().find(|known| known.name().as_str() == params.handler);
        let handler = handler.ok_or_else(|| ErrorCode::UnknownName.because("there is no such handler"))?;
        let route = handler.prepare(&params.config).map_err(convert::faulting)?;
        let takes = |word: &String| EventType::new(word).is_ok_and(|of| route.takes_announcement(&of));
        let answer = PrepareRouteResult {
            describe: route.describe(),
            leads_to: Some(route.leads_to()),
            ignores_work: route.ignores_work(),
            announcements: params.announcements.iter().filter(|word| takes(word)).cloned().collect(),
        };
        self.prepared().routes.insert(params.route, Arc::from(route));
        Ok(result(&answer))
    }

    async fn decide(&self, params: DecideParams) -> Result<Value, ErrorBody> {
        let route = self.prepared().routes.get(&params.route).cloned();
        let route =
            route.ok_or_else(|| ErrorCode::UnknownHandle.because("no route was prepared under it"))?;
        let input =
            convert::asked(params).map_err(|error| ErrorCode::InvalidParams.because(error.to_string()))?;
        let wants = route.decide(&input).await.map_err(convert::undecided)?;
        Ok(result(&DecideResult { matched: wants.map(MatchBody::from) }))
    }

    fn prepare_entry(&self, params: PrepareEntryParams) -> Result<Value, ErrorBody> {
        let kinds = &self.guest.ingresses;
        let kind = kinds.iter().find(|known| known.entry_type() == params.entry_type);
        let kind = kind.ok_or_else(|| ErrorCode::UnknownName.because("there is no such type of entry"))?;
        let invalid = |what: &str| ErrorCode::InvalidParams.because(format!("`{what}` is not one"));
        let entry = IngressEntry {
            name: params.name.parse().map_err(|_error| invalid("name"))?,
            scope: params.scope.parse().map_err(|_error| invalid("scope"))?,
            secret_names: params.secret_names,
            config: params.config,
        };
        let prepared = kind.prepare(&entry).map_err(convert::faulting)?;
        let answer =
            PrepareEntryResult { describe: prepared.describe(), body_bytes_max: prepared.body_bytes_max() };
        self.prepared().entries.insert(params.entry, Arc::from(prepared));
        Ok(result(&answer))
    }

    async fn receive(&self, mut params: ReceiveParams) -> Result<Value, ErrorBody> {
        let entry = self.prepared().entries.get(&params.entry).cloned();
        let entry =
            entry.ok_or_else(|| ErrorCode::UnknownHandle.because("no entry was prepared under it"))?;
        let secrets = Handed(std::mem::take(&mut params.secrets));
        let request =
            convert::received(params).map_err(|error| ErrorCode::InvalidParams.because(error.to_string()))?;
        let deliveries = entry.receive(&request, &secrets).await.map_err(convert::refusing)?;
        let deliveries = deliveries.into_iter().map(DeliveryBody::from).collect();
        Ok(result(&ReceiveResult { deliveries }))
    }
}

/// The secrets that came with a request.
#[derive(Debug)]
struct Handed(Vec<SecretBody>);

impl Secrets for Handed {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Secret, SecretError>> {
        let found = self.0.iter().find(|secret| secret.name == name);
        let read = match found {
            Some(SecretBody { value: Some(value), .. }) => Ok(Secret::new(value.clone())),
            Some(SecretBody { problem, .. }) => Err(problem.clone().unwrap_or_default()),
            None => Err("the entry does not name it".to_owned()),
        };
        let read = read.map_err(|reason| SecretError { name: name.to_owned(), reason });
        Box::pin(async move { read })
    }
}

fn parameters<T: DeserializeOwned>(params: Value) -> Result<T, ErrorBody> {
    // What serde says may quote a value.
    serde_json::from_value(params)
        .map_err(|_source| ErrorCode::InvalidParams.because("the parameters are not those of the method"))
}

fn result(of: &impl serde::Serialize) -> Value {
    serde_json::to_value(of).expect("a result of the wire is JSON")
}

async fn send(answers: &mpsc::Sender<Vec<u8>>, id: Option<u64>, answer: Result<Value, ErrorBody>) {
    let (result, error) = match answer {
        Ok(result) => (Some(result), None),
        Err(error) => (None, Some(error)),
    };
    let line = line::of(&Answer { jsonrpc: "2.0".to_owned(), id, result, error });
    // Whoever would write it has ended, and so does the input.
    drop(answers.send(line).await);
}

/// Polls a future to its end; none when it panics.
async fn caught<F: Future>(future: F) -> Option<F::Output> {
    let mut future = std::pin::pin!(future);
    poll_fn(|context| {
        // What a panic left half done is dropped with the future, and nobody looks at it before.
        match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
            Ok(poll) => poll.map(Some),
            Err(_said) => Poll::Ready(None),
        }
    })
    .await
}
