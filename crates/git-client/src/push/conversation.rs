//! One push over http or ssh: the advertisement, then a request and its answer.

use std::cell::{Cell, RefCell};
use std::io::{BufRead, Read, Write};
use std::rc::Rc;

use git_ssh::{Bounds, Program};
use gix::protocol::transport::client::blocking_io::http::{Http as _, PostBodyDataKind};
use tokio::time::Instant;
use transport::stop::Stop;

use super::packet_line;
use crate::connection::{Connection, Failure};
use crate::error::Error;
use crate::request::{Remote, Way};
use crate::session::{AGENT, MAX_REFS_BYTES};
use crate::ssh;

/// More than a report and what hooks print takes.
const MAX_ANSWER: u64 = 8 << 20;

/// A server that runs `git-receive-pack` for us.
pub(super) enum Conversation {
    Http {
        connection: Connection,
        base: String,
        failure: Failure,
        limit: Rc<Cell<u64>>,
        body: Box<dyn BufRead>,
    },
    Ssh {
        reader: ssh::Counted,
        writer: git_ssh::Writer,
        outcome: git_ssh::Outcome,
    },
}

impl Conversation {
    /// Opens it up to where the advertisement can be read. Must be called on a thread of the runtime's blocking pool.
    pub(super) fn open(remote: &Remote, deadline: Instant, stop: &Stop) -> Result<Self, Error> {
        match &remote.way {
            Way::Http {
                client,
                authorization,
            } => {
                let failure = Failure::default();
                let limit = Rc::new(Cell::new(MAX_REFS_BYTES));
                let mut connection = Connection::new(
                    client.clone(),
                    authorization.clone(),
                    deadline,
                    limit.clone(),
                    failure.clone(),
                );
                let base = remote.url.as_str().trim_end_matches('/').to_owned();
                let url = format!("{base}/info/refs?service={}", Program::ReceivePack.name());
                let agent = format!("User-Agent: {AGENT}");
                let got = connection.get(&url, &base, [agent.as_str()]);
                let got = got.map_err(|error| explained(&failure, &error))?;
                let mut conversation = Self::Http {
                    base: connection.redirected_base_url().unwrap_or(base),
                    connection,
                    failure,
                    limit,
                    body: Box::new(got.body),
                };
                conversation.skip_service()?;
                Ok(conversation)
            }
            Way::Ssh(settings) => {
                let bounds = Bounds {
                    deadline,
                    received: MAX_REFS_BYTES,
                    cancel: stop.token().clone(),
                };
                let access = settings.access()?;
                let (reader, writer, outcome) =
                    ssh::open(Program::ReceivePack, &remote.url, &access, &bounds)?;
                Ok(Self::Ssh {
                    reader,
                    writer,
                    outcome,
                })
            }
        }
    }

    /// Over http, the advertisement comes after a section that names the service.
    fn skip_service(&mut self) -> Result<(), Error> {
        let announced = self.read(|reader| {
            let first = packet_line::read(reader)?;
            let rest = packet_line::read(reader)?;
            Ok(rest.is_none().then_some(first).flatten())
        })?;
        let expected = format!("# service={}", Program::ReceivePack.name());
        let announced = announced.unwrap_or_default();
        if announced.trim_ascii_end() != expected.as_bytes() {
            return Err(Error::Talk(
                "the server does not take pushes over http".to_owned(),
            ));
        }
        Ok(())
    }

    /// Reads what came last, with the transport's reason when it breaks.
    pub(super) fn read<T>(
        &mut self,
        read: impl FnOnce(&mut dyn Read) -> std::io::Result<T>,
    ) -> Result<T, Error> {
        match self {
            Self::Http { body, failure, .. } => read(body).map_err(|error| explained(failure, &error)),
            Self::Ssh { reader, outcome, .. } => read(reader).map_err(|error| match outcome.failure() {
                Some(failure) => failure.into(),
                None => Error::Talk(error_chain::chain(&error)),
            }),
        }
    }

    /// Sends the request. What is read next is its answer.
    pub(super) fn send(&mut self, request: &[u8]) -> Result<(), Error> {
        match self {
            Self::Http {
                connection,
                base,
                failure,
                limit,
                body,
            } => {
                limit.set(MAX_ANSWER);
                let program = Program::ReceivePack.name();
                let url = format!("{base}/{program}");
                let headers = [
                    format!("User-Agent: {AGENT}"),
                    format!("Content-Type: application/x-{program}-request"),
                    format!("Accept: application/x-{program}-result"),
                ];
                let posted =
                    connection.post(&url, base, &headers, PostBodyDataKind::BoundedAndFitsIntoMemory);
                let mut posted = posted.map_err(|error| explained(failure, &error))?;
                let written = posted.post_body.write_all(request);
                written.map_err(|error| explained(failure, &error))?;
                *body = Box::new(posted.body);
                Ok(())
            }
            Self::Ssh { writer, outcome, .. } => {
                outcome.allow(MAX_ANSWER);
                writer
                    .write_all(request)
                    .map_err(|error| match outcome.failure() {
                        Some(failure) => failure.into(),
                        None => Error::Talk(error_chain::chain(&error)),
                    })
            }
        }
    }
}

/// The failure that the connection has left, or the error's own words.
fn explained(failure: &RefCell<Option<transport::http::Error>>, error: &dyn std::error::Error) -> Error {
    let left = failure.borrow_mut().take();
    left.map_or_else(|| Error::Talk(error_chain::chain(error)), Error::Request)
}
