//! Makes history in a bare repository with git itself; a commit is one `git fast-import`.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

/// A bare repository behind a [`GitServer`](super::GitServer), which must outlive it.
#[derive(Debug, Clone)]
pub struct Repository {
    name: String,
    url: String,
    home: PathBuf,
    directory: PathBuf,
}

/// One change of a commit. Paths are relative, with `/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Creates or replaces a file.
    Write(String, Vec<u8>),
    /// Creates or replaces an executable file.
    WriteExecutable(String, Vec<u8>),
    /// Creates or replaces a symbolic link: its path and what it points to.
    Link(String, String),
    /// Refers to a commit of another repository at a path.
    Submodule(String, String),
    /// Removes a file or a folder.
    Delete(String),
}

impl Change {
    /// Creates or replaces a file.
    pub fn write(path: &str, contents: impl Into<Vec<u8>>) -> Self {
        Self::Write(path.to_owned(), contents.into())
    }

    /// Removes a file or a folder.
    pub fn delete(path: &str) -> Self {
        Self::Delete(path.to_owned())
    }
}

impl Repository {
    pub(super) fn create(home: &Path, name: &str, url: String) -> Result<Self> {
        let directory = home.join(format!("{name}.git"));
        let repository = Self {
            name: name.to_owned(),
            url,
            home: home.to_owned(),
            directory,
        };
        let mut init = Command::new("git");
        isolate(&mut init, home);
        init.args(["init", "--quiet", "--bare", "--initial-branch=main"])
            .arg(&repository.directory);
        run(init, None)?;
        // As the public hosts have it: any commit may be asked for by its id, and clients may filter.
        for setting in [
            "http.receivepack",
            "uploadpack.allowAnySHA1InWant",
            "uploadpack.allowFilter",
        ] {
            repository.git(&["config", setting, "true"])?;
        }
        Ok(repository)
    }

    /// The name by which the server knows it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The HTTP address.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The bare repository's folder.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Commits `changes` on top of `branch`, which begins with this commit when it does not exist yet, and returns the
    /// commit's id.
    pub fn commit(&self, branch: &str, message: &str, changes: &[Change]) -> Result<String> {
        let reference = format!("refs/heads/{branch}");
        let parent = self.git(&["rev-parse", "--verify", "--quiet", &reference]).ok();
        let mut input = Vec::new();
        write!(
            input,
            "commit {reference}\nmark :1\ncommitter Testkit <testkit@windlass.dev> now\n"
        )?;
        write_data(&mut input, message.as_bytes())?;
        if let Some(parent) = parent {
            writeln!(input, "from {parent}")?;
        }
        for change in changes {
            write_change(&mut input, change)?;
        }
        // get-mark prints the commit's id on standard output.
        write!(input, "\nget-mark :1\ndone\n")?;
        self.git_with_input(&["fast-import", "--quiet", "--done", "--date-format=now"], &input)
            .with_context(|| format!("failed to commit to {branch} of {}", self.name))
    }

    /// Commits the files below `folder`, as they are on disk, at the same relative paths.
    pub fn commit_folder(&self, branch: &str, message: &str, folder: &Path) -> Result<String> {
        let mut changes = Vec::new();
        collect(folder, folder, &mut changes)?;
        changes.sort_by(|(a, _), (b, _)| a.cmp(b));
        let changes: Vec<Change> = changes
            .into_iter()
            .map(|(path, contents)| Change::Write(path, contents))
            .collect();
        self.commit(branch, message, &changes)
    }

    /// Makes a branch, or moves it, to `target` (a branch, a tag or an id).
    pub fn branch(&self, name: &str, target: &str) -> Result<()> {
        self.git(&[
            "update-ref",
            &format!("refs/heads/{name}"),
            &format!("{target}^{{commit}}"),
        ])
        .map(drop)
    }

    /// Makes a lightweight tag, or moves it.
    pub fn tag(&self, name: &str, target: &str) -> Result<()> {
        self.git(&["tag", "--force", name, target]).map(drop)
    }

    /// Makes an annotated tag, or replaces it, and returns the id of the tag object.
    pub fn annotated_tag(&self, name: &str, target: &str, message: &str) -> Result<String> {
        self.git(&["tag", "--force", "--annotate", "--message", message, name, target])?;
        self.git(&["rev-parse", &format!("refs/tags/{name}")])
    }

    /// Removes a reference by its full name.
    pub fn delete_reference(&self, full_name: &str) -> Result<()> {
        self.git(&["update-ref", "-d", full_name]).map(drop)
    }

    /// The commit that `name` stands for.
    pub fn resolve(&self, name: &str) -> Result<String> {
        self.git(&["rev-parse", "--verify", &format!("{name}^{{commit}}")])
    }

    /// Runs git in the repository and returns what it printed, without the last line end.
    pub fn git(&self, arguments: &[&str]) -> Result<String> {
        self.git_with_input(arguments, &[])
    }

    fn git_with_input(&self, arguments: &[&str], input: &[u8]) -> Result<String> {
        let mut command = self.command();
        command.args(arguments);
        run(command, Some(input))
    }

    /// git in this repository, without anything of the machine or the user.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new("git");
        isolate(&mut command, &self.home);
        command.arg("--git-dir").arg(&self.directory);
        command
    }
}

/// Keeps every configuration, credential and prompt of the machine and the user away from git.
pub(super) fn isolate(command: &mut Command, home: &Path) {
    let path = std::env::var_os("PATH").unwrap_or_default();
    command
        .env_clear()
        .env("PATH", path)
        .env("HOME", home)
        .env("LC_ALL", "C")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_AUTHOR_NAME", "Testkit")
        .env("GIT_AUTHOR_EMAIL", "testkit@windlass.dev")
        .env("GIT_COMMITTER_NAME", "Testkit")
        .env("GIT_COMMITTER_EMAIL", "testkit@windlass.dev");
}

fn run(mut command: Command, input: Option<&[u8]>) -> Result<String> {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().context("failed to run git: is it installed?")?;
    let mut stdin = child.stdin.take().expect("standard input was asked to be a pipe");
    // git may end before it has read all; what it says then is in its error output.
    let _ = stdin.write_all(input.unwrap_or_default());
    drop(stdin);
    let output = child.wait_with_output().context("failed to wait for git")?;
    if !output.status.success() {
        let arguments: Vec<_> = command
            .get_args()
            .map(|argument| argument.to_string_lossy())
            .collect();
        let said = String::from_utf8_lossy(&output.stderr);
        bail!(
            "git {} failed with {}: {}",
            arguments.join(" "),
            output.status,
            said.trim()
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
}

fn write_change(input: &mut Vec<u8>, change: &Change) -> Result<()> {
    let (mode, path, contents) = match change {
        Change::Write(path, contents) => ("100644", path, contents.as_slice()),
        Change::WriteExecutable(path, contents) => ("100755", path, contents.as_slice()),
        Change::Link(path, target) => ("120000", path, target.as_bytes()),
        Change::Submodule(path, commit) => {
            writeln!(input, "M 160000 {commit} {}", quote(path))?;
            return Ok(());
        }
        Change::Delete(path) => {
            writeln!(input, "D {}", quote(path))?;
            return Ok(());
        }
    };
    writeln!(input, "M {mode} inline {}", quote(path))?;
    write_data(input, contents)
}

fn write_data(input: &mut Vec<u8>, data: &[u8]) -> Result<()> {
    writeln!(input, "data {}", data.len())?;
    input.extend_from_slice(data);
    input.push(b'\n');
    Ok(())
}

/// As fast-import wants paths with special characters; quoting all of them is allowed.
fn quote(path: &str) -> String {
    format!(
        "\"{}\"",
        path.replace('\\', "\\\\")
            .replace('"', "\\\"")
            .replace('\n', "\\n")
    )
}

fn collect(root: &Path, folder: &Path, found: &mut Vec<(String, Vec<u8>)>) -> Result<()> {
    let read = |path: &Path| format!("failed to read {}", path.display());
    for entry in std::fs::read_dir(folder).with_context(|| read(folder))? {
        let path = entry.with_context(|| read(folder))?.path();
        if path.is_dir() {
            collect(root, &path, found)?;
            continue;
        }
        let relative = path
            .strip_prefix(root)
            .expect("the walk began at the root")
            .to_string_lossy();
        found.push((
            relative.into_owned(),
            std::fs::read(&path).with_context(|| read(&path))?,
        ));
    }
    Ok(())
}
