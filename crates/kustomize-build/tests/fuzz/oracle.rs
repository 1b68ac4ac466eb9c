//! The real kustomize, as a process per tree or as hack/oracle/kustomize, which answers many.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::{fs, io};

use base64::Engine;
use serde_json::{Map, Value, json};

use crate::tree::Tree;

/// Result of a build: the YAML, or the error, with paths below the root.
pub type Answer = Result<String, String>;

/// The real kustomize.
pub struct Oracle {
    program: PathBuf,
    server: Option<(Child, BufReader<ChildStdout>)>,
}

impl Oracle {
    /// Takes the program: a server when it is called `oracle`, else the command.
    pub fn new(program: PathBuf) -> io::Result<Self> {
        let mut oracle = Self {
            program,
            server: None,
        };
        if oracle.program.ends_with("oracle") {
            oracle.start()?;
        }
        Ok(oracle)
    }

    pub fn build(&mut self, tree: &Tree) -> io::Result<Answer> {
        if self.server.is_none() {
            return command(&self.program, tree);
        }
        let answer = self.ask(tree);
        if answer.is_err() {
            // A log.Fatal of kustomize ends the server.
            self.start()?;
            return Ok(Err("the real kustomize died".to_owned()));
        }
        answer
    }

    fn start(&mut self) -> io::Result<()> {
        let mut child = Command::new(&self.program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let output = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        if let Some((mut old, _)) = self.server.replace((child, BufReader::new(output))) {
            old.wait()?;
        }
        Ok(())
    }

    fn ask(&mut self, tree: &Tree) -> io::Result<Answer> {
        let (child, output) = self.server.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        let input = child.stdin.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        let engine = base64::engine::general_purpose::STANDARD;
        let files: Map<String, Value> = tree
            .contents()
            .map(|(path, content)| (path.to_owned(), engine.encode(content).into()))
            .collect();
        writeln!(input, "{}", json!({"files": files, "folder": tree.folder}))?;
        input.flush()?;
        let mut line = String::new();
        output.read_line(&mut line)?;
        let answer: Value = serde_json::from_str(&line)?;
        let text = |field: &str| answer[field].as_str().unwrap_or_default().to_owned();
        Ok(match answer["fails"] == true {
            true => Err(relative(&text("error"))),
            false => Ok(text("yaml")),
        })
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        if let Some((child, _)) = &mut self.server {
            drop(child.stdin.take()); // the end of its input ends it
            let _ = child.wait();
        }
    }
}

fn command(program: &Path, tree: &Tree) -> io::Result<Answer> {
    let folder = tempfile::tempdir()?;
    let root = folder.path().join("root");
    for (path, content) in tree.contents() {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap_or(&root))?;
        fs::write(path, content)?;
    }
    let output = Command::new(program)
        .arg("build")
        .arg(root.join(&tree.folder))
        .output()?;
    if output.status.success() {
        return Ok(Ok(String::from_utf8_lossy(&output.stdout).into_owned()));
    }
    // Warnings stand before the error.
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let start = text.find("Error: ").map_or(0, |at| at + "Error: ".len());
    let message = text[start..].replace(&*root.to_string_lossy(), "{ROOT}");
    Ok(Err(relative(
        &message.replace(&*folder.path().to_string_lossy(), "{PARENT}"),
    )))
}

/// Ours are relative to the root.
fn relative(message: &str) -> String {
    message
        .replace("{ROOT}/", "")
        .replace("{ROOT}", ".")
        .replace("{PARENT}/", "../")
        .trim_end()
        .to_owned()
}
