//! A daemon whose database is at the other end of an encrypted connection.
//!
//! `OPEN_CONDUIT_TEST_POSTGRES_TLS` names a server and a role that it lets in encrypted and not otherwise, and
//! `OPEN_CONDUIT_TEST_POSTGRES_CA` the issuer of its certificate. Without them these tests fail, unless
//! `OPEN_CONDUIT_TEST_WITHOUT` names `postgres`.

use std::path::PathBuf;
use std::process::Command;

use super::home::{Home, Ran, Served};

/// The server's address and its issuer; none where PostgreSQL was left out.
fn server() -> Option<(String, PathBuf)> {
    let variable = |name: &str| std::env::var(format!("OPEN_CONDUIT_TEST_POSTGRES{name}"));
    if let (Ok(url), Ok(authority)) = (variable("_TLS"), variable("_CA")) {
        return Some((url, authority.into()));
    }
    let without = std::env::var("OPEN_CONDUIT_TEST_WITHOUT").unwrap_or_default();
    let left_out = without.split([',', ' ']).any(|word| word == "postgres");
    assert!(left_out, "set OPEN_CONDUIT_TEST_POSTGRES_TLS and _CA, or OPEN_CONDUIT_TEST_WITHOUT=postgres");
    None
}

/// The daemon of a home, on a database that this test has for itself.
fn serve(home: &Home, url: &str, authority: &std::path::Path) -> Command {
    let mut command = home.command(&["serve", "--json"]);
    command.env("OPEN_CONDUIT_DATABASE", url).env("SSL_CERT_FILE", authority);
    command
}

#[test]
fn a_daemon_works_over_an_encrypted_connection_and_trusts_nobody_else() {
    let Some((url, authority)) = server() else { return };
    let schema = format!("conduit_tls_{}", std::process::id());
    let psql = |statement: &str| {
        #[expect(clippy::disallowed_methods, reason = "the server's own client sees what the daemon did")]
        let output = Command::new("psql")
            .args([&url, "--no-psqlrc", "--tuples-only", "--no-align", "--set", "ON_ERROR_STOP=1"])
            .args(["--command", statement])
            .output()
            .unwrap();
        Ran::of(output).code(0).out
    };
    psql(&format!("CREATE SCHEMA {schema}"));
    let own = format!("{url}&options=-csearch_path%3D{schema}");

    let home = Home::usual();
    let mut served = Served::spawn(serve(&home, &own, &authority));
    served.places = served.line();
    home.emit("say.hello", "1");
    let encrypted = psql(
        "SELECT count(*) > 1 AND bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
         WHERE usename = current_user",
    );
    assert_eq!(encrypted.trim(), "t");
    assert_eq!(served.interrupt(), 0);

    // Another authority, though it is a certificate: the server is not who it says.
    let stranger = home.file("stranger.pem", include_str!("encrypted/stranger.pem"));
    let refused = Ran::of(serve(&home, &own, &stranger).output().unwrap());
    assert_ne!(refused.code, 0, "{}", refused.out);
    assert!(!refused.err.contains(&url), "an address has a password in it: {}", refused.err);

    // And the role proves that what worked was encrypted.
    let plain = Ran::of(serve(&home, &own.replace("?sslmode=require&", "?"), &authority).output().unwrap());
    assert_ne!(plain.code, 0, "{}", plain.out);
    psql(&format!("DROP SCHEMA {schema} CASCADE"));
}
