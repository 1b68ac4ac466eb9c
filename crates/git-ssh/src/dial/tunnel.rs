//! An HTTP proxy's `CONNECT` (RFC 9110, 9.3.6), with basic authentication.

use std::io;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use crate::error::quoted;

/// The head of an answer is a few lines.
const MAX_HEAD: usize = 16 * 1024;

/// Has the proxy connect to the server.
pub(super) async fn open<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    host: &str,
    port: u16,
    credentials: Option<(&str, &str)>,
) -> io::Result<()> {
    let target = super::shown::shown(host, port);
    if target.chars().any(|c| c.is_ascii_control() || c.is_whitespace()) {
        return Err(io::Error::other("the server's name cannot be sent"));
    }
    let mut request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n");
    if let Some((user, password)) = credentials {
        let credentials = STANDARD.encode(format!("{user}:{password}"));
        request.push_str(&format!("Proxy-Authorization: Basic {credentials}\r\n"));
    }
    request.push_str("\r\n");
    stream.write_all(request.as_bytes()).await?;
    let head = read_head(stream).await?;
    let status = head.split(' ').nth(1).unwrap_or_default();
    if !head.starts_with("HTTP/1.") {
        return Err(io::Error::other("it does not speak HTTP"));
    }
    if !status.starts_with('2') {
        let line = head.lines().next().unwrap_or_default();
        return Err(io::Error::other(format!("it answered '{}'", quoted(line))));
    }
    Ok(())
}

/// Byte by byte: what follows the head is the server's already.
async fn read_head<S: AsyncRead + Unpin>(stream: &mut S) -> io::Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() >= MAX_HEAD {
            return Err(io::Error::other("its answer has no end"));
        }
        head.push(stream.read_u8().await?);
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn against(answer: &[u8]) -> (Result<(), String>, String) {
        let (mut near, mut far) = tokio::io::duplex(64 * 1024);
        far.write_all(answer).await.unwrap();
        let opened = open(&mut near, "git.example.com", 22, Some(("u", "p"))).await;
        let mut rest = String::new();
        if opened.is_ok() {
            let mut left = [0; 3];
            near.read_exact(&mut left).await.unwrap();
            rest = String::from_utf8(left.to_vec()).unwrap();
        }
        drop(near);
        let mut sent = String::new();
        far.read_to_string(&mut sent).await.unwrap();
        (opened.map_err(|error| error.to_string()), sent + &rest)
    }

    #[tokio::test]
    async fn the_tunnel_begins_after_the_head() {
        let (opened, seen) = against(b"HTTP/1.1 200 OK\r\nA: b\r\n\r\nSSH").await;
        opened.unwrap();
        assert_eq!(
            seen,
            "CONNECT git.example.com:22 HTTP/1.1\r\nHost: git.example.com:22\r\nProxy-Authorization: Basic dTpw\r\n\r\nSSH"
        );
    }

    #[tokio::test]
    async fn a_proxy_that_refuses_or_talks_nonsense_is_told() {
        let (opened, _) = against(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n").await;
        assert_eq!(
            opened.unwrap_err(),
            "it answered 'HTTP/1.1 407 Proxy Authentication Required'"
        );
        assert_eq!(
            against(b"SSH-2.0-x\r\n\r\n").await.0.unwrap_err(),
            "it does not speak HTTP"
        );
        assert_eq!(
            against(&[b'x'; 20_000]).await.0.unwrap_err(),
            "its answer has no end"
        );
    }
}
