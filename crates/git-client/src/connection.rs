//! The HTTP under gix: carries Git's smart protocol over the shared clients of [`http`].
//!
//! gix speaks the protocol (pkt-lines, negotiation); this carries its requests, so that time-outs, redirects,
//! credentials and sizes follow our rules and a refusal keeps its HTTP status. gix's own HTTP backend would start a
//! thread, a runtime and a TLS store for each fetch, sends configured credentials after redirects or follows none.
//! Runs on a blocking thread and enters the runtime for each wait.

use std::cell::{Cell, RefCell};
use std::io::{self, BufRead, Cursor, Read, Write};
use std::rc::Rc;

use bytes::Bytes;
use gix::protocol::transport::client::blocking_io::http::{
    GetResponse, Http, PostBodyDataKind, PostResponse,
};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Response};
use tokio::runtime::Handle;
use tokio::time::Instant;
use url::Url;

use transport::http;

/// Where the failure of a request is left for the caller: gix's errors have no place for it.
pub(super) type Failure = Rc<RefCell<Option<http::Error>>>;

/// One conversation with one repository.
pub(super) struct Connection {
    client: http::Client,
    runtime: Handle,
    deadline: Instant,
    /// Dropped for good once a redirect leads to another server.
    authorization: Option<HeaderValue>,
    /// Largest answer that is read.
    limit: Rc<Cell<u64>>,
    redirected_to: Option<String>,
    failure: Failure,
}

impl Connection {
    /// Must be called on a thread of the runtime's blocking pool.
    pub(super) fn new(
        client: http::Client,
        authorization: Option<HeaderValue>,
        deadline: Instant,
        limit: Rc<Cell<u64>>,
        failure: Failure,
    ) -> Self {
        Self {
            client,
            runtime: Handle::current(),
            deadline,
            authorization,
            limit,
            redirected_to: None,
            failure,
        }
    }

    fn exchange(&self, state: State) -> Shared {
        Rc::new(RefCell::new(Exchange {
            client: self.client.clone(),
            runtime: self.runtime.clone(),
            deadline: self.deadline,
            left: self.limit.get(),
            limit: self.limit.get(),
            failure: self.failure.clone(),
            state,
        }))
    }

    /// Follows where the first request was led: later ones go there directly.
    fn accept_redirect(&mut self, asked: &Url, base: &str, answered: &Url) -> Result<(), http::Error> {
        let tail = asked
            .as_str()
            .get(base.len()..)
            .unwrap_or_default()
            .trim_start_matches('/');
        let Some(base) = answered.as_str().strip_suffix(tail) else {
            return Err(http::Error::Redirect {
                url: http::public(asked),
                problem: "it leads to no repository",
            });
        };
        if !http::same_origin(asked, answered) {
            self.authorization = None;
        }
        self.redirected_to = Some(base.trim_end_matches('/').to_owned());
        Ok(())
    }
}

impl Http for Connection {
    type Headers = Headers;
    type ResponseBody = Body;
    type PostBody = PostBody;

    fn get(
        &mut self,
        url: &str,
        base_url: &str,
        headers: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> gix::Result<GetResponse<Headers, Body>> {
        let url = Url::parse(url).map_err(gix::Error::from_error)?;
        let request = http::Request {
            method: Method::GET,
            url: url.clone(),
            headers: header_map(headers),
            authorization: self.authorization.as_ref(),
        };
        let (client, deadline) = (&self.client, self.deadline);
        let answer = self
            .runtime
            .block_on(async { http::checked(http::send(client, request, deadline).await?, deadline).await });
        let answer = answer.and_then(|response| {
            http::refuse_page(&response, "Git's list of refs")?;
            if response.url() != &url {
                self.accept_redirect(&url, base_url, response.url())?;
            }
            Ok(response)
        });
        match answer {
            Ok(response) => {
                let exchange = self.exchange(State::Answered(response));
                Ok(GetResponse {
                    headers: Headers::new(&exchange),
                    body: Body::new(exchange),
                })
            }
            Err(error) => Err(gix::Error::from_error(refused(&self.failure, error))),
        }
    }

    fn post(
        &mut self,
        url: &str,
        _base_url: &str,
        headers: impl IntoIterator<Item = impl AsRef<str>>,
        _kind: PostBodyDataKind,
    ) -> gix::Result<PostResponse<Headers, Body, PostBody>> {
        let url = Url::parse(url).map_err(gix::Error::from_error)?;
        let mut headers = header_map(headers);
        if let Some(authorization) = &self.authorization {
            headers.insert(reqwest::header::AUTHORIZATION, authorization.clone());
        }
        let exchange = self.exchange(State::Writing {
            url,
            headers,
            body: Vec::new(),
        });
        Ok(PostResponse {
            post_body: PostBody(exchange.clone()),
            headers: Headers::new(&exchange),
            body: Body::new(exchange),
        })
    }

    /// gix's configuration is not used: what counts came with [`Connection::new`].
    fn configure(&mut self, _config: &dyn std::any::Any) -> gix::Result {
        Ok(())
    }

    fn redirected_base_url(&self) -> Option<String> {
        self.redirected_to.clone()
    }
}

/// A request and its answer. gix writes the body after asking for the answer, so the request is sent when the
/// answer is first read.
struct Exchange {
    client: http::Client,
    runtime: Handle,
    deadline: Instant,
    left: u64,
    limit: u64,
    failure: Failure,
    state: State,
}

enum State {
    Writing {
        url: Url,
        headers: HeaderMap,
        body: Vec<u8>,
    },
    Answered(Response),
    Ended,
}

type Shared = Rc<RefCell<Exchange>>;

impl Exchange {
    /// Sends the request if that is still to be done.
    fn answered(&mut self) -> io::Result<Option<&mut Response>> {
        if let State::Writing { .. } = self.state {
            let State::Writing { url, headers, body } = std::mem::replace(&mut self.state, State::Ended)
            else {
                return Ok(None);
            };
            let request = self.client.post(url.clone()).headers(headers).body(body);
            let deadline = self.deadline;
            let answer = self.runtime.block_on(async {
                http::checked(http::within(deadline, &url, request.send()).await?, deadline).await
            });
            self.state = State::Answered(answer.map_err(|error| refused(&self.failure, error))?);
        }
        match &mut self.state {
            State::Answered(response) => Ok(Some(response)),
            _ => Ok(None),
        }
    }

    fn next_chunk(&mut self) -> io::Result<Bytes> {
        let (runtime, deadline, failure) = (self.runtime.clone(), self.deadline, self.failure.clone());
        let Some(response) = self.answered()? else {
            return Ok(Bytes::new());
        };
        let url = response.url().clone();
        let chunk = runtime.block_on(http::next_chunk(response, deadline));
        let Some(chunk) = chunk.map_err(|error| refused(&failure, error))? else {
            self.state = State::Ended;
            return Ok(Bytes::new());
        };
        let Some(left) = self.left.checked_sub(chunk.len() as u64) else {
            let error = http::Error::ReadAll {
                url: http::public(&url),
                limit: self.limit,
            };
            return Err(refused(&failure, error));
        };
        self.left = left;
        Ok(chunk)
    }
}

/// The body of a request, kept until the answer is asked for. Git's requests are a few lines.
pub(super) struct PostBody(Shared);

impl Write for PostBody {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0.borrow_mut().state {
            State::Writing { body, .. } => body.write(bytes),
            _ => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The headers of an answer, one `name: value` a line.
pub(super) struct Headers {
    exchange: Shared,
    lines: Option<Cursor<Vec<u8>>>,
}

impl Headers {
    fn new(exchange: &Shared) -> Self {
        Self {
            exchange: exchange.clone(),
            lines: None,
        }
    }

    fn lines(&mut self) -> io::Result<&mut Cursor<Vec<u8>>> {
        let mut lines = Vec::new();
        if self.lines.is_none()
            && let Some(response) = self.exchange.borrow_mut().answered()?
        {
            for (name, value) in response.headers() {
                lines.extend_from_slice(name.as_str().as_bytes());
                lines.extend_from_slice(b": ");
                lines.extend_from_slice(value.as_bytes());
                lines.push(b'\n');
            }
        }
        Ok(self.lines.get_or_insert(Cursor::new(lines)))
    }
}

impl Read for Headers {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.lines()?.read(buffer)
    }
}

impl BufRead for Headers {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.lines()?.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        if let Some(lines) = &mut self.lines {
            lines.consume(amount);
        }
    }
}

/// The body of an answer, as it arrives.
pub(super) struct Body {
    exchange: Shared,
    chunk: Bytes,
}

impl Body {
    fn new(exchange: Shared) -> Self {
        Self {
            exchange,
            chunk: Bytes::new(),
        }
    }
}

impl Read for Body {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(buffer)?;
        self.consume(read);
        Ok(read)
    }
}

impl BufRead for Body {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.chunk.is_empty() {
            self.chunk = self.exchange.borrow_mut().next_chunk()?;
        }
        Ok(&self.chunk)
    }

    fn consume(&mut self, amount: usize) {
        let _ = self.chunk.split_to(amount);
    }
}

/// Leaves the failure for the caller and gives gix a word about it.
fn refused(failure: &Failure, error: http::Error) -> io::Error {
    let message = error.to_string();
    failure.borrow_mut().get_or_insert(error);
    io::Error::other(message)
}

fn header_map(lines: impl IntoIterator<Item = impl AsRef<str>>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for line in lines {
        let Some((name, value)) = line.as_ref().split_once(':') else {
            continue;
        };
        let parsed = (
            HeaderName::from_bytes(name.as_bytes()),
            HeaderValue::from_str(value.trim()),
        );
        if let (Ok(name), Ok(value)) = parsed {
            headers.append(name, value);
        }
    }
    headers
}
