//! A person at a shell: a folder, a home, a kubeconfig, and the programs that the pages name.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use tempfile::TempDir;
use testkit::controller::program;
use testkit::process::Process;
use testkit::tools::{self, Package, Tool};
use tokio::time::{sleep, timeout};

use crate::page::{Piece, Step, Treatment};

/// Nothing takes this long unless it is broken.
const PATIENCE: Duration = Duration::from_secs(180);

/// The programs that a release has.
const OURS: [&str; 5] = [
    "windlass",
    "source-controller",
    "apply-controller",
    "helm-controller",
    "notification-controller",
];

/// The shell. What it has left running ends with it.
pub struct Shell {
    /// Where commands are typed.
    pub folder: PathBuf,
    kubeconfig: PathBuf,
    path: OsString,
    running: Vec<Process>,
    home: TempDir,
    /// What later commands are to know: variables and functions.
    known: String,
}

impl Shell {
    /// One in an empty folder, with our programs, kubectl, helm and flux before those of the machine.
    pub async fn new(kubeconfig: &Path) -> Result<Self> {
        let home = testkit::scratch::directory("docs")?;
        let programs = home.path().join("bin");
        let folder = home.path().join("work");
        fs::create_dir_all(&programs)?;
        fs::create_dir_all(&folder)?;
        tokio::task::spawn_blocking(|| {
            tools::ensure_loudly(&[Tool::Kubectl])?;
            Package::Flux.ensure(&mut |line| println!("{line}"))
        })
        .await??;
        for name in OURS {
            symlink(program(name)?, programs.join(name))?;
        }
        symlink(tools::path(Tool::Kubectl)?, programs.join("kubectl"))?;
        symlink(Package::Flux.path()?, programs.join("flux"))?;
        let helm = tokio::task::spawn_blocking(tools::helm).await??;
        symlink(helm, programs.join("helm"))?;
        let mut path = programs.into_os_string();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        Ok(Self {
            folder,
            kubeconfig: kubeconfig.to_owned(),
            path,
            running: Vec::new(),
            home,
            known: String::new(),
        })
    }

    /// Takes a step as its treatment says.
    pub async fn take(&mut self, step: &Step) -> Result<()> {
        match (&step.piece, &step.treatment) {
            (Piece::Manifests(text), _) => self.apply(text).await.map(drop),
            (Piece::Command(text), None) => self.run(text).await.map(drop),
            (Piece::Command(text), Some(Treatment::Serves(address))) => self.serve(text, address).await,
            (Piece::Command(text), Some(Treatment::Prints(expected))) => self.watch(text, expected).await,
            (Piece::Command(text), Some(Treatment::Ends(code, expected))) => {
                let (ended, said) = self.end(text).await?;
                let is_it = ended.code() == Some(*code) && said.contains(*expected);
                ensure!(is_it, "`{text}` ends with {ended}:\n{said}");
                Ok(())
            }
            (Piece::Command(text), Some(Treatment::Skipped(reason))) => {
                println!("$ {text}\n(not run: {reason})");
                Ok(())
            }
        }
    }

    /// Runs a command that defines a variable or a function, and has later ones know it.
    pub async fn remember(&mut self, command: &str) -> Result<()> {
        let variable = command
            .strip_prefix("export ")
            .and_then(|rest| rest.split('=').next());
        // What a variable was made of is not made again by each of them.
        self.known += &match variable {
            Some(name) => {
                self.run(&format!("{command} > /dev/null; declare -p {name}"))
                    .await?
            }
            None => format!("{command}\n"),
        };
        Ok(())
    }

    /// Runs a command to its end, and returns what it says. It must end with 0.
    pub async fn run(&self, command: &str) -> Result<String> {
        let (status, said) = self.end(command).await?;
        ensure!(status.success(), "`{command}` ends with {status}:\n{said}");
        Ok(said)
    }

    async fn end(&self, command: &str) -> Result<(ExitStatus, String)> {
        let mut shell = self.command(command);
        shell.stdin(Stdio::null());
        let output = tokio::task::spawn_blocking(move || shell.output());
        let output = timeout(PATIENCE, output).await;
        let output = output.with_context(|| format!("`{command}` does not end"))???;
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        println!("$ {command}\n{said}");
        Ok((output.status, said))
    }

    /// Applies manifests.
    pub async fn apply(&self, manifests: &str) -> Result<String> {
        let file = self.home.path().join("manifests.yaml");
        fs::write(&file, manifests)?;
        self.run(&format!("kubectl apply -f {}", file.display())).await
    }

    async fn serve(&mut self, command: &str, address: &str) -> Result<()> {
        let process = self.start(command)?;
        let http = reqwest::Client::builder().no_proxy().build()?;
        let ready = async {
            loop {
                process.check_running()?;
                let answer = http.get(address).send().await;
                if answer.is_ok_and(|answer| answer.status().is_success()) {
                    return anyhow::Ok(());
                }
                sleep(Duration::from_millis(50)).await;
            }
        };
        let ready = timeout(PATIENCE, ready).await;
        let told = || format!("`{command}` is not ready:\n{}", process.log_tail(20));
        ready.with_context(told)??;
        self.running.push(process);
        Ok(())
    }

    async fn watch(&self, command: &str, expected: &str) -> Result<()> {
        let process = self.start(command)?;
        let printed = async {
            while !process.log().contains(expected) {
                if let Some(status) = process.exit_status() {
                    bail!("`{command}` ends with {status}");
                }
                sleep(Duration::from_millis(100)).await;
            }
            Ok(())
        };
        let printed = timeout(PATIENCE, printed).await;
        println!("$ {command}\n{}", process.log());
        printed.with_context(|| format!("`{command}` does not print {expected:?}:\n{}", process.log()))?
    }

    fn start(&self, command: &str) -> Result<Process> {
        let log = self.home.path().join(format!("log.{}", self.running.len()));
        let _ = fs::remove_file(&log);
        // Else the shell would be ended, and not what it has started.
        Process::start(command, self.command(&format!("exec {command}")), log)
    }

    fn command(&self, command: &str) -> Command {
        let mut shell = Command::new("bash");
        shell
            .args([
                "-e",
                "-u",
                "-o",
                "pipefail",
                "-c",
                &format!("{}{command}", self.known),
            ])
            .current_dir(&self.folder)
            .env("PATH", &self.path)
            .env("HOME", self.home.path())
            .env("KUBECONFIG", &self.kubeconfig)
            .env("RUNTIME_NAMESPACE", "flux-system");
        shell
    }
}
