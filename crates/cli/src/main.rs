//! The `windlass` command: what the engines do, for people, scripts and the conformance score.
//!
//! Each subcommand is a module with `Flags` (what was typed) and a `run` function. Failures end here: one `Error: ` on
//! standard error and exit code 1, as kustomize ends.

mod build;
mod pflag;
mod template;
mod usage;

use std::env;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Windlass' engines as a command.
#[derive(Debug, Parser)]
#[command(name = "windlass", version, args_override_self = true)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Print what `kustomize build` prints.
    Build(Box<build::Flags>),
    /// Print what `helm template` prints.
    #[command(disable_help_flag = true)]
    Template {
        /// Helm's flags, read as Helm reads them.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
}

fn main() -> ExitCode {
    let typed: Vec<String> = env::args_os()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let command = match CommandLine::try_parse() {
        Ok(line) => line.command,
        Err(error) if error.use_stderr() => return fail(&usage::in_words_of_cobra(&error, &typed)),
        Err(help) => help.exit(),
    };
    match command {
        Command::Build(flags) => match build::run(&flags, tell) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) if error.is_closed_pipe() => ExitCode::from(CLOSED_PIPE),
            Err(error) => fail(&error.report(flags.explain)),
        },
        Command::Template { words } => match template::run(&words, tell) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) if error.is_closed_pipe() => ExitCode::from(CLOSED_PIPE),
            Err(error) => fail(&error.to_string()),
        },
    }
}

/// How shells report a process that SIGPIPE ended: kustomize ends so when nobody reads its output.
const CLOSED_PIPE: u8 = 128 + 13;

fn fail(message: &str) -> ExitCode {
    tell(&format!("Error: {message}"));
    ExitCode::FAILURE
}

/// Writes a line to standard error. When nobody reads it, nobody is to be told.
fn tell(line: &str) {
    _ = writeln!(io::stderr().lock(), "{line}");
}
