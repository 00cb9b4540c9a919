//! Between the views that extensions see and what travels.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use extension::{
    ConcurrencyKey, ConfigProblem, End, EventView, HandlerError, HttpDelivery, IngressDelivery,
    IngressRefusal, Key, Lifecycle, Match, Payload, Revision, RouteInput, ScopeView, Sequence, Timestamp,
    WorkView,
};

use crate::wire::{
    DecideParams, DeliveryBody, DropBody, ErrorBody, ErrorCode, ErrorData, EventBody, HeaderBody, KeyBody,
    MatchBody, ProblemBody, ReceiveParams, ScopeBody, WorkBody,
};

/// What of a message could not be read, without its value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{field}`: {reason}")]
pub(crate) struct Unreadable {
    field: &'static str,
    reason: String,
}

fn read<T: std::str::FromStr>(field: &'static str, text: &str) -> Result<T, Unreadable>
where
    T::Err: fmt::Display,
{
    text.parse().map_err(|error: T::Err| Unreadable { field, reason: error.to_string() })
}

fn maybe<T: std::str::FromStr>(field: &'static str, text: Option<&String>) -> Result<Option<T>, Unreadable>
where
    T::Err: fmt::Display,
{
    text.map(|text| read(field, text)).transpose()
}

fn moment(field: &'static str, text: &str) -> Result<Timestamp, Unreadable> {
    Timestamp::parse(text).map_err(|error| Unreadable { field, reason: error.to_string() })
}

fn bytes(field: &'static str, text: &str) -> Result<Vec<u8>, Unreadable> {
    let reason = "is not base64".to_owned();
    STANDARD.decode(text).map_err(|_source| Unreadable { field, reason })
}

fn payload(text: String) -> Result<Payload, Unreadable> {
    Payload::new(text.into_bytes())
        .map_err(|error| Unreadable { field: "payload", reason: error.to_string() })
}

impl From<&Key> for KeyBody {
    fn from(key: &Key) -> Self {
        Self { source: key.source.to_string(), external_id: key.external_id.to_string() }
    }
}

fn key(body: &KeyBody) -> Result<Key, Unreadable> {
    Ok(Key { source: read("source", &body.source)?, external_id: read("external_id", &body.external_id)? })
}

fn keys(bodies: &[KeyBody]) -> Result<Vec<Key>, Unreadable> {
    bodies.iter().map(key).collect()
}

/// The question about an Event, under a route's handle.
pub(crate) fn asking(route: &str, input: &RouteInput) -> DecideParams {
    let event = &input.event;
    DecideParams {
        route: route.to_owned(),
        event: EventBody {
            id: event.id.to_string(),
            sequence: event.sequence.number(),
            source: event.source.to_string(),
            delivery_id: event.delivery_id.to_string(),
            event_type: event.event_type.to_string(),
            scope: event.scope.to_string(),
            key: event.key.as_ref().map(KeyBody::from),
            work: event.work.map(|id| id.to_string()),
            parent: event.parent.map(|id| id.to_string()),
            root: event.root.to_string(),
            depth: event.depth,
            emitted_by: event.emitted_by.map(|id| id.to_string()),
            occurred_at: event.occurred_at.map(|at| at.to_string()),
            accepted_at: event.accepted_at.to_string(),
        },
        payload: String::from_utf8_lossy(input.payload_bytes()).into_owned(),
        scope: ScopeBody {
            name: input.scope.name.to_string(),
            lineage: input.scope.lineage.iter().map(ToString::to_string).collect(),
        },
        work: input.work.as_ref().map(|work| WorkBody {
            id: work.id.to_string(),
            kind: work.kind.to_string(),
            scope: work.scope.to_string(),
            state: work.state.to_owned(),
            revision: work.revision.number(),
        }),
    }
}

/// The question as a handler reads it.
pub(crate) fn asked(params: DecideParams) -> Result<RouteInput, Unreadable> {
    let event = &params.event;
    let view = EventView {
        id: read("event.id", &event.id)?,
        sequence: Sequence::from_number(event.sequence),
        source: read("event.source", &event.source)?,
        delivery_id: read("event.delivery_id", &event.delivery_id)?,
        event_type: read("event.type", &event.event_type)?,
        scope: read("event.scope", &event.scope)?,
        key: event.key.as_ref().map(key).transpose()?,
        work: maybe("event.work", event.work.as_ref())?,
        parent: maybe("event.parent", event.parent.as_ref())?,
        root: read("event.root", &event.root)?,
        depth: event.depth,
        emitted_by: maybe("event.emitted_by", event.emitted_by.as_ref())?,
        occurred_at: event.occurred_at.as_deref().map(|at| moment("event.occurred_at", at)).transpose()?,
        accepted_at: moment("event.accepted_at", &event.accepted_at)?,
    };
    let lineage =
        params.scope.lineage.iter().map(|name| read("scope.lineage", name)).collect::<Result<_, _>>();
    let scope = ScopeView { name: read("scope.name", &params.scope.name)?, lineage: lineage? };
    let work = params.work.as_ref().map(work).transpose()?;
    Ok(RouteInput::new(view, payload(params.payload)?, scope, work))
}

fn work(body: &WorkBody) -> Result<WorkView, Unreadable> {
    const STATES: [&str; 6] = ["ready", "running", "waiting", "completed", "failed", "cancelled"];
    let state = STATES.into_iter().find(|known| *known == body.state);
    let reason = "is not a state of a Work".to_owned();
    Ok(WorkView {
        id: read("work.id", &body.id)?,
        kind: read("work.kind", &body.kind)?,
        scope: read("work.scope", &body.scope)?,
        state: state.ok_or(Unreadable { field: "work.state", reason })?,
        revision: Revision::from_number(body.revision),
    })
}

impl From<Match> for MatchBody {
    fn from(wants: Match) -> Self {
        let text = |concurrency: Option<ConcurrencyKey>| concurrency.map(|key| key.to_string());
        let bodies = |keys: &[Key]| keys.iter().map(KeyBody::from).collect();
        match wants {
            Match::Attach { keys, kind, lifecycle, concurrency, reopens } => Self::Attach {
                keys: bodies(&keys),
                kind: kind.to_string(),
                lifecycle: lifecycle.as_str().to_owned(),
                concurrency: text(concurrency),
                reopens: reopens.into_iter().map(|end| end.as_str().to_owned()).collect(),
            },
            Match::Addressed => Self::Addressed,
            Match::Fresh { kind, lifecycle, keys, concurrency } => Self::Fresh {
                kind: kind.to_string(),
                lifecycle: lifecycle.as_str().to_owned(),
                keys: bodies(&keys),
                concurrency: text(concurrency),
            },
            Match::Drop { code, reason } => Self::Drop { code: code.to_string(), reason },
        }
    }
}

/// What a handler wants, as it answered.
pub(crate) fn wanted(body: MatchBody) -> Result<Match, Unreadable> {
    Ok(match body {
        MatchBody::Attach { keys: bodies, kind, lifecycle: how, concurrency, reopens } => {
            if bodies.is_empty() {
                return Err(Unreadable { field: "keys", reason: "is empty".to_owned() });
            }
            Match::Attach {
                keys: keys(&bodies)?,
                kind: read("kind", &kind)?,
                lifecycle: lifecycle(&how)?,
                concurrency: maybe("concurrency", concurrency.as_ref())?,
                reopens: reopens.iter().map(|word| end(word)).collect::<Result<_, _>>()?,
            }
        }
        MatchBody::Addressed => Match::Addressed,
        MatchBody::Fresh { kind, lifecycle: how, keys: bodies, concurrency } => Match::Fresh {
            kind: read("kind", &kind)?,
            lifecycle: lifecycle(&how)?,
            keys: keys(&bodies)?,
            concurrency: maybe("concurrency", concurrency.as_ref())?,
        },
        MatchBody::Drop { code, reason } => Match::Drop { code: read("code", &code)?, reason },
    })
}

fn lifecycle(word: &str) -> Result<Lifecycle, Unreadable> {
    let known = [Lifecycle::Once, Lifecycle::RunOnce, Lifecycle::Standing];
    let reason = "is not `once`, `run_once` or `standing`".to_owned();
    known.into_iter().find(|known| known.as_str() == word).ok_or(Unreadable { field: "lifecycle", reason })
}

fn end(word: &str) -> Result<End, Unreadable> {
    let known = [End::Completed, End::Failed, End::Cancelled];
    let reason = "is not `completed`, `failed` or `cancelled`".to_owned();
    known.into_iter().find(|known| known.as_str() == word).ok_or(Unreadable { field: "reopens", reason })
}

/// A request of the webhook listener, without its secrets.
pub(crate) fn receiving(entry: &str, request: &HttpDelivery) -> ReceiveParams {
    let headers = request.headers.iter();
    ReceiveParams {
        entry: entry.to_owned(),
        path_tail: request.path_tail.clone(),
        headers: headers
            .map(|(name, value)| HeaderBody { name: name.clone(), value: STANDARD.encode(value) })
            .collect(),
        body: STANDARD.encode(&request.body),
        received_at: request.received_at.to_string(),
        fresh_id: request.fresh_id.clone(),
        secrets: Vec::new(),
    }
}

/// A request of the webhook listener, as an ingress reads it.
pub(crate) fn received(params: ReceiveParams) -> Result<HttpDelivery, Unreadable> {
    let headers = params.headers.into_iter();
    Ok(HttpDelivery {
        path_tail: params.path_tail,
        headers: headers
            .map(|header| Ok((header.name, bytes("headers", &header.value)?)))
            .collect::<Result<_, _>>()?,
        body: bytes("body", &params.body)?,
        received_at: moment("received_at", &params.received_at)?,
        fresh_id: params.fresh_id,
    })
}

impl From<IngressDelivery> for DeliveryBody {
    fn from(delivery: IngressDelivery) -> Self {
        Self {
            delivery_id: delivery.delivery_id.to_string(),
            event_type: delivery.event_type.to_string(),
            key: delivery.key.as_ref().map(KeyBody::from),
            occurred_at: delivery.occurred_at.map(|at| at.to_string()),
            payload: String::from_utf8_lossy(delivery.payload.as_bytes()).into_owned(),
            drop: delivery.drop.map(|(code, reason)| DropBody { code: code.to_string(), reason }),
        }
    }
}

/// A delivery, as an ingress answered it.
pub(crate) fn delivered(body: DeliveryBody) -> Result<IngressDelivery, Unreadable> {
    let drop = body.drop.map(|drop| Ok((read("drop.code", &drop.code)?, drop.reason))).transpose()?;
    Ok(IngressDelivery {
        delivery_id: read("delivery_id", &body.delivery_id)?,
        event_type: read("type", &body.event_type)?,
        key: body.key.as_ref().map(key).transpose()?,
        occurred_at: body.occurred_at.as_deref().map(|at| moment("occurred_at", at)).transpose()?,
        payload: payload(body.payload)?,
        drop,
    })
}

/// A refusal as an error.
pub(crate) fn refusing(refusal: IngressRefusal) -> ErrorBody {
    let (word, message) = match refusal {
        IngressRefusal::NotFound => ("not_found", String::new()),
        IngressRefusal::Unauthorized => ("unauthorized", String::new()),
        IngressRefusal::Malformed(reason) => ("malformed", reason),
        IngressRefusal::Unavailable(reason) => ("unavailable", reason),
    };
    let data = ErrorData { refusal: Some(word.to_owned()), ..ErrorData::default() };
    ErrorBody { data: Some(data), ..ErrorCode::Refused.because(message) }
}

/// The refusal that an error is; none when it is another error.
pub(crate) fn refused(error: &ErrorBody) -> Option<IngressRefusal> {
    if error.code != ErrorCode::Refused.number() {
        return None;
    }
    let reason = error.message.clone();
    match error.data.as_ref()?.refusal.as_deref()? {
        "not_found" => Some(IngressRefusal::NotFound),
        "unauthorized" => Some(IngressRefusal::Unauthorized),
        "malformed" => Some(IngressRefusal::Malformed(reason)),
        "unavailable" => Some(IngressRefusal::Unavailable(reason)),
        _other => None,
    }
}

/// Problems of a configuration as an error.
pub(crate) fn faulting(problems: Vec<ConfigProblem>) -> ErrorBody {
    let problems = problems.into_iter();
    let problems =
        problems.map(|problem| ProblemBody { path: problem.path, message: problem.message }).collect();
    let data = ErrorData { problems, ..ErrorData::default() };
    ErrorBody { data: Some(data), ..ErrorCode::InvalidConfig.because("the configuration is refused") }
}

/// The problems that an error names; none when it is another error.
pub(crate) fn faulted(error: &ErrorBody) -> Option<Vec<ConfigProblem>> {
    if error.code != ErrorCode::InvalidConfig.number() {
        return None;
    }
    let named = error.data.iter().flat_map(|data| &data.problems);
    let mut problems: Vec<ConfigProblem> =
        named.map(|problem| ConfigProblem::at(problem.path.clone(), problem.message.clone())).collect();
    if problems.is_empty() {
        problems.push(ConfigProblem::at("", error.message.clone()));
    }
    Some(problems)
}

/// A handler that could not decide, as an error.
pub(crate) fn undecided(error: HandlerError) -> ErrorBody {
    let HandlerError { code, reason, is_final } = error;
    let data = ErrorData { reason: Some(code.to_string()), is_final, ..ErrorData::default() };
    ErrorBody { data: Some(data), ..ErrorCode::NotDecided.because(reason) }
}
