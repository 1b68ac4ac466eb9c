//! The `windlass` command: what the engines do without a cluster, and what people and pipelines ask of one.
//!
//! Each subcommand is a module with `Flags` (what was typed) and a `run` function. Failures end here: one `Error: ` on
//! standard error, and the exit code. `build` and `template` end as kustomize and helm do, with 1; those that speak to a
//! cluster end as [`Failure::exit_code`] says.

mod audit;
mod bootstrap;
mod build;
mod change;
mod charts;
mod check;
mod cluster;
mod completion;
mod console;
mod create;
mod delete;
mod diff;
mod dora;
mod drill;
mod events;
mod export;
mod folder;
mod get;
mod giveback;
mod history;
mod hold;
mod host_keys;
mod import;
mod install;
mod logs;
mod new;
mod orphans;
mod pflag;
mod platform;
mod progress;
mod push;
mod query;
mod reconcile;
mod restore;
mod running;
mod secrets;
mod shards;
#[cfg(test)]
mod stand_in;
mod suspend;
mod tag;
mod takeover;
mod template;
mod trace;
mod tree;
mod ui;
mod uninstall;
mod usage;
mod values;
mod verify;
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
    /// Show Flux objects and their status.
    Get(Box<get::Flags>),
    /// Ask what is delivered where, in all namespaces, or in all clusters of a console.
    Query(Box<query::Flags>),
    /// Find which images run where, by name, range of versions or digest.
    Where(Box<running::Flags>),
    /// List which versions of which charts are released.
    Charts(Box<charts::Flags>),
    /// Show what was delivered, when, and how it went.
    History(Box<history::Flags>),
    /// Serve the console on this machine, for you only, and print a sign-in link.
    Ui(Box<ui::Flags>),
    /// Show deployment frequency, lead time, change failure rate and time to recover.
    Dora(Box<dora::Flags>),
    /// Explain why an object is not ready.
    Why(Box<why::Flags>),
    /// Verify what runs, from the image to the commit, or the promotions of a pipeline.
    Verify(Box<verify::Flags>),
    /// Show which Kustomization or HelmRelease manages an object, and from which commit.
    Trace(Box<trace::Flags>),
    /// Show the objects that a Kustomization or HelmRelease manages, and their status.
    Tree(Box<tree::Flags>),
    /// Show the values or variables that an object is built with, and where each is from.
    Values(Box<values::Flags>),
    /// Show events of Flux objects.
    Events(Box<events::Flags>),
    /// Show the logs of the controllers.
    Logs(Box<logs::Flags>),
    /// Reconcile an object now and wait for the result.
    Reconcile(Box<reconcile::Flags>),
    /// Suspend reconciliation of objects.
    Suspend(Box<suspend::Suspend>),
    /// Resume reconciliation of objects.
    Resume(Box<suspend::Resume>),
    /// Approve a release for an environment of a pipeline.
    Approve(Box<hold::Approve>),
    /// Promote a release to an environment of a pipeline.
    Promote(Box<hold::Promote>),
    /// Go back to what ran before, and hold what is newer: an application, or an environment of a pipeline.
    Rollback(Box<hold::Rollback>),
    /// Change the manifest of an object by pull request.
    Edit(Box<change::Edit>),
    /// Propose manifests for manually created objects by pull request.
    Adopt(Box<change::adopt::Adopt>),
    /// Propose new manifests by pull request.
    Propose(Box<change::Propose>),
    /// Hold back a tag of an image policy, releases of a pipeline, or all that is new for an application.
    Hold(Box<hold::Hold>),
    /// Release what was held back.
    Release(Box<hold::Release>),
    /// Wait until a revision is applied everywhere.
    Wait(Box<wait::Flags>),
    /// Show what a local checkout would change in the cluster.
    #[command(after_help = diff::AFTER_HELP)]
    Diff(Box<diff::Flags>),
    /// Push artifacts to registries.
    Push(Box<push::Flags>),
    /// Give an image another tag, without moving its content.
    Tag(Box<tag::Flags>),
    /// Create objects from flags, or print their manifests.
    Create(Box<create::Flags>),
    /// Print manifests of objects, or write all of them to files.
    Export(Box<export::Flags>),
    /// Restore objects from the files of `export --all --out`.
    Restore(Box<restore::Flags>),
    /// Delete an object.
    Delete(Box<delete::Flags>),
    /// List who changed what, by commits and by hand.
    Audit(Box<audit::Flags>),
    /// Compare a cluster with one recreated from Git, and report what would be lost.
    Drill(Box<drill::Flags>),
    /// List objects and fields in the cluster that do not come from Git.
    Orphans(Box<orphans::Flags>),
    /// Manage files that are encrypted with SOPS.
    Secrets(Box<secrets::Flags>),
    /// Convert applications of other tools to Flux objects.
    Import(Box<import::Flags>),
    /// Write files to start from.
    New(Box<new::Flags>),
    /// Write the controllers to a Git repository, and have the cluster deliver itself from it.
    Bootstrap(Box<bootstrap::Flags>),
    /// Install or upgrade the controllers.
    Install(Box<install::Flags>),
    /// Uninstall the controllers; delivered objects stay.
    Uninstall(Box<uninstall::Flags>),
    /// Replace Flux's controllers, and verify that no object was re-created.
    Takeover(Box<takeover::Flags>),
    /// Restore Flux's controllers as they were before `takeover`.
    Giveback(Box<giveback::Flags>),
    /// Check the prerequisites of the controllers and their health, or a repository without a cluster.
    Check(Box<check::Flags>),
    /// Spread the objects over shards of the controllers.
    Shards(Box<shards::Flags>),
    /// Print a shell completion script.
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
        Command::Build(flags) => match build::run(&flags, report_line) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) if error.is_closed_pipe() => ExitCode::from(CLOSED_PIPE),
            Err(error) => fail(&error.report(flags.explain)),
        },
        Command::Template { words } => match template::run(&words, report_line) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) if error.is_closed_pipe() => ExitCode::from(CLOSED_PIPE),
            Err(error) => fail(&error.to_string()),
        },
        Command::Get(flags) => end(get::run(&flags, report_line)),
        Command::Query(flags) => end(query::run(&flags, report_line)),
        Command::Where(flags) => end(running::run(&flags, report_line)),
        Command::Charts(flags) => end(charts::run(&flags, report_line)),
        Command::History(flags) => end(history::run(&flags, report_line)),
        Command::Ui(flags) => end(ui::run(&flags, report_line)),
        Command::Dora(flags) => end(dora::run(&flags, report_line)),
        Command::Why(flags) => end(why::run(&flags)),
        Command::Verify(flags) => end(verify::run(&flags, report_line)),
        Command::Trace(flags) => end(trace::run(&flags)),
        Command::Tree(flags) => end(tree::run(&flags)),
        Command::Values(flags) => end(values::run(&flags, report_line)),
        Command::Events(flags) => end(events::run(&flags, report_line)),
        Command::Logs(flags) => end(logs::run(&flags, report_line)),
        Command::Reconcile(flags) => end(reconcile::run(&flags)),
        Command::Suspend(flags) => end(suspend::suspend(&flags)),
        Command::Resume(flags) => end(suspend::resume(&flags)),
        Command::Approve(flags) => end(hold::approve(&flags)),
        Command::Promote(flags) => end(hold::promote(&flags)),
        Command::Rollback(flags) => end(hold::rollback(&flags)),
        Command::Edit(flags) => end(change::edit(&flags)),
        Command::Propose(flags) => end(change::propose(&flags)),
        Command::Hold(flags) => end(hold::hold(&flags)),
        Command::Release(flags) => end(hold::release(&flags)),
        Command::Wait(flags) => end(wait::run(&flags)),
        Command::Diff(flags) => end(diff::run(&flags)),
        Command::Push(flags) => end(push::run(&flags)),
        Command::Tag(flags) => end(tag::run(&flags)),
        Command::Create(flags) => end(create::run(&flags, report_line)),
        Command::Export(flags) => end(export::run(&flags, report_line)),
        Command::Restore(flags) => end(restore::run(&flags, report_line)),
        Command::Delete(flags) => end(delete::run(&flags)),
        Command::Adopt(flags) => end(change::adopt::run(&flags)),
        Command::Audit(flags) => end(audit::run(&flags, report_line)),
        Command::Drill(flags) => end(drill::run(&flags, report_line)),
        Command::Orphans(flags) => end(orphans::run(&flags, report_line)),
        Command::Secrets(flags) => end(secrets::run(&flags, report_line)),
        Command::Import(flags) => end(import::run(&flags, report_line)),
        Command::New(flags) => end(new::run(&flags)),
        Command::Bootstrap(flags) => end(bootstrap::run(&flags, report_line)),
        Command::Install(flags) => end(install::run(&flags, report_line)),
        Command::Uninstall(flags) => end(uninstall::run(&flags, report_line)),
        Command::Takeover(flags) => end(takeover::run(&flags, report_line)),
        Command::Giveback(flags) => end(giveback::run(&flags, report_line)),
        Command::Check(flags) => end(check::run(&flags)),
        Command::Shards(flags) => end(shards::run(&flags, report_line)),
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

/// How shells report a process that SIGPIPE ended: kustomize ends so when no one reads its output.
const CLOSED_PIPE: u8 = 128 + 13;

fn fail(message: &str) -> ExitCode {
    report_line(&format!("Error: {message}"));
    ExitCode::FAILURE
}

/// Writes a line to standard error. When no one reads it, no one is to be told.
fn report_line(line: &str) {
    _ = writeln!(io::stderr().lock(), "{line}");
}
