//! A connection to a NATS server: what it says first, getting in, publishing.

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::login::Login;
use super::server::Server;
use super::tls;
use crate::error::{Error, Retry};
use crate::target::Tls;

/// Servers name themselves and their cluster in a line; no other line is long.
const MAX_LINE: usize = 64 << 10;
/// Lines that answer nothing: others of the cluster come and go.
const MAX_ASIDES: usize = 100;
/// Bytes of a server's refusal that are quoted.
const MAX_QUOTED: usize = 200;

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// A connection.
pub(super) struct Connection {
    stream: Box<dyn Stream>,
    info: Info,
    /// Bytes that were read and not parsed yet.
    read: Vec<u8>,
}

/// First message of a server.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Info {
    nonce: Option<String>,
    tls_required: bool,
    tls_available: bool,
    max_payload: Option<usize>,
}

impl Connection {
    /// Hears what the server says, and speaks TLS if one of both wants it.
    pub(super) async fn open(stream: TcpStream, server: &Server, tls: Option<&Tls>) -> Result<Self, Error> {
        let mut plain = stream;
        let mut read = Vec::new();
        let line = line(&mut plain, &mut read).await?;
        let info = line
            .strip_prefix("INFO ")
            .and_then(|json| serde_json::from_str(json).ok());
        let info: Info =
            info.ok_or_else(|| Error::passing("error connecting to server: it does not speak NATS"))?;
        if server.is_secure && !info.tls_required && !info.tls_available {
            return Err(Error::invalid(
                "error connecting to server: secure connection not available",
            ));
        }
        if !server.is_secure && !info.tls_required {
            return Ok(Self {
                stream: Box::new(plain),
                info,
                read,
            });
        }
        // Whoever stands between could put words into the server's mouth before TLS begins.
        if !read.is_empty() {
            return Err(Error::passing(
                "error connecting to server: it spoke before TLS began",
            ));
        }
        Ok(Self {
            stream: Box::new(tls::secured(plain, &server.host, tls).await?),
            info,
            read,
        })
    }

    /// Gets in.
    pub(super) async fn log_in(&mut self, server: &Server, login: &Login) -> Result<(), Error> {
        let mut fields = json!({
            "verbose": false,
            "pedantic": false,
            "tls_required": server.is_secure,
            "name": "NATS Provider Publisher",
            "lang": "rust",
            "version": env!("CARGO_PKG_VERSION"),
            "protocol": 1,
            "echo": true,
        });
        let login = login.fields(server.password.as_ref(), self.info.nonce.as_deref())?;
        if let (Value::Object(fields), Value::Object(login)) = (&mut fields, login) {
            fields.extend(login);
        }
        self.write(format!("CONNECT {fields}\r\nPING\r\n").as_bytes())
            .await?;
        self.pong()
            .await
            .map_err(|error| error.within("error connecting to server"))
    }

    /// Publishes, and waits until the server has it.
    pub(super) async fn publish(&mut self, subject: &str, payload: &[u8]) -> Result<(), Error> {
        if let Some(limit) = self.info.max_payload.filter(|limit| payload.len() > *limit) {
            return Err(Error::invalid(format!(
                "the event has {} bytes, and the server takes no more than {limit}",
                payload.len()
            )));
        }
        let mut message = format!("PUB {subject} {}\r\n", payload.len()).into_bytes();
        message.extend_from_slice(payload);
        message.extend_from_slice(b"\r\nPING\r\n");
        self.write(&message).await?;
        self.pong()
            .await
            .map_err(|error| error.within("error publishing message to server"))
    }

    async fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let broken = |error: std::io::Error| Error::passing(format!("error connecting to server: {error}"));
        self.stream.write_all(bytes).await.map_err(broken)?;
        self.stream.flush().await.map_err(broken)
    }

    /// Waits for the answer to PING, before which all that came earlier is answered.
    async fn pong(&mut self) -> Result<(), Error> {
        for _ in 0..MAX_ASIDES {
            let line = line(&mut self.stream, &mut self.read).await?;
            match line.split(' ').next().unwrap_or_default() {
                "PONG" => return Ok(()),
                "PING" => self.write(b"PONG\r\n").await?,
                "-ERR" => return Err(refused(&line)),
                _ => {}
            }
        }
        Err(Error::passing("the server talks, and does not answer"))
    }
}

/// One line, without its end.
async fn line<S: AsyncRead + Unpin + ?Sized>(stream: &mut S, read: &mut Vec<u8>) -> Result<String, Error> {
    let mut from = 0;
    loop {
        if let Some(length) = read[from..].iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = read.drain(..=from + length).collect();
            return Ok(String::from_utf8_lossy(&line).trim_end().to_owned());
        }
        from = read.len();
        if from > MAX_LINE {
            return Err(Error::passing(
                "the server does not speak NATS: its line is too long",
            ));
        }
        let mut chunk = [0; 4096];
        let length = stream.read(&mut chunk).await;
        let length =
            length.map_err(|error| Error::passing(format!("error connecting to server: {error}")))?;
        if length == 0 {
            return Err(Error::passing("the server closed the connection"));
        }
        read.extend_from_slice(&chunk[..length]);
    }
}

/// Refusal of a server: a client that may not connect or publish now may not the next time either.
fn refused(line: &str) -> Error {
    let said = line.trim_start_matches("-ERR").trim().trim_matches('\'');
    let said: String = said
        .chars()
        .filter(|c| !c.is_control())
        .take(MAX_QUOTED)
        .collect();
    let small = said.to_lowercase();
    let is_final = [
        "authorization",
        "authentication",
        "permissions",
        "invalid",
        "maximum payload",
    ]
    .iter()
    .any(|word| small.contains(word));
    let retry = if is_final { Retry::Never } else { Retry::Backoff };
    Error::new(format!("nats: {said}"), retry)
}
