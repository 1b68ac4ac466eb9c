//! The two ends of a program of Git's for code that blocks, as gix does.
//!
//! What is written is kept until something is read: a request is many small pieces, and the server's answer to it is
//! waited for anyway. Runs on a blocking thread and enters the runtime for each wait.

use std::cell::RefCell;
use std::io::{self, Read, Write};
use std::rc::Rc;
use std::time::Duration;

use russh::client::{Handle, Msg};
use russh::{Channel, ChannelMsg};
use tokio::runtime;
use tokio::time::{Instant, timeout_at};

use crate::deadline::Allowance;
use crate::dial;
use crate::error::{Error, quoted};
use crate::session::{Bounds, Client, Program, Target};

/// Bytes kept of the program's standard error.
const MAX_COMPLAINT: usize = 2048;
/// After the program's output its exit is waited for this long.
const FAREWELL: Duration = Duration::from_secs(2);
/// Requests are a few lines. One that grows beyond this is sent in parts.
const MAX_PENDING: usize = 64 * 1024;

/// A running program. The connection ends with it.
pub struct Running {
    inner: Inner,
}

struct Inner {
    program: Program,
    channel: Channel<Msg>,
    /// The connection lives as long as this.
    _session: Handle<Client>,
    address: String,
    bounds: Bounds,
    allowance: Allowance,
    pending: Vec<u8>,
    chunk: bytes::Bytes,
    ended: bool,
    received: bool,
    complaint: Vec<u8>,
    exit_status: Option<u32>,
    failure: Option<Error>,
}

type Shared = Rc<RefCell<Inner>>;

impl Running {
    pub(crate) fn new(
        program: Program,
        session: Handle<Client>,
        channel: Channel<Msg>,
        target: &Target,
        bounds: Bounds,
        allowance: Allowance,
    ) -> Self {
        Self {
            inner: Inner {
                program,
                channel,
                _session: session,
                address: dial::shown(&target.host, target.port),
                bounds,
                allowance,
                pending: Vec::new(),
                chunk: bytes::Bytes::new(),
                ended: false,
                received: false,
                complaint: Vec::new(),
                exit_status: None,
                failure: None,
            },
        }
    }

    /// The ends for a blocking thread of this runtime, and what becomes of them.
    pub fn into_blocking(self, runtime: runtime::Handle) -> (Reader, Writer, Outcome) {
        let inner = Rc::new(RefCell::new(self.inner));
        let reader = Reader {
            inner: inner.clone(),
            runtime: runtime.clone(),
        };
        let writer = Writer {
            inner: inner.clone(),
            runtime,
        };
        (reader, writer, Outcome(inner))
    }
}

/// Result of the program and the connection, beside the bytes.
pub struct Outcome(Shared);

impl Outcome {
    /// Lets so many more bytes be received.
    pub fn allow(&self, bytes: u64) {
        self.0.borrow().allowance.set(bytes);
    }

    /// Why there is nothing more to read, if it did not end as it should.
    pub fn failure(&self) -> Option<Error> {
        let mut inner = self.0.borrow_mut();
        if let Some(failure) = inner.failure.take() {
            return Some(failure);
        }
        let failed = inner.exit_status.is_some_and(|status| status != 0);
        (inner.ended && (failed || !inner.received)).then(|| inner.complaint())
    }
}

/// The program's output.
pub struct Reader {
    inner: Shared,
    runtime: runtime::Handle,
}

/// The program's input.
pub struct Writer {
    inner: Shared,
    runtime: runtime::Handle,
}

impl Read for Reader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut inner = self.inner.borrow_mut();
        if inner.chunk.is_empty() {
            self.runtime.block_on(inner.exchange())?;
        }
        let length = buffer.len().min(inner.chunk.len());
        buffer[..length].copy_from_slice(&inner.chunk.split_to(length));
        Ok(length)
    }
}

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut inner = self.inner.borrow_mut();
        inner.pending.extend_from_slice(bytes);
        if inner.pending.len() > MAX_PENDING {
            self.runtime.block_on(inner.send())?;
        }
        Ok(bytes.len())
    }

    /// Nothing: it is sent when the answer is read.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Inner {
    /// Sends what is pending and waits for the next piece of the answer; an empty one is the end.
    async fn exchange(&mut self) -> io::Result<()> {
        self.send().await?;
        let mut farewell: Option<Instant> = None;
        while !self.ended && self.chunk.is_empty() {
            let deadline = farewell.map_or(self.bounds.deadline, |until| until.min(self.bounds.deadline));
            let message = tokio::select! {
                message = timeout_at(deadline, self.channel.wait()) => message,
                () = self.bounds.cancel.cancelled() => return Err(self.fail(Error::Cancelled)),
            };
            match message {
                Ok(Some(ChannelMsg::Data { data })) => {
                    self.received = true;
                    self.chunk = data;
                }
                Ok(Some(ChannelMsg::ExtendedData { data, .. })) => self.complain(&data),
                Ok(Some(ChannelMsg::ExitStatus { exit_status })) => self.exit_status = Some(exit_status),
                Ok(Some(ChannelMsg::ExitSignal { .. })) => self.exit_status = Some(u32::MAX),
                Ok(Some(ChannelMsg::Failure)) => {
                    let refused = self.refused("it refuses to run programs".to_owned());
                    return Err(self.fail(refused));
                }
                Ok(Some(ChannelMsg::Eof)) => farewell = Some(Instant::now() + FAREWELL),
                Ok(Some(ChannelMsg::Close) | None) => self.ended = true,
                Ok(Some(_)) => {}
                Err(_) if farewell.is_some() => self.ended = true,
                Err(_) => {
                    let address = self.address.clone();
                    return Err(self.fail(Error::Wait { address }));
                }
            }
        }
        if self.ended && self.chunk.is_empty() && self.allowance.is_used_up() {
            return Err(self.fail(Error::Handshake("more was received than allowed".to_owned())));
        }
        Ok(())
    }

    async fn send(&mut self) -> io::Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let pending = std::mem::take(&mut self.pending);
        let sent = tokio::select! {
            sent = timeout_at(self.bounds.deadline, self.channel.data_bytes(pending)) => sent,
            () = self.bounds.cancel.cancelled() => return Err(self.fail(Error::Cancelled)),
        };
        match sent {
            Ok(Ok(())) => Ok(()),
            // The program ended before it read all: what it said about that is still to be read.
            Ok(Err(_)) => Ok(()),
            Err(_) => {
                let address = self.address.clone();
                Err(self.fail(Error::Wait { address }))
            }
        }
    }

    fn complain(&mut self, bytes: &[u8]) {
        let room = MAX_COMPLAINT.saturating_sub(self.complaint.len());
        self.complaint.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    /// Returns the program's error output as an error.
    fn complaint(&self) -> Error {
        let said = quoted(&String::from_utf8_lossy(&self.complaint));
        let lower = said.to_ascii_lowercase();
        if NOT_FOUND.iter().any(|words| lower.contains(words)) {
            return Error::RepositoryNotFound(said);
        }
        self.refused(match self.exit_status {
            _ if !said.is_empty() => said,
            Some(status) if status != u32::MAX => format!("it ended with status {status}"),
            _ => "it ended without a word".to_owned(),
        })
    }

    fn refused(&self, said: String) -> Error {
        let program = self.program.name();
        Error::Refuse { program, said }
    }

    /// Leaves the failure for the caller, and a word about it for those in between.
    fn fail(&mut self, error: Error) -> io::Error {
        let message = error.to_string();
        self.ended = true;
        self.failure.get_or_insert(error);
        io::Error::other(message)
    }
}

/// How Git and the well-known servers say that there is no such repository.
const NOT_FOUND: [&str; 5] = [
    "repository not found",
    "repository does not exist",
    "does not appear to be a git repository",
    "no such repository",
    "project you were looking for could not be found",
];
