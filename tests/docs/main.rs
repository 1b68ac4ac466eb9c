//! Types the commands of README.md and docs/getting-started.md as they are written: in a shell, on a real
//! control plane, with the real git, kubectl, helm and flux. A command that is neither run nor listed with a
//! reason fails the test.

#![expect(clippy::print_stdout, reason = "a test's output is shown when it fails")]

mod asking;
mod getting_started;
mod page;
mod promoting;
mod readme;
mod shell;
mod tekton;
