//! The interface as one table: every path and method, and what answers it.
//!
//! The server finds its way with this table and the OpenAPI document is written from it, so the two agree.

use hyper::Method;

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    Health,
    Metrics,
    OpenApi,
    EmitEvent,
    ListEvents,
    ShowEvent,
    ReplayEvent,
    ExplainEvent,
    Stream,
    ListWork,
    ShowWork,
    CancelWork,
    RetryWork,
    InterruptWork,
    InjectWork,
    ReleaseWork,
    ListWaits,
    ListTimers,
    ListRuns,
    Timeline,
    Needs,
    ListStarts,
    ShowRun,
    RunLog,
    RunWhy,
    RunAgain,
    RunArtifact,
    ShowConfig,
    ListScopes,
    PauseScope,
    ResumeScope,
    PlanConfig,
    ApplyConfig,
    LoginCode,
    ListSessions,
    RevokeSession,
    RevokeSessions,
    Doctor,
    Status,
}

/// A path and a method.
#[derive(Debug)]
pub(crate) struct Route<O: 'static = Operation> {
    /// The method.
    pub(crate) method: Method,
    /// The path; `{id}` is one segment and `{*path}` is the rest.
    pub(crate) path: &'static str,
    /// What it asks for.
    pub(crate) operation: O,
    /// The query parameters it takes.
    pub(crate) query: &'static [&'static str],
}

/// A path that is read, with the query parameters it takes.
pub(crate) const fn get<O: Copy>(
    path: &'static str,
    operation: O,
    query: &'static [&'static str],
) -> Route<O> {
    Route { method: Method::GET, path, operation, query }
}

/// A path that something is sent to.
pub(crate) const fn post<O: Copy>(path: &'static str, operation: O) -> Route<O> {
    Route { method: Method::POST, path, operation, query: &[] }
}

/// A path that something is taken away at.
pub(crate) const fn delete<O: Copy>(path: &'static str, operation: O) -> Route<O> {
    Route { method: Method::DELETE, path, operation, query: &[] }
}

/// The path of the one route that carries load. It is looked at first.
const EMIT: &str = "/v1/events";

/// Every route.
pub(crate) static ROUTES: [Route; 39] = [
    Route { method: Method::POST, path: EMIT, operation: Operation::EmitEvent, query: &["scope"] },
    get(
        EMIT,
        Operation::ListEvents,
        &["cursor", "limit", "scope", "type", "source", "key_source", "key_external_id", "work", "outcome"],
    ),
    post("/v1/events/explain", Operation::ExplainEvent),
    get("/v1/events/{id}", Operation::ShowEvent, &[]),
    post("/v1/events/{id}/replay", Operation::ReplayEvent),
    get("/v1/stream", Operation::Stream, &["cursor", "kinds", "scope"]),
    get(
        "/v1/work",
        Operation::ListWork,
        &["cursor", "limit", "scope", "kind", "state", "key_source", "key_external_id"],
    ),
    get("/v1/work/{id}", Operation::ShowWork, &[]),
    post("/v1/work/{id}/cancel", Operation::CancelWork),
    post("/v1/work/{id}/retry", Operation::RetryWork),
    post("/v1/work/{id}/interrupt", Operation::InterruptWork),
    post("/v1/work/{id}/inject", Operation::InjectWork),
    post("/v1/work/{id}/release", Operation::ReleaseWork),
    get(
        "/v1/waits",
        Operation::ListWaits,
        &["cursor", "limit", "state", "scope", "work", "key_source", "key_external_id"],
    ),
    get("/v1/timers", Operation::ListTimers, &["cursor", "limit"]),
    get(
        "/v1/runs",
        Operation::ListRuns,
        &[
            "cursor",
            "limit",
            "order",
            "scope",
            "work_kind",
            "state",
            "trigger_source",
            "q",
            "key_source",
            "key_external_id",
            "work",
        ],
    ),
    get("/v1/runs/timeline", Operation::Timeline, &["span"]),
    get("/v1/runs/{id}", Operation::ShowRun, &[]),
    get("/v1/runs/{id}/log", Operation::RunLog, &["from", "bytes"]),
    get("/v1/runs/{id}/why", Operation::RunWhy, &[]),
    post("/v1/runs/{id}/again", Operation::RunAgain),
    get("/v1/runs/{id}/artifacts/{*path}", Operation::RunArtifact, &[]),
    get("/v1/config", Operation::ShowConfig, &[]),
    get("/v1/scopes", Operation::ListScopes, &["cursor", "limit", "name"]),
    post("/v1/scopes/{name}/pause", Operation::PauseScope),
    post("/v1/scopes/{name}/resume", Operation::ResumeScope),
    get("/v1/config/plan", Operation::PlanConfig, &[]),
    post("/v1/config/apply", Operation::ApplyConfig),
    post("/v1/sessions/codes", Operation::LoginCode),
    get("/v1/sessions", Operation::ListSessions, &[]),
    delete("/v1/sessions", Operation::RevokeSessions),
    delete("/v1/sessions/{id}", Operation::RevokeSession),
    get("/v1/needs", Operation::Needs, &[]),
    get("/v1/daemon/starts", Operation::ListStarts, &["cursor", "limit"]),
    get("/v1/doctor", Operation::Doctor, &["check_secrets"]),
    get("/v1/status", Operation::Status, &[]),
    get("/v1/openapi.json", Operation::OpenApi, &[]),
    get("/healthz", Operation::Health, &[]),
    get("/metrics", Operation::Metrics, &[]),
];

/// Where a path leads.
#[derive(Debug)]
pub(crate) enum Found<'p, O: 'static = Operation> {
    /// To this route, with the raw text of what stands for its `{...}`s.
    Route(&'static Route<O>, [&'p str; 2]),
    /// The path is known, with another method.
    OtherMethod(&'static str),
    /// Nowhere.
    Nothing,
}

/// Whether a path belongs to the interface; every other is a page's.
pub(crate) fn is_interface(path: &str) -> bool {
    matches!(path.split('/').nth(1), Some("v1" | "healthz" | "metrics"))
}

/// Finds the route of a request in the interface's table.
pub(crate) fn find<'p>(method: &Method, path: &'p str) -> Found<'p> {
    find_in(&ROUTES, method, path)
}

/// Finds the route of a request in a table. `HEAD` is answered as `GET`.
pub(crate) fn find_in<'p, O>(routes: &'static [Route<O>], method: &Method, path: &'p str) -> Found<'p, O> {
    let method = if *method == Method::HEAD { &Method::GET } else { method };
    let mut others = (false, false, false);
    for route in routes {
        let Some(captures) = captures(route.path, path) else { continue };
        if route.method == *method {
            return Found::Route(route, captures);
        }
        others.0 |= route.method == Method::GET;
        others.1 |= route.method == Method::POST;
        others.2 |= route.method == Method::DELETE;
    }
    match others {
        (true, true, true) => Found::OtherMethod("GET, POST, DELETE"),
        (true, true, false) => Found::OtherMethod("GET, POST"),
        (true, false, true) => Found::OtherMethod("GET, DELETE"),
        (true, false, false) => Found::OtherMethod("GET"),
        (false, true, true) => Found::OtherMethod("POST, DELETE"),
        (false, true, false) => Found::OtherMethod("POST"),
        (false, false, true) => Found::OtherMethod("DELETE"),
        (false, false, false) => Found::Nothing,
    }
}

fn captures<'p>(template: &str, path: &'p str) -> Option<[&'p str; 2]> {
    if !template.contains('{') {
        return (template == path).then_some([""; 2]);
    }
    let mut captures = [""; 2];
    let mut count = 0;
    let mut rest = path.strip_prefix('/')?;
    let mut segments = template[1..].split('/').peekable();
    while let Some(segment) = segments.next() {
        let (head, tail) = rest.split_once('/').map_or((rest, None), |(head, tail)| (head, Some(tail)));
        if segment.starts_with("{*") {
            captures[count] = rest;
            return (!rest.is_empty()).then_some(captures);
        } else if segment.starts_with('{') {
            if head.is_empty() {
                return None;
            }
            captures[count] = head;
            count += 1;
        } else if segment != head {
            return None;
        }
        match (tail, segments.peek()) {
            (Some(tail), Some(_)) => rest = tail,
            (None, None) => return Some(captures),
            (Some(_), None) | (None, Some(_)) => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use hyper::Method;

    use super::{Found, Operation, find};

    #[track_caller]
    fn leads(method: &Method, path: &str, expected: Option<(Operation, [&str; 2])>) {
        let found = match find(method, path) {
            Found::Route(route, captures) => Some((route.operation, captures)),
            Found::OtherMethod(_) | Found::Nothing => None,
        };
        assert_eq!(found, expected, "{method} {path}");
    }

    #[test]
    fn find_tells_paths_apart() {
        leads(&Method::POST, "/v1/events", Some((Operation::EmitEvent, ["", ""])));
        leads(&Method::GET, "/v1/events", Some((Operation::ListEvents, ["", ""])));
        leads(&Method::HEAD, "/v1/events/ev_1", Some((Operation::ShowEvent, ["ev_1", ""])));
        leads(&Method::POST, "/v1/events/explain", Some((Operation::ExplainEvent, ["", ""])));
        leads(&Method::GET, "/v1/runs/r/log", Some((Operation::RunLog, ["r", ""])));
        leads(&Method::POST, "/v1/scopes/a%2Fb/pause", Some((Operation::PauseScope, ["a%2Fb", ""])));
        leads(&Method::GET, "/v1/runs/r/artifacts/a/b", Some((Operation::RunArtifact, ["r", "a/b"])));
        for nowhere in
            ["/", "", "/v1", "/v1/events/", "/v1/runs//log", "/v1/runs/r/artifacts/", "/v1/runs/r/log/x"]
        {
            leads(&Method::GET, nowhere, None);
        }
    }

    #[test]
    fn find_says_which_method_a_path_takes() {
        assert!(matches!(find(&Method::DELETE, "/v1/events"), Found::OtherMethod("GET, POST")));
        assert!(matches!(find(&Method::GET, "/v1/work/w/cancel"), Found::OtherMethod("POST")));
        assert!(matches!(find(&Method::POST, "/v1/stream"), Found::OtherMethod("GET")));
        assert!(matches!(find(&Method::POST, "/v1/sessions"), Found::OtherMethod("GET, DELETE")));
        assert!(matches!(find(&Method::GET, "/v1/sessions/s"), Found::OtherMethod("DELETE")));
        assert!(matches!(find(&Method::GET, "/v2"), Found::Nothing));
    }
}
