//! The `windlass` command: what the engines do without a cluster, and what people and pipelines ask of one.
//!
//! Each subcommand is a module with `Flags` (what was typed) and a `run` function. Failures end here: one `Error: ` on
//! standard error, and the exit code. `build` and `template` end as kustomize and helm do, with 1; those that speak to a
//! cluster end as [`Failure::exit_code`] says.

mod build;
mod check;
mod cluster;
mod completion;
mod diff;
mod events;
mod get;
mod giveback;
mod install;
mod logs;
mod pflag;
mod platform;
mod progress;
mod push;
mod reconcile;
#[cfg(test)]
mod stand_in;
mod suspend;
mod takeover;
mod template;
mod trace;
mod tree;
mod uninstall;
mod usage;
mod wait;
mod why;

use std::env;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

use cluster::Failure;

/// Continuous delivery for Kubernetes, from the command line.
#[derive(Debug, Parser)]
#[command(name = "windlass", version, args_override_self = true, after_help = cluster::EXIT_CODES)]
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
    /// Show objects of Flux and how they are.
    Get(Box<get::Flags>),
    /// Say why an object is not ready, down to the cause.
    Why(Box<why::Flags>),
    /// Show what delivers an object, and the commit that it came from.
    Trace(Box<trace::Flags>),
    /// Show what a Kustomization or HelmRelease has applied, and how it is.
    Tree(Box<tree::Flags>),
    /// Show what was told about objects of Flux.
    Events(Box<events::Flags>),
    /// Show what the controllers have logged.
    Logs(Box<logs::Flags>),
    /// Ask for a reconcile now, and wait for it.
    Reconcile(Box<reconcile::Flags>),
    /// Have objects left alone.
    Suspend(Box<suspend::Suspend>),
    /// Have suspended objects looked at again.
    Resume(Box<suspend::Resume>),
    /// Wait until everything that should run a revision does.
    Wait(Box<wait::Flags>),
    /// Show what a local checkout would change on the cluster.
    #[command(after_help = diff::AFTER_HELP)]
    Diff(Box<diff::Flags>),
    /// Push content that sources of the cluster read.
    Push(Box<push::Flags>),
    /// Install or upgrade the controllers, from the chart in this program.
    Install(Box<install::Flags>),
    /// Take the controllers away; what they delivered stays.
    Uninstall(Box<uninstall::Flags>),
    /// Take the place of Flux's own controllers, and check that nothing was made anew.
    Takeover(Box<takeover::Flags>),
    /// Give Flux its place back, as it was before `takeover`.
    Giveback(Box<giveback::Flags>),
    /// Say whether a cluster is one for the controllers, and how they are.
    Check(Box<check::Flags>),
    /// Print the script that completes this command's words in a shell.
    Completion(completion::Flags),
}

fn main() -> ExitCode {
    let typed: Vec<String> = env::args_os()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let command = match CommandLine::try_parse() {
        Ok(line) => line.command,
        Err(error) if error.use_stderr() => {
            fail(&usage::in_words_of_cobra(&error, &typed));
            return ExitCode::from(usage::exit_code(&typed));
        }
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
        Command::Get(flags) => end(get::run(&flags, tell)),
        Command::Why(flags) => end(why::run(&flags)),
        Command::Trace(flags) => end(trace::run(&flags)),
        Command::Tree(flags) => end(tree::run(&flags)),
        Command::Events(flags) => end(events::run(&flags, tell)),
        Command::Logs(flags) => end(logs::run(&flags, tell)),
        Command::Reconcile(flags) => end(reconcile::run(&flags)),
        Command::Suspend(flags) => end(suspend::suspend(&flags)),
        Command::Resume(flags) => end(suspend::resume(&flags)),
        Command::Wait(flags) => end(wait::run(&flags)),
        Command::Diff(flags) => end(diff::run(&flags)),
        Command::Push(flags) => end(push::run(&flags)),
        Command::Install(flags) => end(install::run(&flags, tell)),
        Command::Uninstall(flags) => end(uninstall::run(&flags, tell)),
        Command::Takeover(flags) => end(takeover::run(&flags, tell)),
        Command::Giveback(flags) => end(giveback::run(&flags, tell)),
        Command::Check(flags) => end(check::run(&flags)),
        Command::Completion(flags) => {
            let script = completion::script(&flags, CommandLine::command()).map_err(Failure::Print);
            end(script.and_then(|script| cluster::print(&script)))
        }
    }
}

/// Ends as those commands do that speak to a cluster.
fn end(outcome: Result<(), Failure>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) if failure.is_closed_pipe() => ExitCode::from(CLOSED_PIPE),
        Err(failure @ Failure::Differs) => ExitCode::from(failure.exit_code()),
        Err(failure) => {
            fail(&failure.to_string());
            ExitCode::from(failure.exit_code())
        }
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
