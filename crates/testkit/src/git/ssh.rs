//! Git repositories served over ssh by the real `sshd` of OpenSSH, without privileges on a free port.
//!
//! The user is whoever runs the test, and signs in with keys made for it. The package openssh-server must be installed.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use tempfile::TempDir;

use super::Repository;
use crate::process::Process;

/// Host keys, most common type first.
const HOST_KEY_TYPES: [&str; 3] = ["ed25519", "ecdsa", "rsa"];
const PATIENCE: Duration = Duration::from_secs(20);

/// An sshd on 127.0.0.1, gone when dropped.
#[derive(Debug)]
pub struct SshServer {
    process: Process,
    directory: TempDir,
    port: u16,
    user: String,
}

/// A key pair as ssh-keygen writes it.
#[derive(Debug, Clone)]
pub struct KeyPair {
    /// The private key.
    pub private: String,
    /// One line: type, key, comment.
    pub public: String,
}

impl SshServer {
    /// Starts a server that lets no one in, with these lines added to its configuration, such as `AcceptEnv GIT_PROTOCOL`.
    pub async fn start(configuration: &[&str]) -> Result<Self> {
        let directory = crate::scratch::directory("sshd")?;
        let program = find_sshd()?;
        let port = crate::ports::free_port()?;
        for type_ in HOST_KEY_TYPES {
            generate(&directory.path().join(type_), &["-t", type_])?;
        }
        let file = directory.path().join("sshd_config");
        fs::write(&file, settings(directory.path(), port, configuration))
            .context("failed to write sshd_config")?;
        fs::write(directory.path().join("authorized_keys"), "")?;
        let mut command = Command::new(program);
        command.args(["-D", "-e", "-f"]).arg(&file);
        let server = Self {
            process: Process::start("sshd", command, directory.path().join("log"))?,
            user: user()?,
            directory,
            port,
        };
        server.wait_until_ready().await?;
        Ok(server)
    }

    /// The port of 127.0.0.1 that it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Makes an empty bare repository `name.git` that everybody with a key may read.
    pub fn create_repository(&self, name: &str) -> Result<Repository> {
        Repository::create(self.directory.path(), name, self.url(name))
    }

    /// The address of the repository `name`, whether it exists or not.
    pub fn url(&self, name: &str) -> String {
        let path = self.directory.path().join(format!("{name}.git"));
        format!("ssh://{}@127.0.0.1:{}{}", self.user, self.port, path.display())
    }

    /// User name for ssh.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// The entry of `known_hosts` for the host key of this type (ed25519, ecdsa, rsa).
    pub fn known_host(&self, type_: &str) -> Result<String> {
        Ok(format!("[127.0.0.1]:{} {}\n", self.port, self.host_key(type_)?))
    }

    /// All entries of `known_hosts`.
    pub fn known_hosts(&self) -> Result<String> {
        HOST_KEY_TYPES
            .iter()
            .map(|type_| self.known_host(type_))
            .collect()
    }

    /// A host key's type and key.
    pub fn host_key(&self, type_: &str) -> Result<String> {
        let file = self.directory.path().join(format!("{type_}.pub"));
        let line = fs::read_to_string(&file).with_context(|| format!("failed to read {}", file.display()))?;
        Ok(line.split_whitespace().take(2).collect::<Vec<_>>().join(" "))
    }

    /// Lets in whoever has the private key to this public one, and no one else any more.
    pub fn authorize(&self, public: &str) -> Result<()> {
        let file = self.directory.path().join("authorized_keys");
        fs::write(file, format!("{public}\n")).context("failed to write authorized_keys")
    }

    /// Returns its log.
    pub fn log(&self) -> String {
        self.process.log()
    }

    async fn wait_until_ready(&self) -> Result<()> {
        let start = std::time::Instant::now();
        while start.elapsed() < PATIENCE {
            self.process.check_running()?;
            if tokio::net::TcpStream::connect(("127.0.0.1", self.port))
                .await
                .is_ok()
            {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        bail!(
            "sshd does not listen after {PATIENCE:?}; its log:\n{}",
            self.process.log_tail(20)
        )
    }
}

impl KeyPair {
    /// Makes a key pair with these arguments of ssh-keygen, such as `-t ed25519`, and no passphrase unless `-N` says one.
    pub fn generate(arguments: &[&str]) -> Result<Self> {
        let directory = crate::scratch::directory("ssh-key")?;
        let file = directory.path().join("key");
        generate(&file, arguments)?;
        Ok(Self {
            private: fs::read_to_string(&file)?,
            public: fs::read_to_string(file.with_extension("pub"))?,
        })
    }
}

fn settings(directory: &Path, port: u16, more: &[&str]) -> String {
    let directory = directory.display();
    let mut lines: Vec<String> = vec![
        format!("Port {port}"),
        "ListenAddress 127.0.0.1".to_owned(),
        format!("AuthorizedKeysFile {directory}/authorized_keys"),
        "PidFile none".to_owned(),
        "StrictModes no".to_owned(), // the folder is in /tmp
        "UsePAM no".to_owned(),
        "PasswordAuthentication no".to_owned(),
        "PermitRootLogin yes".to_owned(),
        "LogLevel VERBOSE".to_owned(),
        "SetEnv GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1".to_owned(),
    ];
    lines.extend(HOST_KEY_TYPES.map(|type_| format!("HostKey {directory}/{type_}")));
    lines.extend(
        more.iter()
            .map(|line| line.replace("%directory%", &directory.to_string())),
    );
    lines.join("\n") + "\n"
}

/// It must be started by its full name.
fn find_sshd() -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from));
    let mut candidates = folders.map(|folder| folder.join("sshd"));
    let Some(sshd) = candidates.find(|program| program.is_file()) else {
        bail!("there is no sshd: install the package openssh-server");
    };
    // Its own service makes this folder; where root runs the tests in a container there is none.
    if user()? == "root" {
        let empty = Path::new("/run/sshd");
        fs::create_dir_all(empty).context("failed to make /run/sshd")?;
        fs::set_permissions(empty, fs::Permissions::from_mode(0o755))?;
    }
    Ok(sshd)
}

fn user() -> Result<String> {
    let output = Command::new("id")
        .arg("-un")
        .output()
        .context("failed to run id")?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn generate(file: &Path, arguments: &[&str]) -> Result<()> {
    let mut command = Command::new("ssh-keygen");
    command.args(["-q", "-C", "testkit", "-f"]).arg(file);
    if !arguments.contains(&"-N") {
        command.args(["-N", ""]);
    }
    let output = command
        .args(arguments)
        .output()
        .context("failed to run ssh-keygen: install the package openssh-client")?;
    if !output.status.success() {
        bail!(
            "ssh-keygen failed: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(())
}
