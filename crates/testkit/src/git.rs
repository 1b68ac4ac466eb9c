//! Git repositories served over HTTP by the real `git http-backend`.
//!
//! [`GitServer`] is a small CGI bridge: it checks credentials, injects faults, records what was asked and hands the
//! request to git. [`Repository`] makes commits, tags and branches in the bare repositories behind it. The git that
//! runs here sees no configuration of the machine or the user.

mod backend;
mod repository;
mod request;
pub mod signing;
mod ssh;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result};
use axum::Router;
use axum::extract::{Request as HttpRequest, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

pub use repository::{Change, Repository};
pub use request::{Counts, Kind, Request};
pub use ssh::{KeyPair, SshServer};

/// Credentials for reading and pushing a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    /// Everybody.
    Anonymous,
    /// User name and password.
    Basic {
        /// The user name.
        username: String,
        /// The password.
        password: String,
    },
    /// Bearer token.
    Bearer(String),
}

/// Fault of every request to a repository until it is removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// Answers with this HTTP status and nothing else.
    Status(u16),
    /// Answers as usual after this time.
    Delay(Duration),
    /// Takes the request and never answers.
    Hang,
    /// Ends the connection after so many bytes of the answer to `git-upload-pack`.
    CutAnswer(usize),
    /// Takes a push, and ends the connection after so many bytes of the answer to it.
    CutPush(usize),
}

/// A Git server on a free port of 127.0.0.1, gone when dropped.
#[derive(Debug)]
pub struct GitServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    /// Also the home of the git that runs here.
    directory: TempDir,
    backend: PathBuf,
    state: Mutex<StateOfServer>,
}

#[derive(Debug, Default)]
struct StateOfServer {
    access: HashMap<String, Access>,
    faults: HashMap<String, Fault>,
    requests: Vec<Request>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, StateOfServer> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl GitServer {
    /// Starts a server without repositories.
    pub async fn start() -> Result<Self> {
        let directory = crate::scratch::directory("git")?;
        let backend = backend::find(directory.path())?;
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .context("failed to listen for the Git server")?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            directory,
            backend,
            state: Mutex::default(),
        });
        let app = Router::new().fallback(serve).with_state(Arc::clone(&shared));
        // It ends with the task; there is no one to tell about an error.
        let task = tokio::spawn(async move {
            let _ = axum::serve(listener, app).await;
        });
        Ok(Self {
            address,
            shared,
            task,
        })
    }

    /// Makes an empty bare repository `name.git` that everybody may read and push.
    pub fn create_repository(&self, name: &str) -> Result<Repository> {
        Repository::create(self.shared.directory.path(), name, self.url(name))
    }

    /// Where it listens, for what stands in front of it.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The HTTP address of the repository `name`, whether it exists or not.
    pub fn url(&self, name: &str) -> String {
        format!("http://{}/{name}.git", self.address)
    }

    /// Says who may use the repository `name` from now on.
    pub fn set_access(&self, name: &str, access: Access) {
        self.shared.state().access.insert(name.to_owned(), access);
    }

    /// Sets what goes wrong with the repository `name` from now on; None: nothing.
    pub fn set_fault(&self, name: &str, fault: impl Into<Option<Fault>>) {
        let mut state = self.shared.state();
        match fault.into() {
            Some(fault) => state.faults.insert(name.to_owned(), fault),
            None => state.faults.remove(name),
        };
    }

    /// Everything that was asked about the repository `name`, in order, refused requests included.
    pub fn requests(&self, name: &str) -> Vec<Request> {
        let state = self.shared.state();
        state
            .requests
            .iter()
            .filter(|request| request.repository == name)
            .cloned()
            .collect()
    }

    /// How often what was asked about the repository `name`.
    pub fn counts(&self, name: &str) -> Counts {
        Counts::from_requests(&self.requests(name))
    }

    /// Forgets all requests so far.
    pub fn reset_requests(&self) {
        self.shared.state().requests.clear();
    }
}

impl Drop for GitServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(State(shared): State<Arc<Shared>>, request: HttpRequest) -> Response {
    let (head, body) = request.into_parts();
    // A push of a test repository; the demo's are smaller still.
    let Ok(body) = axum::body::to_bytes(body, 256 << 20).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    let path = head.uri.path();
    let name = path
        .trim_start_matches('/')
        .split(".git")
        .next()
        .unwrap_or_default()
        .to_owned();
    let kind = Kind::new(path, head.uri.query().unwrap_or_default(), &head.headers, &body);
    let (access, fault) = {
        let state = shared.state();
        (
            state.access.get(&name).cloned().unwrap_or(Access::Anonymous),
            state.faults.get(&name).cloned(),
        )
    };
    let allowed = may_enter(&access, &head.headers);
    shared.state().requests.push(Request {
        repository: name,
        kind,
        allowed,
    });

    let mut cut_answer = None;
    match fault {
        Some(Fault::Status(status)) => {
            return StatusCode::from_u16(status)
                .unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
                .into_response();
        }
        Some(Fault::Delay(time)) => tokio::time::sleep(time).await,
        Some(Fault::Hang) => std::future::pending().await,
        Some(Fault::CutAnswer(bytes)) if kind == Kind::Fetch => cut_answer = Some(bytes),
        Some(Fault::CutPush(bytes)) if path.ends_with("/git-receive-pack") => cut_answer = Some(bytes),
        Some(Fault::CutAnswer(_) | Fault::CutPush(_)) | None => {}
    }
    if !allowed {
        let scheme = if matches!(access, Access::Bearer(_)) {
            "Bearer"
        } else {
            "Basic"
        };
        let challenge = format!("{scheme} realm=\"testkit\"");
        return (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, challenge)]).into_response();
    }
    let home = shared.directory.path();
    match backend::run(&shared.backend, home, &head, body, cut_answer).await {
        Ok(response) => response,
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error:#}")).into_response(),
    }
}

fn may_enter(access: &Access, headers: &HeaderMap) -> bool {
    let expected = match access {
        Access::Anonymous => return true,
        Access::Basic { username, password } => {
            format!("Basic {}", STANDARD.encode(format!("{username}:{password}")))
        }
        Access::Bearer(token) => format!("Bearer {token}"),
    };
    headers
        .get(header::AUTHORIZATION)
        .is_some_and(|given| given.as_bytes() == expected.as_bytes())
}
