//! `nats`: the event on a subject of NATS.
//!
//! A client of its own: a publisher that says one thing and goes needs five lines of the protocol, and no crate with
//! reconnects, JetStream and a second TLS provider.

mod connection;
mod key;
mod login;
mod server;
mod tls;

use tokio::net::TcpStream;

use crate::edge::Http;
use crate::error::{Error, Retry};
use crate::forward;
use crate::notification::{Notification, Sent};
use crate::target::Target;
use connection::Connection;
use login::Login;
use server::Server;

/// As NATS's own clients wait for one of several servers.
const CONNECT_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(5);

/// Checks a target.
pub(super) fn check(target: &Target) -> Result<(), Error> {
    Server::all(&target.address)?;
    subject(target)?;
    Login::from_target(target)?;
    Ok(())
}

/// Publishes the event at the first server that takes it.
pub(super) async fn send(http: Http<'_>, notification: &Notification) -> Result<Sent, Error> {
    let target = http.target;
    let (servers, subject, login) = (
        Server::all(&target.address)?,
        subject(target)?,
        Login::from_target(target)?,
    );
    let payload = go_text::json::to_vec(&*forward::worded(notification));
    let context = format!("error publishing event to subject {subject}");
    let mut last = Error::invalid("there is no server");
    for server in &servers {
        match publish(target, server, &login, subject, &payload).await {
            Ok(()) => return Ok(Sent::default()),
            Err(error) => {
                let is_final = error.retry == Retry::Never;
                last = error;
                if is_final {
                    break;
                }
            }
        }
    }
    Err(last.within(&context))
}

async fn publish(
    target: &Target,
    server: &Server,
    login: &Login,
    subject: &str,
    payload: &[u8],
) -> Result<(), Error> {
    let place = (server.host.as_str(), server.port);
    let connected = tokio::time::timeout(CONNECT_TIMEOUT, TcpStream::connect(place)).await;
    let failed = |problem: &str| {
        Error::passing(format!(
            "error connecting to server {}:{}: {problem}",
            server.host, server.port
        ))
    };
    let stream = connected
        .map_err(|_| failed("it did not answer in time"))?
        .map_err(|error| failed(&error.to_string()))?;
    let mut connection = Connection::open(stream, server, target.tls.as_ref()).await?;
    connection.log_in(server, login).await?;
    connection.publish(subject, payload).await
}

/// A subject goes into a line of the protocol: it has no spaces, and is one line.
fn subject(target: &Target) -> Result<&str, Error> {
    let subject = target.channel.as_str();
    if subject.is_empty() {
        return Err(Error::invalid("NATS subject (channel) cannot be empty"));
    }
    if subject.len() > 1024 || subject.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err(Error::invalid(
            "invalid NATS subject (channel): it must have no spaces and at most 1024 bytes",
        ));
    }
    Ok(subject)
}

#[cfg(test)]
mod tests;
