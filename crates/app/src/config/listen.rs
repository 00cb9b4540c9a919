//! Where the daemon listens, and the rule that it never listens to the world without a declared proxy.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use super::model::Daemon;
use super::problem::Problem;

/// The default port of the API.
const API_PORT: u16 = 7717;
/// The default port of the webhook listener.
const WEBHOOK_PORT: u16 = 7718;
/// The most host names that webhooks may be addressed to.
const PUBLIC_HOSTS_MAX: usize = 16;
/// The most bytes of a host name.
const HOST_BYTES_MAX: usize = 253;
/// What turns the webhook listener off.
const OFF: &str = "off";

/// What the daemon listens on. It is fixed while it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listeners {
    /// The API.
    pub(crate) api: SocketAddr,
    /// Webhooks; none when turned off.
    pub(crate) webhooks: Option<SocketAddr>,
    /// Host names that webhooks may be addressed to, in lower case.
    pub(crate) public_hosts: Vec<String>,
    /// Whether a proxy that speaks TLS stands before the listeners.
    pub(crate) behind_proxy: bool,
}

impl Listeners {
    /// What a model says about listeners.
    ///
    /// # Errors
    /// Every address or host that is not one, and every address that is open to others without a proxy.
    pub(crate) fn of(daemon: &Daemon) -> Result<Self, Vec<Problem>> {
        let mut problems = Vec::new();
        let api = address("daemon.api_listen", daemon.api_listen.as_deref(), API_PORT, &mut problems);
        let webhooks = match daemon.webhook_listen.as_deref() {
            Some(OFF) => None,
            written => address("daemon.webhook_listen", written, WEBHOOK_PORT, &mut problems),
        };
        if let (Some(api), Some(webhooks)) = (api, webhooks)
            && api == webhooks
            && api.port() != 0
        {
            let message = "webhooks and the API need an address each";
            problems.push(Problem::new("daemon.webhook_listen", "address_taken", message));
        }
        for (path, address) in [("daemon.api_listen", api), ("daemon.webhook_listen", webhooks)] {
            if address.is_some_and(|address| !address.ip().is_loopback()) && !daemon.behind_proxy {
                let message = "only a loopback address may be listened on, unless `behind_proxy = true` says that a \
                               proxy with TLS stands before it";
                problems.push(Problem::new(path, "open_without_proxy", message));
            }
        }
        if daemon.public_hosts.len() > PUBLIC_HOSTS_MAX {
            let message = format!("may have at most {PUBLIC_HOSTS_MAX} entries");
            problems.push(Problem::new("daemon.public_hosts", "too_many", message));
        }
        for (index, host) in daemon.public_hosts.iter().enumerate() {
            if !is_host(host) {
                let message = "must be a host name without scheme, port or path, such as `hooks.example.com`";
                problems.push(Problem::new(format!("daemon.public_hosts[{index}]"), "invalid_host", message));
            }
        }
        let (Some(api), true) = (api, problems.is_empty()) else { return Err(problems) };
        let public_hosts = daemon.public_hosts.iter().map(|host| host.to_ascii_lowercase()).collect();
        Ok(Self { api, webhooks, public_hosts, behind_proxy: daemon.behind_proxy })
    }
}

fn address(path: &str, written: Option<&str>, port: u16, problems: &mut Vec<Problem>) -> Option<SocketAddr> {
    let Some(written) = written else {
        return Some(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
    };
    let address = written.parse().ok();
    if address.is_none() {
        let message = format!("must be an address and a port, such as `127.0.0.1:{port}`");
        problems.push(Problem::new(path, "invalid_address", message));
    }
    address
}

fn is_host(text: &str) -> bool {
    let is_label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    text.len() <= HOST_BYTES_MAX && text.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use super::{Daemon, Listeners};

    fn daemon(api: &str, webhooks: &str) -> Daemon {
        Daemon {
            api_listen: Some(api.to_owned()),
            webhook_listen: Some(webhooks.to_owned()),
            ..Daemon::default()
        }
    }

    #[track_caller]
    fn refuses(daemon: &Daemon, expected: &[(&str, &str)]) {
        let problems = Listeners::of(daemon).unwrap_err();
        let found: Vec<(&str, &str)> =
            problems.iter().map(|problem| (problem.path.as_str(), problem.code)).collect();
        assert_eq!(found, expected);
        assert!(!format!("{problems:?}").contains("S3CRET"), "{problems:?}");
    }

    #[test]
    fn of_defaults_to_two_loopback_ports() {
        let listeners = Listeners::of(&Daemon::default()).unwrap();
        assert_eq!(listeners.api.to_string(), "127.0.0.1:7717");
        assert_eq!(listeners.webhooks.unwrap().to_string(), "127.0.0.1:7718");
    }

    #[test]
    fn of_takes_free_ports_ipv6_and_off() {
        let listeners = Listeners::of(&daemon("127.0.0.1:0", "127.0.0.1:0")).unwrap();
        assert_eq!(listeners.api.port(), 0);
        assert!(Listeners::of(&daemon("[::1]:7717", "off")).unwrap().webhooks.is_none());
    }

    #[test]
    fn of_refuses_an_open_address_without_a_proxy() {
        let mut open = daemon("0.0.0.0:7717", "192.0.2.1:7718");
        refuses(
            &open,
            &[("daemon.api_listen", "open_without_proxy"), ("daemon.webhook_listen", "open_without_proxy")],
        );
        open.behind_proxy = true;
        assert!(Listeners::of(&open).is_ok());
    }

    #[test]
    fn of_refuses_what_is_no_address_or_host() {
        let mut wrong = daemon("S3CRET", "localhost:1");
        wrong.public_hosts =
            vec!["https://S3CRET".to_owned(), "a.example.com:8".to_owned(), "Ok.Example".to_owned()];
        refuses(
            &wrong,
            &[
                ("daemon.api_listen", "invalid_address"),
                ("daemon.webhook_listen", "invalid_address"),
                ("daemon.public_hosts[0]", "invalid_host"),
                ("daemon.public_hosts[1]", "invalid_host"),
            ],
        );
        refuses(&daemon("127.0.0.1:1", "127.0.0.1:1"), &[("daemon.webhook_listen", "address_taken")]);
    }
}
