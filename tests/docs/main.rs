//! What README.md and docs/getting-started.md tell people to type, typed as it is written: in a shell, on a real control plane,
//! with the real git, kubectl, helm and flux. A command that is neither run nor listed with a reason fails the test.

#![expect(clippy::print_stdout, reason = "a test's output is shown when it fails")]

mod getting_started;
mod page;
mod readme;
mod shell;
