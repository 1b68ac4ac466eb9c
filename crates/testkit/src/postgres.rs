//! A real PostgreSQL as a process: Debian's, with an empty database.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use tempfile::TempDir;

use crate::ports::free_port;
use crate::process::Process;

/// Where Debian has the programs that are for servers.
const DEBIAN: &str = "/usr/lib/postgresql";
/// The server does not run as root; Debian's package makes this user.
const USER: &str = "postgres";
const START: Duration = Duration::from_secs(60);

/// A PostgreSQL on a free port of 127.0.0.1, gone when dropped. Nothing of it is written for good.
#[derive(Debug)]
pub struct Postgres {
    port: u16,
    process: Process,
    _directory: TempDir,
}

impl Postgres {
    /// Starts one and waits until it answers.
    pub async fn start() -> Result<Self> {
        let programs = programs()?;
        let directory = crate::scratch::directory("postgres")?;
        let data = directory.path().join("data");
        let is_root = std::fs::metadata(directory.path())?.uid() == 0;
        if is_root {
            let owner = format!("{USER}:");
            let owned = Command::new("chown").arg(owner).arg(directory.path()).status()?;
            ensure!(
                owned.success(),
                "the folder of PostgreSQL cannot be given to {USER}"
            );
        }
        let mut initdb = command(&programs.join("initdb"), is_root);
        initdb.args([
            "--auth=trust",
            "--username=windlass",
            "--no-sync",
            "--encoding=UTF8",
            "-D",
        ]);
        let made = initdb.arg(&data).current_dir(directory.path()).output()?;
        let told = String::from_utf8_lossy(&made.stderr).into_owned();
        ensure!(made.status.success(), "initdb: {told}");
        let port = free_port()?;
        let mut server = command(&programs.join("postgres"), is_root);
        server
            .arg("-D")
            .arg(&data)
            .args([
                "-p",
                &port.to_string(),
                "-h",
                "127.0.0.1",
                "-c",
                "fsync=off",
                "-k",
            ])
            .arg(directory.path())
            .current_dir(directory.path());
        let process = Process::start("postgres", server, directory.path().join("postgres.log"))?;
        let postgres = Self {
            port,
            process,
            _directory: directory,
        };
        postgres.wait(&programs).await?;
        Ok(postgres)
    }

    /// `postgres://…` of the empty database.
    pub fn url(&self) -> String {
        format!(
            "postgres://windlass@127.0.0.1:{}/postgres?sslmode=disable",
            self.port
        )
    }

    async fn wait(&self, programs: &Path) -> Result<()> {
        let began = Instant::now();
        loop {
            self.process.check_running()?;
            let mut question = Command::new(programs.join("pg_isready"));
            question.args(["-q", "-h", "127.0.0.1", "-p", &self.port.to_string()]);
            if question.status()?.success() {
                return Ok(());
            }
            if began.elapsed() > START {
                bail!("PostgreSQL does not answer: {}", self.process.log_tail(20));
            }
            tokio::time::sleep(Duration::from_millis(50)).await; // it tells nobody that it is there
        }
    }
}

/// The folder of the newest version.
fn programs() -> Result<PathBuf> {
    let missing = "tests of the ledger need PostgreSQL (Debian: apt-get install postgresql)";
    let versions = std::fs::read_dir(DEBIAN).context(missing)?;
    let folders = versions.filter_map(|entry| Some(entry.ok()?.path().join("bin")));
    let mut folders: Vec<PathBuf> = folders.filter(|folder| folder.join("initdb").exists()).collect();
    folders.sort();
    folders.pop().context(missing)
}

fn command(program: &Path, is_root: bool) -> Command {
    if !is_root {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid", USER, "--regid", USER, "--clear-groups"]);
    command.arg(program);
    command
}
