//! Runs `git http-backend` as a CGI program (RFC 3875) for one request.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, Result, bail};
use axum::body::{Body, Bytes};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, Response, header};
use futures::{StreamExt as _, TryStreamExt as _};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{ChildStdout, Command};
use tokio_util::io::ReaderStream;

use super::repository::isolate;

/// Finds the program in the folder where git keeps its own.
pub(super) fn find(home: &Path) -> Result<PathBuf> {
    let mut git = std::process::Command::new("git");
    isolate(&mut git, home);
    let output = git
        .arg("--exec-path")
        .output()
        .context("failed to run git: is it installed?")?;
    let directory = String::from_utf8(output.stdout).context("git's folder has no readable name")?;
    let backend = Path::new(directory.trim()).join("git-http-backend");
    if !backend.is_file() {
        bail!(
            "there is no {}: install git with its HTTP backend",
            backend.display()
        );
    }
    Ok(backend)
}

/// Hands the request to the program and streams its answer.
pub(super) async fn run(
    backend: &Path,
    home: &Path,
    head: &Parts,
    body: Bytes,
    cut_answer: Option<usize>,
) -> Result<Response<Body>> {
    let mut command = std::process::Command::new(backend);
    isolate(&mut command, home);
    command
        .env("GIT_PROJECT_ROOT", home)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("REQUEST_METHOD", head.method.as_str())
        .env("PATH_INFO", head.uri.path())
        .env("QUERY_STRING", head.uri.query().unwrap_or_default())
        .env("CONTENT_LENGTH", body.len().to_string())
        .env("REMOTE_ADDR", "127.0.0.1");
    let headers: [(HeaderName, &str); 3] = [
        (header::CONTENT_TYPE, "CONTENT_TYPE"),
        (header::CONTENT_ENCODING, "HTTP_CONTENT_ENCODING"),
        (HeaderName::from_static("git-protocol"), "GIT_PROTOCOL"),
    ];
    for (name, variable) in headers {
        if let Some(value) = head.headers.get(name).and_then(|value| value.to_str().ok()) {
            command.env(variable, value);
        }
    }
    let mut command = Command::from(command);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    let mut child = command.spawn().context("failed to start git http-backend")?;
    let (mut stdin, stdout) = (child.stdin.take(), child.stdout.take());
    let stdout = stdout.context("git http-backend has no output")?;
    tokio::spawn(async move {
        if let Some(stdin) = &mut stdin {
            // The program may answer without reading all of the request.
            let _ = stdin.write_all(&body).await;
        }
        drop(stdin);
        let _ = child.wait().await;
    });
    answer(BufReader::new(stdout), cut_answer).await
}

async fn answer(mut output: BufReader<ChildStdout>, cut: Option<usize>) -> Result<Response<Body>> {
    let (status, headers) = read_head(&mut output).await?;
    let mut response = Response::builder().status(status);
    if let Some(all) = response.headers_mut() {
        *all = headers;
    }
    let chunks = ReaderStream::new(output);
    let body = match cut {
        None => Body::from_stream(chunks),
        Some(bytes) => {
            let short = chunks
                .map_ok(move |chunk| chunk.slice(..chunk.len().min(bytes)))
                .take(1);
            let broken = futures::stream::once(async { Err(std::io::Error::other("cut by the test")) });
            Body::from_stream(short.chain(broken))
        }
    };
    response
        .body(body)
        .context("failed to make an answer of what git said")
}

async fn read_head(output: &mut BufReader<ChildStdout>) -> Result<(u16, HeaderMap)> {
    let (mut status, mut headers) = (200, HeaderMap::new());
    loop {
        let mut line = String::new();
        if output
            .read_line(&mut line)
            .await
            .context("failed to read git http-backend's answer")?
            == 0
        {
            bail!("git http-backend ended without an answer");
        }
        let line = line.trim_end();
        if line.is_empty() {
            return Ok((status, headers));
        }
        let (name, value) = line
            .split_once(':')
            .context("git http-backend's answer has a malformed header")?;
        if name.eq_ignore_ascii_case("status") {
            let code = value.split_whitespace().next().and_then(|code| code.parse().ok());
            status = code.context("git http-backend's answer has a malformed status")?;
        } else {
            headers.append(HeaderName::try_from(name)?, value.trim().parse()?);
        }
    }
}
