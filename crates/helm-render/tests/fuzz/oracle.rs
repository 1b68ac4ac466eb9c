//! The program of hack/oracle/helm, which answers many templates.

use std::io::{self, BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};

use base64::prelude::{BASE64_STANDARD, Engine as _};
use helm_chart::Helm;
use serde_json::{Value, json};

use crate::Answer;

/// The real Helm.
pub struct Oracle {
    program: PathBuf,
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Oracle {
    pub fn new(program: PathBuf) -> io::Result<Self> {
        let mut child = Command::new(&program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let output = BufReader::new(child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?);
        Ok(Self {
            program,
            child,
            output,
        })
    }

    /// Gives its answer; None where it died of the template, as Go does of maps that hold themselves.
    pub fn ask(&mut self, template: &str, values: &str, helm: Helm) -> Option<Answer> {
        let helm = if helm == Helm::V3 { "v3" } else { "v4" };
        let question = json!({"template": template, "values": values, "helm": helm});
        match self.exchange(&question) {
            Ok(answer) => Some(answer),
            Err(_) => {
                self.end();
                *self = Self::new(self.program.clone()).expect("ORACLE starts");
                None
            }
        }
    }

    fn exchange(&mut self, question: &Value) -> io::Result<Answer> {
        let input = self.child.stdin.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        writeln!(input, "{question}")?;
        input.flush()?;
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        let answer: Value = serde_json::from_str(&line)?;
        let text = |name: &str| answer[name].as_str();
        Ok(match (text("output"), text("bytes")) {
            (Some(output), _) => Ok(output.as_bytes().to_vec()),
            (None, Some(bytes)) => Ok(BASE64_STANDARD.decode(bytes).map_err(io::Error::other)?),
            (None, None) => Err(text("error").or(text("panic")).unwrap_or_default().to_owned()),
        })
    }

    fn end(&mut self) {
        drop(self.child.stdin.take()); // the end of its input ends it
        let _ = self.child.wait();
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        self.end();
    }
}
