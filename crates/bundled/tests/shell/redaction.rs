//! Secret values stay out of what is written.

use extension::Outcome;
use serde_json::json;

use super::fixture::{Granting, Home, request, secret};

#[tokio::test]
async fn secrets_are_kept_out_of_the_output_wherever_it_is_cut() {
    let home = Home::new();
    // Two writes with the value cut in the middle, and one far beyond what is read at a time.
    let command = "printf 'a hun'; sleep 0.2; printf 'ter22 b\\n'; \
                   head -c 65533 /dev/zero | tr '\\0' .; printf \"$TOKEN\"; echo; echo $SHORT; echo \"$PEM\"";
    let mut request = request(json!({"command": command}));
    let pem = "-----BEGIN KEY-----\nAAAABBBB\n-----END KEY-----\n";
    request.secrets = vec![secret("TOKEN", "hunter22"), secret("SHORT", "abc"), secret("PEM", pem)];
    let result = home.try_run(request, &Granting::default()).await.unwrap();
    assert_eq!((result.outcome, result.summary.as_deref()), (Outcome::Completed, Some("***")));
    let output = home.output().await;
    assert!(output.starts_with("a *** b\n...."), "{}", &output[..40]);
    assert!(output.ends_with(".***\nabc\n***\n***\n***\n\n"), "{:?}", &output[output.len() - 40..]);
    assert_eq!(output.len(), "a *** b\n".len() + 65533 + "***\nabc\n***\n***\n***\n\n".len());
}

#[tokio::test]
async fn output_held_open_by_a_grandchild_does_not_hold_up_the_end() {
    let home = Home::new();
    let mut request =
        request(json!({"command": "setsid sleep 300 & echo hunter22", "stop_grace_seconds": 1}));
    request.secrets = vec![secret("TOKEN", "hunter22")];
    let result = home.try_run(request, &Granting::default()).await.unwrap();
    assert_eq!(result.outcome, Outcome::Completed);
    assert_eq!(home.output().await, "***\n");
    assert!(home.marked().is_empty());
}
