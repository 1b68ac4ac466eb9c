//! The way out of and into a Pod's network namespace, which has nothing but its own loopback: sockets in the file system, which
//! do not care for network namespaces. Part of `testkit::node`.
//!
//! The argument is a table with a line for each way, `out ADDRESS:PORT SOCKET` (what connects to the address is passed to the
//! socket) or `in SOCKET ADDRESS:PORT` (the other way round). When all is listened on, it says so with an empty line.

use std::fs;
use std::io::Write as _;

use anyhow::{Context as _, Result, bail};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let table = std::env::args().nth(1).context("name the table")?;
    let table = fs::read_to_string(&table).with_context(|| format!("failed to read {table}"))?;
    for line in table.lines() {
        let words: Vec<_> = line.split(' ').map(str::to_owned).collect();
        let [direction, from, to] = <[String; 3]>::try_from(words)
            .map_err(|words| anyhow::anyhow!("a line has three words, not {words:?}"))?;
        match direction.as_str() {
            "out" => {
                let listener = TcpListener::bind(&from).await;
                let listener = listener.with_context(|| format!("failed to listen on {from}"))?;
                tokio::spawn(async move {
                    while let Ok((stream, _)) = listener.accept().await {
                        tokio::spawn(join(stream, UnixStream::connect(to.clone())));
                    }
                });
            }
            "in" => {
                let listener = UnixListener::bind(&from);
                let listener = listener.with_context(|| format!("failed to listen on {from}"))?;
                tokio::spawn(async move {
                    while let Ok((stream, _)) = listener.accept().await {
                        tokio::spawn(join(stream, TcpStream::connect(to.clone())));
                    }
                });
            }
            other => bail!("{other:?} is no direction"),
        }
    }
    writeln!(std::io::stdout())?;
    std::future::pending().await
}

/// Passes on what both sides say. When there is no other side the first sees its connection closed, as it would without us.
async fn join<A, B>(mut one: A, other: impl Future<Output = std::io::Result<B>>)
where
    A: AsyncRead + AsyncWrite + Unpin,
    B: AsyncRead + AsyncWrite + Unpin,
{
    if let Ok(mut other) = other.await {
        _ = tokio::io::copy_bidirectional(&mut one, &mut other).await;
    }
}
