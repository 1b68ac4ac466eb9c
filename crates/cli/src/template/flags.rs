//! The flags of `windlass template`: those of `helm template`, and what they mean here.

mod help;
mod table;

use std::env;

use helm_render::Helm;
use helm_render::set_values::merge;

use super::{Failure, HELM_VERSION, helm_version};
use crate::pflag::Line;
use table::FLAGS;

/// What a command line asks for.
pub(super) enum Parsed {
    /// To be told how it is used.
    Help(String),
    /// To render.
    Settings(Box<Settings>),
}

/// What it means.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) helm: Helm,
    pub(super) arguments: Vec<String>,
    pub(super) values: merge::Flags,
    pub(super) namespace: String,
    pub(super) kube_version: Option<String>,
    pub(super) api_versions: Vec<String>,
    pub(super) name_template: Option<String>,
    pub(super) generate_name: bool,
    pub(super) show_only: Vec<String>,
    pub(super) output_folder: Option<String>,
    pub(super) use_release_name: bool,
    pub(super) include_crds: bool,
    pub(super) without_hooks: bool,
    pub(super) skip_tests: bool,
    pub(super) is_upgrade: bool,
    pub(super) skip_schema_validation: bool,
    pub(super) with_notes_of_dependencies: bool,
    pub(super) debug: bool,
    pub(super) repository: Option<String>,
    pub(super) deprecations: Vec<String>,
    needs_more: Option<&'static str>,
}

/// Reads the words behind `template`.
pub(super) fn parse(words: &[String]) -> Result<Parsed, Failure> {
    let line = Line::parse(words, FLAGS).map_err(Failure::Flag)?;
    if line.is_given("help") {
        return Ok(Parsed::Help(help::text(FLAGS)));
    }
    if line.arguments.is_empty() {
        return Err(Failure::Flag(format!(
            "\"windlass template\" requires at least 1 argument\n\nUsage:  {}",
            help::USAGE
        )));
    }
    exclude(&line)?;
    Ok(Parsed::Settings(Box::new(settings(&line)?)))
}

fn settings(line: &Line) -> Result<Settings, Failure> {
    let text = |name| line.last(name).filter(|text| !text.is_empty()).map(str::to_owned);
    let all = |name| line.all(name).to_vec();
    Ok(Settings {
        helm: chosen_helm(line)?,
        arguments: line.arguments.clone(),
        values: merge::Flags {
            files: all("values"),
            json: all("set-json"),
            typed: all("set"),
            text: all("set-string"),
            file: all("set-file"),
            literal: all("set-literal"),
        },
        namespace: text("namespace")
            .or_else(|| env::var("HELM_NAMESPACE").ok().filter(|name| !name.is_empty()))
            .unwrap_or_else(|| "default".to_owned()),
        kube_version: text("kube-version"),
        api_versions: all("api-versions"),
        name_template: text("name-template"),
        generate_name: line.is_true("generate-name"),
        show_only: all("show-only"),
        output_folder: text("output-dir"),
        use_release_name: line.is_true("release-name"),
        include_crds: line.is_true("include-crds"),
        without_hooks: line.is_true("no-hooks"),
        skip_tests: line.is_true("skip-tests"),
        is_upgrade: line.is_true("is-upgrade"),
        skip_schema_validation: line.is_true("skip-schema-validation"),
        with_notes_of_dependencies: line.is_true("render-subchart-notes"),
        debug: line.is_true("debug"),
        repository: text("repo"),
        deprecations: line.deprecations.clone(),
        needs_more: needs_more(line)?,
    })
}

fn chosen_helm(line: &Line) -> Result<Helm, Failure> {
    let (name, source) = match line.last("helm-version") {
        Some(name) => (name.to_owned(), "--helm-version"),
        None => match env::var(HELM_VERSION) {
            Ok(name) if !name.is_empty() => (name, HELM_VERSION),
            _ => return Ok(Helm::default()),
        },
    };
    helm_version(&name).ok_or_else(|| Failure::Flag(format!("{source}: {name:?} is neither v3 nor v4")))
}

/// Refuses flags that exclude each other, as cobra does.
fn exclude(line: &Line) -> Result<(), Failure> {
    for (one, other) in [
        ("force-replace", "force-conflicts"),
        ("force", "force-conflicts"),
        ("validate", "dry-run"),
    ] {
        if line.is_given(one) && line.is_given(other) {
            let mut given = [one, other];
            given.sort_unstable();
            return Err(Failure::Flag(format!(
                "if any flags in the group [{one} {other}] are set none of the others can be; [{} {}] were all set",
                given[0], given[1]
            )));
        }
    }
    Ok(())
}

/// Finds what this command cannot do: what needs a cluster, a repository or another program.
fn needs_more(line: &Line) -> Result<Option<&'static str>, Failure> {
    if line.is_true("validate") {
        return Ok(Some(
            "--validate needs a cluster, which windlass template does not ask",
        ));
    }
    if let Some(value) = line.last("dry-run")
        && matches!(value, "server" | "none" | "false")
    {
        if value == "server" {
            return Ok(Some(
                "--dry-run=server needs a cluster, which windlass template does not ask",
            ));
        }
        return Err(Failure::Flag(format!(
            "invalid dry-run value ({value:?}). Must be \"server\" or \"client\""
        )));
    }
    for (flag, reason) in [
        (
            "enable-dns",
            "--enable-dns is not supported: windlass template resolves no names",
        ),
        (
            "verify",
            "--verify is not supported: windlass template checks no provenance",
        ),
        (
            "dependency-update",
            "--dependency-update is not supported: windlass template fetches nothing",
        ),
    ] {
        if line.is_true(flag) {
            return Ok(Some(reason));
        }
    }
    if line.last("post-renderer").is_some_and(|name| !name.is_empty()) {
        return Ok(Some(
            "--post-renderer is not supported: windlass template starts no other program",
        ));
    }
    Ok(None)
}

impl Settings {
    /// Refuses what cannot be done here.
    pub(super) fn refuse_what_needs_a_cluster(&self) -> Result<(), Failure> {
        match self.needs_more {
            Some(reason) => Err(Failure::Flag(reason.to_owned())),
            None => Ok(()),
        }
    }
}
