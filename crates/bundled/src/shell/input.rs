//! `input.json`: what a command takes in, as a file, because text of an Event has no business in arguments, in
//! a shell line or in a path.

use extension::{EventView, InputView, Payload, RunRequest, WorkspaceFacts};
use serde::Serialize;

/// The version of the file's form. Keys may be added within it.
const VERSION: u32 = 1;

#[derive(Serialize)]
struct Head<'a> {
    version: u32,
    execution: String,
    attempt: i64,
    work: String,
    kind: &'a str,
    scope: &'a str,
    trigger: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_of: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    workspace: Option<&'a WorkspaceFacts>,
}

/// The bytes of the file. Bodies are copied as they were accepted: numbers keep their digits, objects their
/// order.
pub(super) fn render(request: &RunRequest) -> Vec<u8> {
    let head = Head {
        version: VERSION,
        execution: request.execution.to_string(),
        attempt: request.attempt.number(),
        work: request.work.to_string(),
        kind: request.kind.as_str(),
        scope: request.scope.as_str(),
        trigger: request.trigger.to_string(),
        retry_of: request.retry_of.map(|failed| failed.to_string()),
        workspace: request.workspace.as_deref(),
    };
    let mut file = open_object(&head);
    file.extend_from_slice(b",\n\"event\":");
    match request.inputs.iter().find(|input| input.event.id == request.trigger) {
        Some(trigger) => push_input(&mut file, trigger),
        None => file.extend_from_slice(b"null"),
    }
    file.extend_from_slice(b",\n\"inputs\":[");
    for (index, input) in request.inputs.iter().enumerate() {
        file.extend_from_slice(if index == 0 { b"\n" } else { b",\n" });
        push_input(&mut file, input);
    }
    file.extend_from_slice(b"]}\n");
    file
}

/// The bytes of a file with one Event, as it stands among the inputs.
pub(super) fn render_one(input: &InputView) -> Vec<u8> {
    let mut file = Vec::new();
    push_input(&mut file, input);
    file.push(b'\n');
    file
}

fn push_input(file: &mut Vec<u8>, input: &InputView) {
    file.extend(open_object::<EventView>(&input.event));
    if input.is_context {
        file.extend_from_slice(b",\"context\":true");
    }
    file.extend_from_slice(b",\"payload\":");
    file.extend_from_slice(input.payload.as_ref().map_or(b"null", Payload::as_bytes));
    file.push(b'}');
}

/// A struct as JSON, its closing brace left off.
fn open_object<T: Serialize>(value: &T) -> Vec<u8> {
    let mut json = serde_json::to_vec(value).expect("a struct of texts and numbers becomes JSON");
    assert_eq!(json.pop(), Some(b'}'), "a struct with fields becomes an object");
    json
}
