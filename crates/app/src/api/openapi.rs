//! The OpenAPI document: written from the table of routes and from the types that are really sent.

use std::sync::LazyLock;

use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Map, Value, json};

use super::cloudevents;
use super::route::{Operation, ROUTES, Route};
use super::wire::{
    AcceptedBody, AgainBody, AppliedBody, ApplyBody, CancelledBody, ConfigBody, DoctorBody, EmitBody,
    EventBody, ExplainBody, ExplanationBody, HealthBody, InjectBody, LoginCodeBody, NeedsBody, OrderedBody,
    Page, PausedBody, PlanBody, Problem, RevokedBody, RunBody, RunPage, ScopeBody, SessionBody, StartBody,
    StatusBody, TimelineBody, TimerBody, WaitBody, WhyBody, WorkBody,
};

static DOCUMENT: LazyLock<Value> = LazyLock::new(write);

/// The document.
pub(crate) fn document() -> &'static Value {
    &DOCUMENT
}

/// How an answer's body is written.
enum Content {
    Json(Value),
    Other(&'static str),
}

/// What the document says about an operation, besides its route.
struct Described {
    /// Its name in generated clients.
    id: &'static str,
    summary: &'static str,
    request: Option<Value>,
    /// Statuses of answers that are no problem, each with the same body.
    statuses: &'static [u16],
    content: Content,
}

fn write() -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut generator = settings.into_generator();
    let problem = generator.subschema_for::<Problem>().to_value();
    let mut paths = Map::new();
    for route in &ROUTES {
        let path = paths.entry(route.path.replace("{*path}", "{path}")).or_insert_with(|| json!({}));
        let method = route.method.as_str().to_ascii_lowercase();
        path[method] = operation(route, &problem, &mut generator);
    }
    let schemas = generator.take_definitions(true);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Open Conduit",
            "version": "v1",
            "description": "Fields never disappear within v1. Every error is a problem with a stable `code`.",
        },
        "servers": [{ "url": "/" }],
        "security": [{ "token": [] }],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
        },
    })
}

fn operation(route: &Route, problem: &Value, generator: &mut SchemaGenerator) -> Value {
    let described = describe(route.operation, generator);
    let content = match described.content {
        Content::Json(schema) => json!({ "application/json": { "schema": schema } }),
        Content::Other(kind) => json!({ kind: {} }),
    };
    let mut responses = Map::new();
    for status in described.statuses {
        responses.insert(status.to_string(), json!({ "description": described.summary, "content": content }));
    }
    let refusal = json!({
        "description": "A problem; its `code` says which.",
        "content": { "application/problem+json": { "schema": problem } },
    });
    responses.insert("default".to_owned(), refusal);
    let mut operation = json!({
        "operationId": described.id,
        "summary": described.summary,
        "parameters": parameters(route),
        "responses": responses,
    });
    if let Some(schema) = described.request {
        let mut content = json!({ "application/json": { "schema": schema } });
        if route.operation == Operation::EmitEvent {
            content[cloudevents::STRUCTURED] = json!({ "schema": cloudevents::schema() });
            // In binary mode, by the headers, a body of any type is the CloudEvent's data.
            content["*/*"] = json!({});
        }
        operation["requestBody"] = json!({ "content": content });
    }
    if route.operation == Operation::Health {
        operation["security"] = json!([]);
    }
    operation
}

fn parameters(route: &Route) -> Vec<Value> {
    let text = json!({ "type": "string" });
    let in_path = route.path.split('/').filter_map(|segment| {
        let name = segment.strip_prefix('{')?.strip_suffix('}')?.trim_start_matches('*');
        Some(json!({ "name": name, "in": "path", "required": true, "schema": text }))
    });
    let in_query = route.query.iter().map(|name| json!({ "name": name, "in": "query", "schema": text }));
    let header = |name: &str| json!({ "name": name, "in": "header", "schema": text });
    let mut in_header = Vec::new();
    if route.operation == Operation::EmitEvent {
        in_header.push(header("Idempotency-Key"));
        in_header.extend(cloudevents::HEADERS.iter().copied().map(header));
    } else if matches!(route.operation, Operation::ReplayEvent | Operation::RetryWork | Operation::RunAgain) {
        in_header.push(header("Idempotency-Key"));
    } else if route.operation == Operation::Stream {
        in_header.push(header("Last-Event-ID"));
    }
    in_path.chain(in_query).chain(in_header).collect()
}

/// A row of the document whose answer is JSON.
macro_rules! answers {
    ($generator:ident, $id:literal, $summary:literal, $answer:ty) => {
        answers!($generator, $id, $summary, $answer, None, &[200])
    };
    ($generator:ident, $id:literal, $summary:literal, $answer:ty, $request:expr, $statuses:expr) => {
        Described {
            id: $id,
            summary: $summary,
            request: $request,
            statuses: $statuses,
            content: Content::Json($generator.subschema_for::<$answer>().to_value()),
        }
    };
}

fn other(id: &'static str, summary: &'static str, kind: &'static str) -> Described {
    Described { id, summary, request: None, statuses: &[200], content: Content::Other(kind) }
}

#[expect(clippy::too_many_lines, reason = "it is a table, with a row for each operation")]
fn describe(operation: Operation, g: &mut SchemaGenerator) -> Described {
    match operation {
        Operation::EmitEvent => {
            let request = Some(g.subschema_for::<EmitBody>().to_value());
            answers!(
                g,
                "emitEvent",
                "Accept an Event, durably: 202 for a new one, 200 for one that was accepted before",
                AcceptedBody,
                request,
                &[200, 202]
            )
        }
        Operation::ExplainEvent => {
            let request = Some(g.subschema_for::<ExplainBody>().to_value());
            answers!(
                g,
                "explainEvent",
                "Say what an Event would do, without effect",
                ExplanationBody,
                request,
                &[200]
            )
        }
        Operation::ReplayEvent => {
            let request = Some(g.subschema_for::<AgainBody>().to_value());
            answers!(
                g,
                "replayEvent",
                "Have an Event looked at again, as a new one that it causes: 202 for a new one, 200 for one that was \
                 accepted before",
                AcceptedBody,
                request,
                &[200, 202]
            )
        }
        Operation::RunAgain => {
            let request = Some(g.subschema_for::<AgainBody>().to_value());
            answers!(
                g,
                "runAgain",
                "Send what the trigger of a run said, as a new Event from the operator: 202 for a new one, 200 for one \
                 that was accepted before",
                AcceptedBody,
                request,
                &[200, 202]
            )
        }
        Operation::RetryWork => {
            let request = Some(g.subschema_for::<AgainBody>().to_value());
            answers!(
                g,
                "retryWork",
                "Start the next run of a Work that failed: 202 for a new request, 200 for one that was accepted before",
                AcceptedBody,
                request,
                &[200, 202]
            )
        }
        Operation::InterruptWork => {
            let request = Some(g.subschema_for::<AgainBody>().to_value());
            answers!(
                g,
                "interruptWork",
                "End the live run of a Work and keep the Work with its pending input: 202 for a new order, 200 for one \
                 that was given before",
                OrderedBody,
                request,
                &[200, 202]
            )
        }
        Operation::InjectWork => {
            let request = Some(g.subschema_for::<InjectBody>().to_value());
            answers!(
                g,
                "injectWork",
                "Give the live run of a Work something to take in: 202 for a new order, 200 for one that was given \
                 before",
                OrderedBody,
                request,
                &[200, 202]
            )
        }
        Operation::ApplyConfig => {
            let request = Some(g.subschema_for::<ApplyBody>().to_value());
            answers!(
                g,
                "applyConfig",
                "Apply a configuration; a bad one changes nothing",
                AppliedBody,
                request,
                &[200]
            )
        }
        Operation::ListEvents => answers!(g, "listEvents", "List Events, newest first", Page<EventBody>),
        Operation::ShowEvent => answers!(g, "showEvent", "Show an Event with its payload", EventBody),
        Operation::ListWork => answers!(g, "listWork", "List Works, newest first", Page<WorkBody>),
        Operation::ShowWork => answers!(g, "showWork", "Show a Work with its pending input", WorkBody),
        Operation::CancelWork => answers!(g, "cancelWork", "Cancel a Work and its live run", CancelledBody),
        Operation::ReleaseWork => answers!(g, "releaseWork", "Let a Work go on that is held", WorkBody),
        Operation::ListWaits => {
            answers!(g, "listWaits", "List what Works wait for, newest first", Page<WaitBody>)
        }
        Operation::ListTimers => {
            answers!(g, "listTimers", "List the timers to come, the next one first", Page<TimerBody>)
        }
        Operation::ListRuns => {
            answers!(g, "listRuns", "List runs, newest first; a search looks at the newest 10,000", RunPage)
        }
        Operation::Timeline => {
            answers!(g, "timeline", "Show what ran within the last hours, a row for each Work", TimelineBody)
        }
        Operation::Needs => answers!(g, "needs", "Show what waits for a person", NeedsBody),
        Operation::ListStarts => {
            answers!(g, "listStarts", "List starts of the daemon, newest first", Page<StartBody>)
        }
        Operation::ShowRun => answers!(g, "showRun", "Show a run", RunBody),
        Operation::RunWhy => answers!(g, "whyRun", "Say why a run started", WhyBody),
        Operation::ShowConfig => answers!(g, "showConfig", "Show the configuration in force", ConfigBody),
        Operation::ListScopes => answers!(
            g,
            "listScopes",
            "List the scopes of the configuration in force, with what holds in each",
            Page<ScopeBody>
        ),
        Operation::PauseScope => {
            answers!(g, "pauseScope", "Let a scope start nothing more, until it is resumed", PausedBody)
        }
        Operation::ResumeScope => answers!(g, "resumeScope", "Let a paused scope start again", PausedBody),
        Operation::PlanConfig => {
            answers!(g, "planConfig", "Say what applying the home's file would change", PlanBody)
        }
        Operation::LoginCode => {
            answers!(g, "issueLoginCode", "Give out a one-time code that logs a browser in", LoginCodeBody)
        }
        Operation::ListSessions => {
            answers!(
                g,
                "listSessions",
                "List the browsers that are logged in, oldest first",
                Page<SessionBody>
            )
        }
        Operation::RevokeSession => answers!(g, "revokeSession", "End a browser's session", RevokedBody),
        Operation::RevokeSessions => {
            answers!(g, "revokeSessions", "End every browser's session", RevokedBody)
        }
        Operation::Doctor => answers!(g, "doctor", "Look for what is wrong", DoctorBody),
        Operation::Status => answers!(g, "status", "Show the state of the daemon", StatusBody),
        Operation::Health => answers!(g, "health", "Say that the daemon answers", HealthBody),
        Operation::OpenApi => other("openapi", "This document", "application/json"),
        Operation::Metrics => other("metrics", "What the daemon counts", "application/openmetrics-text"),
        Operation::Stream => other(
            "stream",
            "Follow the change feed: each event's id is a cursor to resume from",
            "text/event-stream",
        ),
        Operation::RunLog => other(
            "runLog",
            "Read a piece of a run's output; `X-Log-From` and `X-Log-Size` say which, `X-Run-State` whether more comes",
            "text/plain",
        ),
        Operation::RunArtifact => {
            other("runArtifact", "Download a file that a run left behind", "application/octet-stream")
        }
    }
}
