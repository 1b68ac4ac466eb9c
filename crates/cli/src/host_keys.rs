//! The host keys of an ssh server, for a `known_hosts` that is written for the first time, and shown to be compared.

use std::time::Duration;

use git_ssh::scan::scan;
use tokio::time::Instant;
use url::Url;

use crate::cluster::Failure;

const SSH_PORT: u16 = 22;
const TIMEOUT: Duration = Duration::from_secs(20);

/// Host and port of a URL of ssh.
pub(crate) fn address(url: &Url) -> (&str, u16) {
    (url.host_str().unwrap_or_default(), url.port().unwrap_or(SSH_PORT))
}

/// Reads the keys, as lines of `known_hosts`.
pub(crate) async fn read(url: &Url, report_line: &impl Fn(&str)) -> Result<String, Failure> {
    let (host, port) = address(url);
    let keys = scan(host, port, Instant::now() + TIMEOUT).await;
    let keys = keys.map_err(|error| Failure::Request {
        what: format!("read the host keys of {host}:{port}"),
        why: error_chain::condensed(&error),
    })?;
    let mut lines = String::new();
    for key in keys {
        report_line(&format!(
            "host key of {host}:{port}: {} {}; compare it with what the operator of the server publishes",
            key.key_type, key.fingerprint
        ));
        lines.push_str(&key.line);
        lines.push('\n');
    }
    Ok(lines)
}
