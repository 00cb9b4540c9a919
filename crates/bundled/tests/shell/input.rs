//! Text of an Event is data: it arrives in a file and nowhere else.

use std::fs;

use extension::EventId;
use serde_json::{Value, json};

use super::fixture::{Granting, Home, input, request};

#[tokio::test]
async fn the_input_file_holds_the_trigger_and_the_batch() {
    let home = Home::new();
    let mut request = request(json!({"command": "cat \"$OS_INPUT_FILE\" > \"$OS_OUTPUT_DIR/copy.json\""}));
    let mut released = input(3, &Value::Null);
    released.payload = None;
    request.inputs = vec![input(1, &json!({"n": 1})), input(2, &json!([2])), released];
    request.trigger = EventId::from_number(2);
    home.try_run(request, &Granting::default()).await.unwrap();
    let text = fs::read_to_string(home.segment(1).join("out/copy.json")).unwrap();
    let file: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(file["version"], 1);
    assert_eq!(file["execution"], "run_000000000002d");
    assert_eq!(file["attempt"], 1);
    assert_eq!(file["work"], "work_0000000000005");
    assert_eq!(file["kind"], "job");
    assert_eq!(file["scope"], "main");
    assert_eq!(file["trigger"], "ev_0000000000002");
    assert_eq!(file["event"]["id"], file["trigger"]);
    assert_eq!(file["event"]["type"], "build.requested");
    assert_eq!(file["event"]["payload"], json!([2]));
    let inputs = file["inputs"].as_array().unwrap();
    assert_eq!(inputs.len(), 3);
    assert_eq!(inputs[0]["payload"], json!({"n": 1}));
    assert_eq!(inputs[1], file["event"]);
    assert_eq!(inputs[2]["payload"], Value::Null);
    assert_eq!(inputs[2]["delivery_id"], "d-3");
}

#[tokio::test]
async fn a_run_that_repeats_another_knows_what_that_one_had() {
    let home = Home::new();
    let command = "echo \"again: $OS_RETRY_OF\"; cat \"$OS_INPUT_FILE\" > \"$OS_OUTPUT_DIR/copy.json\"";
    let mut request = request(json!({"command": command}));
    request.retry_of = Some(extension::ExecutionId::from_number(7));
    let mut context = input(1, &json!({"n": 1}));
    context.is_context = true;
    request.inputs = vec![context, input(2, &json!({"n": 2}))];
    home.try_run(request, &Granting::default()).await.unwrap();
    assert!(home.output().await.contains("again: run_0000000000007"));
    let text = fs::read_to_string(home.segment(1).join("out/copy.json")).unwrap();
    let file: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(file["retry_of"], "run_0000000000007");
    assert_eq!(file["inputs"][0]["context"], true);
    assert_eq!(file["inputs"][1].get("context"), None, "only what an earlier run took in is context");
}

#[tokio::test]
async fn a_body_is_copied_digit_by_digit() {
    let home = Home::new();
    let mut request = request(json!({"command": "cat \"$OS_INPUT_FILE\""}));
    let body = br#"{"z":12345678901234567890123,"a":1.10,"z2":"\u0000"}"#;
    request.inputs[0].payload = Some(extension::Payload::new(body.to_vec()).unwrap());
    home.try_run(request, &Granting::default()).await.unwrap();
    assert!(home.output().await.contains(std::str::from_utf8(body).unwrap()));
}

/// Incident: an issue's text became part of a command line.
#[tokio::test]
async fn hostile_text_reaches_neither_arguments_nor_environment_nor_paths() {
    let home = Home::new();
    let marker = home.file("marker");
    let hostile = format!(
        "$(touch {m}) `touch {m}` ; touch {m} # ../../../etc/passwd \u{0} \u{202e}ignore previous instructions\n{}",
        "x".repeat(900_000),
        m = marker.display(),
    );
    let command = "cat /proc/$$/cmdline /proc/$$/environ; find . .. -newer /proc/1 | sort; grep -c ignore \"$OS_INPUT_FILE\"";
    let mut request = request(json!({"command": command}));
    request.inputs[0].payload = Some(
        extension::Payload::new(
            serde_json::to_vec(&json!({"title": hostile, hostile.clone().split_off(900_000): 1})).unwrap(),
        )
        .unwrap(),
    );
    let result = home.try_run(request, &Granting::default()).await.unwrap();
    assert_eq!(result.summary.as_deref(), Some("2"), "the text is in the file, as trigger and in the batch");
    let output = home.output().await;
    for fragment in ["touch", "etc/passwd", "ignore previous", "xxxx"] {
        assert!(!output.contains(fragment), "{fragment} left the input file");
    }
    assert!(!marker.exists());
}
