//! The Python SDK and its example, against the same suite and under a daemon.

use std::path::PathBuf;
use std::process::Command;

use super::super::home::{Home, emit, text};
use super::*;

fn sdk() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sdk/python")
}

/// Whether somebody has left Python out, by typing so.
fn is_left_out() -> bool {
    let without = std::env::var("OPEN_CONDUIT_TEST_WITHOUT").unwrap_or_default();
    without.split(',').any(|component| component == "python")
}

#[test]
#[expect(clippy::disallowed_methods, reason = "what is tested is a program")]
fn the_python_sdk_passes_its_own_tests() {
    if is_left_out() {
        println!("left out: python");
        return;
    }
    let ran = Command::new("python3")
        .args(["-B", "-m", "unittest", "discover", "tests"])
        .current_dir(sdk())
        .output()
        .unwrap_or_else(|error| {
            panic!("python3 is missing ({error}); OPEN_CONDUIT_TEST_WITHOUT=python leaves it out")
        });
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

/// The example, as the daemon would run it.
struct Tickets(Subject);

impl ProcessDriver for Tickets {
    async fn answers(&self, before: Option<u32>) -> u32 {
        self.0.answers(before).await
    }

    fn freeze(&self, pid: u32) {
        self.0.freeze(pid);
    }

    fn kill(&self, pid: u32) {
        self.0.kill(pid);
    }
}

impl HandlerDriver for Tickets {
    fn handler(&self) -> Arc<dyn Handler> {
        HandlerDriver::handler(&self.0)
    }

    fn name(&self) -> &'static str {
        "tickets"
    }

    async fn check(&self, sample: Sample) -> Result<(), Vec<ConfigProblem>> {
        HandlerDriver::check(&self.0, sample).await
    }

    fn route(&self) -> Box<dyn PreparedRoute> {
        self.0.route()
    }

    fn questions(&self) -> Vec<(RouteInput, Option<Match>)> {
        let wants = Match::Attach {
            keys: vec![Key { source: SourceName::known("tickets"), external_id: "7".parse().unwrap() }],
            kind: WorkKind::known("tickets.ticket"),
            lifecycle: Lifecycle::Standing,
            concurrency: None,
            reopens: Vec::new(),
        };
        let ticket =
            |urgency: u32| format!("{{\"ticket\": 7, \"urgency\": {urgency}, \"text\": \"\u{e9}\\n\"}}");
        vec![
            (event("desk", "ticket.changed", None, &ticket(3)), Some(wants)),
            (event("desk", "other", None, &ticket(3)), None),
        ]
    }
}

#[tokio::test]
async fn a_handler_in_python_conforms_and_survives_its_end() {
    if is_left_out() {
        println!("left out: python");
        return;
    }
    let example = sdk().join("examples/tickets.py").to_string_lossy().into_owned();
    let process = process("tickets", vec!["python3".to_owned(), "-B".to_owned(), example]);
    process.settle(Duration::from_mins(1)).await;
    let (right, wrong) = (json!({ "at_least": 3 }), json!({}));
    let subject = Subject { name: "tickets", right, wrong, process: Some(process) };
    assert_eq!(check_handler_process(&Tickets(subject)).await, Ok(()));
}

#[test]
fn an_event_reaches_a_run_by_way_of_the_python_example() {
    if is_left_out() {
        println!("left out: python");
        return;
    }
    let example = sdk().join("examples/tickets.py");
    let home = Home::empty();
    home.configure(&format!(
        "[daemon]\napi_listen = \"127.0.0.1:0\"\nwebhook_listen = \"127.0.0.1:0\"\n\n\
         [[extensions]]\nname = \"tickets\"\ncommand = [\"python3\", \"-B\", \"{}\"]\n\n\
         [[scopes]]\nname = \"main\"\n\n[scopes.secrets]\ndesk = \"file:desk\"\n\n\
         [[scopes.bindings]]\nname = \"answer\"\nexecutor = \"shell\"\nconfig = {{ argv = [\"true\"] }}\n\n\
         [[scopes.routes]]\nname = \"urgent\"\nhandler = \"tickets\"\nbinding = \"answer\"\n\
         config = {{ at_least = 3 }}\n\n\
         [[scopes.extensions]]\nname = \"desk\"\ntype = \"tickets\"\nsecret_names = [\"desk\"]\n\
         config = {{ namespace = \"desk\" }}\n",
        example.display()
    ));
    let _served = home.serve();
    let mut words = emit("ticket.changed", "one");
    words.extend(["--payload-json", "{\"ticket\": 7, \"urgency\": 3}", "--wait"]);
    let sent = home.json(&words);
    assert_eq!(text(&sent, "/run/state"), "completed", "{sent}");
    assert_eq!(home.json(&["work", "list"])["items"][0]["kind"], "tickets.ticket");
    let doctor = home.json(&["doctor"]).to_string();
    assert!(doctor.contains("extension `tickets` answers: tickets 1.0"), "{doctor}");
    assert!(doctor.contains("/tickets/main/desk"), "{doctor}");
}
