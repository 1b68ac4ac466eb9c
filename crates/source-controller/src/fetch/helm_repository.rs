//! Helm repositories over HTTP: the index, and charts that it names.
//!
//! In: a [`Repository`] (address, credentials, TLS, limits). Out: an [`Index`] in a file, or a chart in a file. The index
//! is streamed to disk and normalized there (crate `helm-index`), so its size does not show in memory. Credentials go to
//! the server of the repository; to others only where the object says `passCredentials`, as in Helm.

mod chart;
mod error;
mod limits;
mod memory;

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use artifact::digest::{Digest, Hasher};
use flate2::write::MultiGzDecoder;
use helm_index::Summary;
use reqwest::header::{ACCEPT_ENCODING, CONTENT_ENCODING, HeaderMap, HeaderValue};
use reqwest::{Method, Response, StatusCode};
use tokio::time::Instant;
use url::Url;

pub(crate) use self::chart::{ChartError, find_version, has_no_such_version};
pub(crate) use self::error::{Error, FetchError};
pub(crate) use self::memory::{Memory, Validators};
use transport::auth::{self, SecretData};
use transport::http;

use crate::reconcile::fetch::Fetcher;

pub(crate) use limits::Limits;

/// Enough of an answer to see what it is.
const MAX_START: u64 = 1024;

/// A repository, and how it is asked.
pub(crate) struct Repository {
    /// As in the spec, without user and password.
    pub(crate) url: Url,
    settings: http::Settings,
    authorization: Option<HeaderValue>,
    pass_credentials: bool,
    clients: http::Clients,
    limits: Limits,
    directory: PathBuf,
    deadline: Instant,
}

/// The Secrets of a HelmRepository.
#[derive(Clone, Default)]
pub(crate) struct Secrets {
    /// `spec.secretRef`.
    pub(crate) authentication: Option<SecretData>,
    /// `spec.certSecretRef`.
    pub(crate) certificates: Option<SecretData>,
}

/// An index that was fetched.
pub(crate) struct Index {
    /// SHA-256 of what the server sent.
    pub(crate) revision: Digest,
    /// As it is stored: JSON, normalized.
    pub(crate) file: File,
    pub(crate) summary: Summary,
    pub(crate) validators: Validators,
}

/// Answer to a request for the index.
pub(crate) enum Answer {
    /// It is the known one: the server says so, or sent that again, in which case it has new validators.
    Unchanged(Option<Validators>),
    New(Index),
}

impl Repository {
    /// The repository at an address, with the Secrets of its object.
    pub(crate) fn new(
        url: &str,
        secrets: &Secrets,
        pass_credentials: bool,
        deadline: Instant,
        fetcher: &Fetcher,
    ) -> Result<Self, Error> {
        let mut url = parse(url)?;
        let (mut settings, authorization) = access(&mut url, secrets)?;
        settings = settings.towards(url.host_str().unwrap_or_default());
        fetcher.clients.get(&settings).map_err(Error::Client)?; // says early what is wrong with certificates
        Ok(Self {
            url,
            settings,
            authorization,
            pass_credentials,
            clients: fetcher.clients.clone(),
            limits: fetcher.helm.limits,
            directory: fetcher.directory.clone(),
            deadline,
        })
    }

    /// Fetches the index, unless it is the known one.
    pub(crate) async fn fetch_index(&self, known: Option<&Validators>) -> Result<Answer, Error> {
        let mut headers = known.map(Validators::headers).unwrap_or_default();
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        let url = self.index_url();
        let response = self.get(&url, headers).await?;
        if response.status() == StatusCode::NOT_MODIFIED && known.is_some() {
            return Ok(Answer::Unchanged(None));
        }
        let response = http::checked(response, self.deadline)
            .await
            .map_err(FetchError::Request)?;
        let mut validators = Validators::from_headers(response.headers());
        let shown = http::public(response.url());
        let (mut file, revision) = self.download_index(response).await?;
        if begins_a_page(&mut file).map_err(FetchError::Write)? {
            let (url, expected) = (shown, "an index of charts");
            return Err(FetchError::Request(http::Error::WebPage { url, expected }).into());
        }
        validators.revision = Some(revision);
        if known.is_some_and(|known| known.revision == Some(revision)) {
            return Ok(Answer::Unchanged(Some(validators)));
        }
        let directory = self.directory.clone();
        let normalized = tokio::task::spawn_blocking(move || normalize(file, &directory));
        let (file, summary) = normalized.await.map_err(|_| Error::Abandoned)??;
        Ok(Answer::New(Index {
            revision,
            file,
            summary,
            validators,
        }))
    }

    /// Where the index is.
    fn index_url(&self) -> Url {
        let mut url = self.url.clone();
        let path = format!("{}/index.yaml", url.path().trim_end_matches('/'));
        url.set_path(&path);
        url
    }

    /// Asks for something. The credentials go along if it is at the repository's server, or may go anywhere.
    async fn get(&self, url: &Url, headers: HeaderMap) -> Result<Response, FetchError> {
        let may_know = self.pass_credentials || http::same_origin(url, &self.url);
        let settings = self.settings.clone().towards(url.host_str().unwrap_or_default());
        let client = self.clients.get(&settings)?;
        let request = http::Request {
            method: Method::GET,
            url: url.clone(),
            headers,
            authorization: self.authorization.as_ref().filter(|_| may_know),
        };
        Ok(http::send(&client, request, self.deadline).await?)
    }

    /// Writes the index to a file. Its digest is that of what it is without the compression of the transport.
    async fn download_index(&self, mut response: Response) -> Result<(File, Digest), FetchError> {
        let sink = Sink {
            file: tempfile::tempfile_in(&self.directory).map_err(FetchError::Write)?,
            hasher: Hasher::new(),
            left: self.limits.index,
        };
        let is_compressed = response
            .headers()
            .get(CONTENT_ENCODING)
            .is_some_and(|encoding| encoding.as_bytes().eq_ignore_ascii_case(b"gzip"));
        let mut output = if is_compressed {
            Output::Compressed(Box::new(MultiGzDecoder::new(sink)))
        } else {
            Output::Plain(sink)
        };
        while let Some(chunk) = http::next_chunk(&mut response, self.deadline).await? {
            output.write_all(&chunk).map_err(|error| self.refused(error))?;
        }
        let Sink { file, hasher, .. } = output.finish().map_err(|error| self.refused(error))?;
        Ok((file, hasher.finish()))
    }

    fn refused(&self, error: io::Error) -> FetchError {
        match error.kind() {
            io::ErrorKind::FileTooLarge => FetchError::TooLarge(self.limits.index),
            io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => {
                FetchError::Decompress(error)
            }
            _ => FetchError::Write(error),
        }
    }
}

/// A file that takes no more than a limit.
struct Sink {
    file: File,
    hasher: Hasher,
    left: u64,
}

impl Write for Sink {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        if data.len() as u64 > self.left {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let written = self.file.write(data)?;
        self.hasher.update(&data[..written]);
        self.left -= written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

enum Output {
    Plain(Sink),
    Compressed(Box<MultiGzDecoder<Sink>>),
}

impl Output {
    fn write_all(&mut self, data: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(sink) => sink.write_all(data),
            Self::Compressed(decoder) => decoder.write_all(data),
        }
    }

    fn finish(self) -> io::Result<Sink> {
        match self {
            Self::Plain(sink) => Ok(sink),
            Self::Compressed(decoder) => decoder.finish(),
        }
    }
}

/// Returns whether a web site answered. The type of the answer says nothing: many servers do not know what an index is.
fn begins_a_page(file: &mut File) -> io::Result<bool> {
    use io::{Read as _, Seek as _};
    let mut start = Vec::new();
    file.rewind()?;
    file.take(MAX_START).read_to_end(&mut start)?;
    Ok(http::begins_a_page(&start))
}

/// Checks the index and brings it to the form in which it is stored. Blocks.
fn normalize(mut raw: File, directory: &Path) -> Result<(File, Summary), Error> {
    use io::Seek as _;
    let temporary = || tempfile::tempfile_in(directory).map_err(|error| Error::LoadIndex(error.into()));
    raw.rewind().map_err(|error| Error::LoadIndex(error.into()))?;
    let mut output = temporary()?;
    let summary = helm_index::normalize(&mut raw, temporary()?, &mut output)?;
    output.rewind().map_err(|error| Error::LoadIndex(error.into()))?;
    Ok((output, summary))
}

/// Reads `spec.url` of a repository that has an index.
pub(crate) fn parse(url: &str) -> Result<Url, Error> {
    let invalid = |problem: String| Error::InvalidUrl(problem);
    let parsed = Url::parse(url).map_err(|error| invalid(format!("failed to parse it: {error}")))?;
    match parsed.scheme() {
        "http" | "https" => Ok(parsed),
        "oci" => Err(invalid(
            "'oci' URL scheme cannot be used with 'default' HelmRepository type".to_owned(),
        )),
        scheme => Err(invalid(format!("scheme \"{scheme}\" not supported"))),
    }
}

/// Connection settings and credentials: of the Secrets, else of the address, which is left without them.
fn access(url: &mut Url, secrets: &Secrets) -> Result<(http::Settings, Option<HeaderValue>), Error> {
    let nothing = SecretData::default();
    let secret = secrets.authentication.as_ref().unwrap_or(&nothing);
    let mut basic = SecretData::new();
    match (secret.get("username"), secret.get("password")) {
        (Some(username), Some(password)) => {
            // As in Helm, one without the other is not sent.
            if !username.is_empty() && !password.is_empty() {
                basic.insert("username".to_owned(), username.clone());
                basic.insert("password".to_owned(), password.clone());
            }
        }
        (Some(_), None) => return Err(Error::Authentication("password", "username")),
        (None, Some(_)) => return Err(Error::Authentication("username", "password")),
        (None, None) => {}
    }
    let access = auth::access(url, &basic).map_err(Error::Credentials)?;
    // Flux still takes TLS material out of spec.secretRef, if there is no other.
    let tls = secrets.certificates.as_ref().unwrap_or(secret);
    let settings = auth::tls(tls).map_err(Error::Tls)?;
    Ok((settings, access.authorization))
}

#[cfg(test)]
mod tests;
