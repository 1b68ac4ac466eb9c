//! Signatures by the real `gpg`, `ssh-keygen` and `git`, with keys that live as long as the value that made them.
//!
//! [`Gpg`] is a home of gpg of its own, [`SshKey`] a key pair in a file; each can sign bytes, and [`Signer`]s of them sign
//! commits and tags of a [`Repository`]. Needs the packages gnupg and openssh-client; without them every call fails.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use tempfile::TempDir;

use super::repository::{Change, Repository};

/// A home of gpg: key pairs without passphrases.
#[derive(Debug)]
pub struct Gpg {
    home: TempDir,
}

impl Gpg {
    /// A home without keys.
    pub fn new() -> Result<Self> {
        let home = crate::scratch::directory("gpg")?;
        let private = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(home.path(), private).context("failed to protect the home of gpg")?;
        Ok(Self { home })
    }

    /// Makes a key and returns its fingerprint. Algorithm, usage and end as `gpg --quick-generate-key` takes them; more
    /// arguments of gpg go before.
    pub fn generate(
        &self,
        arguments: &[&str],
        owner: &str,
        algorithm: &str,
        usage: &str,
        end: &str,
    ) -> Result<String> {
        let call = ["--quick-generate-key", owner, algorithm, usage, end];
        let said = self.gpg(&[arguments, &["--status-fd=1"], &call].concat(), &[])?;
        let said = String::from_utf8_lossy(&said).into_owned();
        let created = said
            .lines()
            .find_map(|line| line.strip_prefix("[GNUPG:] KEY_CREATED "));
        let fingerprint = created.and_then(|rest| rest.split(' ').nth(1));
        Ok(fingerprint
            .context("gpg did not say which key it made")?
            .to_owned())
    }

    /// Gives a key a subkey and returns the subkey's fingerprint.
    pub fn add_subkey(&self, key: &str, algorithm: &str, usage: &str, end: &str) -> Result<String> {
        self.gpg(&["--quick-add-key", key, algorithm, usage, end], &[])?;
        let list = self.gpg(&["--with-colons", "--list-keys", key], &[])?;
        let list = String::from_utf8_lossy(&list).into_owned();
        let last = list.lines().rev().find_map(|line| line.strip_prefix("fpr:"));
        let fingerprint = last.and_then(|line| line.split(':').find(|field| !field.is_empty()));
        Ok(fingerprint.context("gpg did not list the subkey")?.to_owned())
    }

    /// Revokes a key with the certificate that gpg made for it beforehand.
    pub fn revoke(&self, key: &str) -> Result<()> {
        let certificate = self.home.path().join(format!("openpgp-revocs.d/{key}.rev"));
        let text = std::fs::read_to_string(&certificate).context("failed to read the revocation")?;
        // A colon keeps people from using it by accident.
        let text = text.replace(":-----BEGIN", "-----BEGIN");
        self.gpg(&["--import"], text.as_bytes()).map(drop)
    }

    /// Edits a key as a person would, with one line for each question.
    pub fn edit(&self, key: &str, answers: &[&str]) -> Result<()> {
        let input = answers.join("\n") + "\n";
        self.gpg(
            &["--no-batch", "--no-tty", "--command-fd=0", "--edit-key", key],
            input.as_bytes(),
        )
        .map(drop)
    }

    /// The public key, armored.
    pub fn export(&self, key: &str) -> Result<Vec<u8>> {
        self.gpg(&["--armor", "--export", key], &[])
    }

    /// The public key as bytes.
    pub fn export_binary(&self, key: &str) -> Result<Vec<u8>> {
        self.gpg(&["--export", key], &[])
    }

    /// A detached, armored signature over the bytes. A key that ends with `!` is used itself, and not a subkey.
    pub fn sign(&self, arguments: &[&str], key: &str, payload: &[u8]) -> Result<Vec<u8>> {
        self.gpg(
            &[arguments, &["--armor", "--detach-sign", "--local-user", key]].concat(),
            payload,
        )
    }

    /// Returns a signer of commits and tags for a key.
    pub fn signer(&self, key: &str) -> Signer {
        Signer {
            format: "openpgp",
            key: key.to_owned(),
            home: Some(self.home.path().to_owned()),
        }
    }

    /// Runs gpg in this home.
    pub fn gpg(&self, arguments: &[&str], input: &[u8]) -> Result<Vec<u8>> {
        let mut command = Command::new("gpg");
        command
            .env("GNUPGHOME", self.home.path())
            .args(["--batch", "--quiet", "--pinentry-mode=loopback", "--passphrase="])
            .args(arguments);
        run(command, input)
    }
}

impl Drop for Gpg {
    fn drop(&mut self) {
        let mut stop = Command::new("gpgconf");
        stop.env("GNUPGHOME", self.home.path()).args(["--kill", "all"]);
        // Without it the agent ends a little after its home is gone.
        let _ = stop.output();
    }
}

/// A key pair of SSH.
#[derive(Debug)]
pub struct SshKey {
    directory: TempDir,
}

impl SshKey {
    /// Makes a key; the arguments are those of `ssh-keygen`, such as `-t ed25519`.
    pub fn generate(arguments: &[&str]) -> Result<Self> {
        let key = Self {
            directory: crate::scratch::directory("ssh-key")?,
        };
        let mut command = Command::new("ssh-keygen");
        command
            .args(["-q", "-N", "", "-C", "testkit", "-f"])
            .arg(key.path())
            .args(arguments);
        run(command, &[])?;
        Ok(key)
    }

    /// The file with the private key.
    pub fn path(&self) -> PathBuf {
        self.directory.path().join("key")
    }

    /// The line of an `authorized_keys` file.
    pub fn public(&self) -> Result<String> {
        let text = std::fs::read_to_string(self.directory.path().join("key.pub"));
        Ok(text
            .context("failed to read the public key")?
            .trim_end()
            .to_owned())
    }

    /// As `ssh-keygen -l` prints it.
    pub fn fingerprint(&self) -> Result<String> {
        let mut command = Command::new("ssh-keygen");
        command.arg("-lf").arg(self.directory.path().join("key.pub"));
        let said = String::from_utf8_lossy(&run(command, &[])?).into_owned();
        let fingerprint = said
            .split(' ')
            .nth(1)
            .context("ssh-keygen printed no fingerprint")?;
        Ok(fingerprint.to_owned())
    }

    /// An armored signature over the bytes; more arguments of ssh-keygen go before.
    pub fn sign(&self, arguments: &[&str], namespace: &str, payload: &[u8]) -> Result<Vec<u8>> {
        let mut command = Command::new("ssh-keygen");
        command
            .args(["-q", "-Y", "sign", "-n", namespace])
            .args(arguments);
        command.arg("-f").arg(self.path());
        run(command, payload)
    }

    /// Returns a signer of commits and tags with this key.
    pub fn signer(&self) -> Signer {
        Signer {
            format: "ssh",
            key: self.path().display().to_string(),
            home: None,
        }
    }
}

/// Key with which git signs.
#[derive(Debug, Clone)]
pub struct Signer {
    format: &'static str,
    key: String,
    home: Option<PathBuf>,
}

impl Repository {
    /// Commits as [`Repository::commit`] does, and signs.
    pub fn commit_signed(
        &self,
        branch: &str,
        message: &str,
        changes: &[Change],
        signer: &Signer,
    ) -> Result<String> {
        let unsigned = self.commit(branch, message, changes)?;
        let tree = format!("{unsigned}^{{tree}}");
        let parent = self
            .git(&["rev-parse", "--verify", "--quiet", &format!("{unsigned}^")])
            .ok();
        let mut arguments = vec!["commit-tree", "-S", "-m", message, &tree];
        if let Some(parent) = &parent {
            arguments.extend(["-p", parent]);
        }
        let commit = self.git_as(signer, &arguments)?;
        self.git(&["update-ref", &format!("refs/heads/{branch}"), &commit])?;
        Ok(commit)
    }

    /// Makes a signed tag, or replaces it, and returns the id of the tag object.
    pub fn signed_tag(&self, name: &str, target: &str, message: &str, signer: &Signer) -> Result<String> {
        self.git_as(
            signer,
            &["tag", "--force", "--sign", "--message", message, name, target],
        )?;
        self.git(&["rev-parse", &format!("refs/tags/{name}")])
    }

    fn git_as(&self, signer: &Signer, arguments: &[&str]) -> Result<String> {
        let mut command = self.command();
        if let Some(home) = &signer.home {
            command.env("GNUPGHOME", home);
        }
        command
            .args(["-c", &format!("gpg.format={}", signer.format)])
            .args(["-c", &format!("user.signingKey={}", signer.key)])
            .args(arguments);
        let said = run(command, &[])?;
        Ok(String::from_utf8_lossy(&said).trim_end().to_owned())
    }
}

/// Returns whether git itself takes the signature of a commit for good, with all keys of the home and these SSH keys trusted.
pub fn git_verifies(
    repository: &Repository,
    commit: &str,
    gpg: Option<&Gpg>,
    allowed_signers: Option<&Path>,
) -> bool {
    let mut command = repository.command();
    if let Some(gpg) = gpg {
        command.env("GNUPGHOME", gpg.home.path());
    }
    if let Some(file) = allowed_signers {
        command.args(["-c", &format!("gpg.ssh.allowedSignersFile={}", file.display())]);
    }
    command.args(["verify-commit", commit]);
    run(command, &[]).is_ok()
}

fn run(mut command: Command, input: &[u8]) -> Result<Vec<u8>> {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let program = command.get_program().to_string_lossy().into_owned();
    let mut child = command
        .spawn()
        .with_context(|| format!("failed to run {program}: is it installed?"))?;
    let mut stdin = child.stdin.take().expect("standard input was asked to be a pipe");
    // What is signed here is small, so it fits into the pipe; what the program says of it is in its error output.
    let _ = stdin.write_all(input);
    drop(stdin);
    let output = child
        .wait_with_output()
        .with_context(|| format!("failed to wait for {program}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{program} failed with {}: {}", output.status, said.trim());
    }
    Ok(output.stdout)
}
