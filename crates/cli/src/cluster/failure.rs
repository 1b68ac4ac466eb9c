//! Errors of commands that talk to a cluster, and the exit codes that they map to.

use std::io;

/// Why a command did not end well.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The words that were typed make no sense.
    #[error("{0}")]
    Usage(String),
    /// The requested object is missing, or not ready.
    #[error("{0}")]
    NotReady(String),
    /// It did not come in time.
    #[error("{0}")]
    TimedOut(String),
    /// Someone pressed Ctrl-C.
    #[error("interrupted; run the command again to go on")]
    Interrupted,
    /// There is no way to a cluster.
    #[error("failed to find a cluster: {0}; name a kubeconfig with --kubeconfig or $KUBECONFIG")]
    Configure(String),
    /// Some of what was asked for is not there; the rest was printed.
    #[error("{0}")]
    Incomplete(String),
    /// There are differences, and whoever asked wants to hear it in the exit code. They were printed.
    #[error("there are changes")]
    Differs,
    /// The API server did not do what it was asked.
    #[error("failed to {what}: {why}")]
    Request { what: String, why: String },
    /// Someone else has changed the object since it was read.
    #[error("failed to {what}: {why}")]
    Conflict { what: String, why: String },
    /// Whoever asks may not do that.
    #[error("failed to {what}: {why}")]
    Forbidden { what: String, why: String },
    /// An answer cannot be written in the form that was asked for.
    #[error("failed to write the answer: {0}")]
    Write(String),
    /// Nothing can be started.
    #[error("failed to start: {0}")]
    Runtime(io::Error),
    /// The answer cannot be printed.
    #[error("failed to print the answer: {0}")]
    Print(io::Error),
}

impl Failure {
    /// Says what the API server was asked, and why it did not do it.
    pub(crate) fn request(what: impl Into<String>, source: kube::Error) -> Self {
        let (what, why) = (what.into(), why(&source));
        match source {
            kube::Error::Api(status) if status.code == 403 => Self::Forbidden { what, why },
            kube::Error::Api(status) if status.is_conflict() => Self::Conflict { what, why },
            _ => Self::Request { what, why },
        }
    }

    pub(super) fn configure(error: &dyn std::error::Error) -> Self {
        Self::Configure(error_chain::condensed(error))
    }

    /// The exit codes of all commands that speak to a cluster; `windlass --help` lists them.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => USAGE,
            Self::NotReady(_) => NOT_READY,
            Self::TimedOut(_) => TIMED_OUT,
            Self::Differs => DIFFERS,
            _ => 1,
        }
    }

    /// Returns whether the reader of the output has closed it.
    pub(crate) fn is_closed_pipe(&self) -> bool {
        matches!(self, Self::Print(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}

/// The command line makes no sense.
pub(crate) const USAGE: u8 = 2;
/// Exit code: the requested object is missing, or not ready.
const NOT_READY: u8 = 3;
/// `windlass diff --exit-code` has found something.
const DIFFERS: u8 = 5;
/// As `timeout(1)` ends.
const TIMED_OUT: u8 = 124;

/// Exit codes, as the help shows them.
pub(crate) const EXIT_CODES: &str = "Exit codes: 0 success; 1 failure; 2 invalid usage; 3 not found or not ready; 5 changes found \
     (`diff --exit-code`); 124 timeout. `build` and `template` exit as kustomize and helm do.";

/// kube's own words have the whole answer of the server in them, with braces.
fn why(error: &kube::Error) -> String {
    let kube::Error::Api(status) = error else {
        return error_chain::condensed(error);
    };
    let hint = match status.code {
        401 => "; the kubeconfig's credentials are not taken: sign in again",
        _ => "",
    };
    format!("{}{hint}", status.message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Layer {
        text: &'static str,
        source: Option<Box<Layer>>,
    }

    #[test]
    fn nothing_is_said_twice() {
        let innermost = Layer {
            text: "refused",
            source: None,
        };
        let middle = Layer {
            text: "connect: refused",
            source: Some(Box::new(innermost)),
        };
        let outer = Layer {
            text: "failed to list",
            source: Some(Box::new(middle)),
        };
        assert_eq!(error_chain::condensed(&outer), "failed to list: connect: refused");
    }

    #[test]
    fn every_kind_of_failure_has_its_exit_code() {
        for (failure, code) in [
            (Failure::Usage(String::new()), 2),
            (Failure::NotReady(String::new()), 3),
            (Failure::TimedOut(String::new()), 124),
            (Failure::Write(String::new()), 1),
        ] {
            assert_eq!(failure.exit_code(), code, "{failure:?}");
        }
    }
}
