//! A real Gitea as a process: users, repositories, pull requests, webhooks.
//!
//! Its API answers in milliseconds; tests speak to it as an administrator through [`Gitea::call`].

mod visitor;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::git::KeyPair;
use crate::ports::free_port;
use crate::process::Process;
use crate::tools;

const ADMIN: &str = "administrator";
const START: Duration = Duration::from_secs(60);

/// A Gitea on a free port of 127.0.0.1, without TLS, gone when dropped.
#[derive(Debug)]
pub struct Gitea {
    url: String,
    token: String,
    http: reqwest::Client,
    program: std::path::PathBuf,
    directory: TempDir,
    process: Process,
    ssh: Option<String>,
}

/// Times that something is asked for which fails now and then, as its database is locked.
const TRIES: usize = 5;

/// A user of a Gitea.
#[derive(Debug, Clone)]
pub struct User {
    /// Name to sign in with.
    pub name: String,
    /// Token with all scopes; also the password for Git.
    pub token: String,
}

impl Gitea {
    /// Builds Gitea if need be, starts it empty and waits until it answers.
    pub async fn start() -> Result<Self> {
        Self::start_with(None).await
    }

    /// The same with Gitea's own server of ssh, on another free port.
    pub async fn start_with_ssh() -> Result<Self> {
        Self::start_with(Some(format!("127.0.0.1:{}", free_port()?))).await
    }

    async fn start_with(ssh: Option<String>) -> Result<Self> {
        // One provider per process; a second call finds it there.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let built = tokio::task::spawn_blocking(tools::gitea).await??;
        let directory = crate::scratch::directory("gitea")?;
        let address = format!("127.0.0.1:{}", free_port()?);
        let mut settings = settings(directory.path(), &built.files, &address);
        if let Some((_, port)) = ssh.as_deref().and_then(|address| address.split_once(':')) {
            let key = directory.path().join("host-key");
            let pair = KeyPair::generate(&["-t", "ed25519"])?;
            fs::write(&key, pair.private).context("failed to write Gitea's host key")?;
            fs::set_permissions(&key, fs::Permissions::from_mode(0o600))?;
            // What is written last counts.
            settings.push_str(&format!(
                "[server]
DISABLE_SSH = false
START_SSH_SERVER = true
BUILTIN_SSH_SERVER_USER = git
SSH_DOMAIN = 127.0.0.1
SSH_PORT = {port}
SSH_LISTEN_HOST = 127.0.0.1
SSH_SERVER_HOST_KEYS = {}
",
                key.display()
            ));
        }
        fs::write(directory.path().join("app.ini"), settings).context("failed to write Gitea's settings")?;
        gitea(&built.program, directory.path(), &["migrate"])?;
        let token = add_user(&built.program, directory.path(), ADMIN, true)?;
        let mut command = command(&built.program, directory.path());
        command.arg("web");
        let process = Process::start("gitea", command, directory.path().join("gitea.log"))?;
        // No proxy of the environment stands between us and loopback.
        let http = reqwest::Client::builder().no_proxy().build()?;
        let gitea = Self {
            url: format!("http://{address}"),
            token,
            http,
            program: built.program,
            directory,
            process,
            ssh,
        };
        gitea.wait_until_answering().await?;
        Ok(gitea)
    }

    /// `http://127.0.0.1:port`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// `127.0.0.1:port` of its server of ssh, if it has one.
    pub fn ssh_address(&self) -> Option<&str> {
        self.ssh.as_deref()
    }

    /// The URL of a repository for clones and browsers.
    pub fn repository_url(&self, owner: &str, name: &str) -> String {
        format!("{}/{owner}/{name}", self.url)
    }

    /// Adds a user.
    pub async fn add_user(&self, name: &str) -> Result<User> {
        let mut attempt = 1;
        let token = loop {
            let (program, directory) = (self.program.clone(), self.directory.path().to_owned());
            let user = name.to_owned();
            let added = tokio::task::spawn_blocking(move || add_user(&program, &directory, &user, false));
            match added.await? {
                Ok(token) => break token,
                // The server held the database for longer than the command waits.
                Err(error) if attempt < TRIES && error.to_string().contains("database is locked") => {
                    attempt += 1;
                    tokio::time::sleep(Duration::from_millis(200)).await;
                }
                Err(error) => return Err(error),
            }
        };
        Ok(User {
            name: name.to_owned(),
            token,
        })
    }

    /// Adds a repository with a branch `main` that holds these files (path, contents).
    pub async fn add_repository(&self, owner: &User, name: &str, files: &[(&str, &str)]) -> Result<()> {
        let body = json!({"name": name, "auto_init": true, "default_branch": "main"});
        // With many at once its database is locked now and then, which it answers as a failure of its own; half of the repository
        // may be there then.
        for attempt in 1.. {
            let made = self
                .call_as(owner, Method::POST, "user/repos", Some(body.clone()))
                .await;
            match made {
                Ok(_) => break,
                Err(error) if attempt < TRIES && is_passing(&error, attempt) => {
                    tokio::time::sleep(Duration::from_millis(200)).await;
                    let half = format!("repos/{}/{name}", owner.name);
                    // Where nothing is, nothing is deleted.
                    self.call_as(owner, Method::DELETE, &half, None).await.ok();
                }
                Err(error) => return Err(error),
            }
        }
        self.commit(owner, &format!("{}/{name}", owner.name), "main", files)
            .await
            .map(drop)
    }

    /// Writes files (path, contents) on a branch as a commit of this user, and returns the commit.
    pub async fn commit(
        &self,
        user: &User,
        repository: &str,
        branch: &str,
        files: &[(&str, &str)],
    ) -> Result<String> {
        let mut changes = Vec::new();
        for (path, contents) in files {
            let at = format!("repos/{repository}/contents/{path}?ref={branch}");
            let found = self.call_as(user, Method::GET, &at, None).await.ok();
            let sha = found.and_then(|found| found["sha"].as_str().map(str::to_owned));
            let operation = if sha.is_some() { "update" } else { "create" };
            changes.push(json!({
                "operation": operation,
                "path": path,
                "content": STANDARD.encode(contents),
                "sha": sha,
            }));
        }
        let body = json!({"branch": branch, "message": "a person's change", "files": changes});
        let at = format!("repos/{repository}/contents");
        let answer = self.call_as(user, Method::POST, &at, Some(body)).await?;
        let commit = answer["commit"]["sha"].as_str();
        commit.map(str::to_owned).context("Gitea names no commit")
    }

    /// Opens a pull request as this user, by the body of the API's request; returns its number.
    pub async fn open_pull_request(&self, user: &User, repository: &str, body: &Value) -> Result<u64> {
        let at = format!("repos/{repository}/pulls");
        let mut attempt = 1;
        let opened = loop {
            let answer = self.call_as(user, Method::POST, &at, Some(body.clone())).await;
            match answer {
                Ok(opened) => break opened,
                // An attempt before this one opened it and failed afterwards.
                Err(error) if attempt > 1 && error.to_string().contains(" answered 409 ") => {
                    let (base, head) = (body["base"].as_str(), body["head"].as_str());
                    let found = format!("{at}/{}/{}", base.unwrap_or_default(), head.unwrap_or_default());
                    break self.call_as(user, Method::GET, &found, None).await?;
                }
                Err(error) if attempt < TRIES && is_passing(&error, attempt) => {
                    attempt += 1;
                    tokio::time::sleep(Duration::from_millis(200)).await;
                }
                Err(error) => return Err(error),
            }
        };
        opened["number"]
            .as_u64()
            .context("the pull request has no number")
    }

    /// The contents of a file.
    pub async fn file(&self, repository: &str, branch: &str, path: &str) -> Result<String> {
        let at = format!("repos/{repository}/contents/{path}?ref={branch}");
        let answer = self.call(Method::GET, &at, None).await?;
        let contents = answer["content"].as_str().context("Gitea gives no contents")?;
        Ok(String::from_utf8(STANDARD.decode(contents)?)?)
    }

    /// Calls the API as the administrator. `path` comes after `/api/v1/`.
    pub async fn call(&self, method: Method, path: &str, body: Option<Value>) -> Result<Value> {
        self.send(&self.token, method, path, body).await
    }

    /// Calls the API as a user.
    pub async fn call_as(
        &self,
        user: &User,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> Result<Value> {
        self.send(&user.token, method, path, body).await
    }

    async fn send(&self, token: &str, method: Method, path: &str, body: Option<Value>) -> Result<Value> {
        let url = format!("{}/api/v1/{path}", self.url);
        let mut request = self.http.request(method.clone(), &url);
        request = request.header("Authorization", format!("token {token}"));
        if let Some(body) = body {
            request = request.json(&body);
        }
        let answer = request
            .send()
            .await
            .with_context(|| format!("failed to ask {url}"))?;
        let status = answer.status();
        let text = answer.text().await?;
        if status.is_server_error() {
            let log = self.process.log_tail(5);
            bail!("{method} {path} answered {status}: {text}; its log ends with:\n{log}");
        }
        if !status.is_success() {
            bail!("{method} {path} answered {status}: {text}");
        }
        if text.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_str(&text).with_context(|| format!("{path} answered no JSON: {text}"))
    }

    async fn wait_until_answering(&self) -> Result<()> {
        let started = Instant::now();
        loop {
            if self.call(Method::GET, "version", None).await.is_ok() {
                return Ok(());
            }
            if let Some(status) = self.process.exit_status() {
                bail!("Gitea ended ({status}):\n{}", self.process.log_tail(20));
            }
            if started.elapsed() > START {
                bail!("Gitea does not answer:\n{}", self.process.log_tail(20));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// Returns whether another attempt may succeed: after the first, what is there is our own.
fn is_passing(error: &anyhow::Error, attempt: usize) -> bool {
    let said = error.to_string();
    said.contains(" answered 500 ") || (attempt > 1 && said.contains(" answered 409 "))
}

fn settings(directory: &Path, files: &Path, address: &str) -> String {
    let (host, port) = address.split_once(':').unwrap_or((address, "3000"));
    let (directory, files) = (directory.display(), files.display());
    format!(
        "RUN_MODE = prod
I_AM_BEING_UNSAFE_RUNNING_AS_ROOT = true
WORK_PATH = {directory}
[server]
HTTP_ADDR = {host}
HTTP_PORT = {port}
ROOT_URL = http://{address}/
STATIC_ROOT_PATH = {files}
DISABLE_SSH = true
OFFLINE_MODE = true
[database]
DB_TYPE = sqlite3
PATH = {directory}/gitea.db
SQLITE_JOURNAL_MODE = WAL
SQLITE_TIMEOUT = 240000
[security]
INSTALL_LOCK = true
SECRET_KEY = a-key-for-tests
PASSWORD_HASH_ALGO = pbkdf2$1000$10
SUCCESSFUL_TOKENS_CACHE_SIZE = 1000
[service]
DISABLE_REGISTRATION = true
[log]
LEVEL = Warn
MODE = console
[cron]
ENABLED = false
[indexer]
ISSUE_INDEXER_TYPE = db
[actions]
ENABLED = false
[webhook]
ALLOWED_HOST_LIST = loopback
[repository]
DEFAULT_BRANCH = main
"
    )
}

fn command(program: &Path, directory: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .arg("--config")
        .arg(directory.join("app.ini"))
        .current_dir(directory)
        .env("GITEA_WORK_DIR", directory)
        .env("HOME", directory)
        .env("NO_PROXY", "127.0.0.1")
        .env("GIT_CONFIG_NOSYSTEM", "1");
    command
}

fn gitea(program: &Path, directory: &Path, arguments: &[&str]) -> Result<String> {
    let mut command = command(program, directory);
    let output = command.args(arguments).output().context("failed to run gitea")?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        bail!(
            "gitea {} failed: {said}{}",
            arguments.join(" "),
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(said)
}

/// Adds a user and returns a token of theirs.
fn add_user(program: &Path, directory: &Path, name: &str, is_admin: bool) -> Result<String> {
    let email = format!("{name}@example.com");
    let mut arguments = vec![
        "admin",
        "user",
        "create",
        "--username",
        name,
        "--email",
        &email,
        "--random-password",
        "--must-change-password=false",
        "--access-token",
        "--access-token-scopes",
        "all",
    ];
    if is_admin {
        arguments.push("--admin");
    }
    let printed = match gitea(program, directory, &arguments) {
        // An attempt before this one added the user and failed at the token.
        Err(error) if error.to_string().contains("user already exists") => {
            let token = [
                "admin",
                "user",
                "generate-access-token",
                "--username",
                name,
                "--token-name",
                "second-attempt",
                "--scopes",
                "all",
            ];
            gitea(program, directory, &token)?
        }
        printed => printed?,
    };
    // One command prints dots behind it, the other a colon.
    let token = printed
        .lines()
        .find_map(|line| line.strip_prefix("Access token was successfully created"));
    let token = token.with_context(|| format!("gitea printed no token: {printed}"))?;
    Ok(token.trim_start_matches(['.', ':', ' ']).trim().to_owned())
}
