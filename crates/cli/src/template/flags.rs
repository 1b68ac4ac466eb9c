//! The flags of `windlass template`: those of `helm template`, and what they mean here.

mod help;
mod table;

use std::env;

use helm_chart::Helm;
use helm_chart::set_values::merge;

use super::Failure;
use super::helm_version::{HELM_VERSION, helm_version};
use crate::pflag::Line;
use table::FLAGS;

/// Parsed command line.
pub(super) enum Parsed {
    /// To be told how it is used.
    Help(String),
    /// To render.
    Settings(Box<Settings>),
}

/// Parsed settings.
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
    pub(super) dry_run: Option<String>,
    /// cobra's error for flags that exclude each other.
    pub(super) excluded: Option<String>,
    unsupported: Option<String>,
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
    Ok(Parsed::Settings(Box::new(settings(&line)?)))
}

fn settings(line: &Line) -> Result<Settings, Failure> {
    let text = |name| line.last(name).filter(|text| !text.is_empty()).map(str::to_owned);
    let all = |name| line.all(name).to_vec();
    let helm = chosen_helm(line)?;
    let is_4 = helm == Helm::V4;
    Ok(Settings {
        helm,
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
        deprecations: if is_4 {
            line.deprecations.clone()
        } else {
            Vec::new()
        },
        dry_run: line.last("dry-run").map(str::to_owned),
        excluded: if is_4 { excluded(line) } else { None },
        unsupported: unsupported(line),
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
fn excluded(line: &Line) -> Option<String> {
    let groups = [
        ("force-replace", "force-conflicts"),
        ("force", "force-conflicts"),
        ("validate", "dry-run"),
    ];
    let both = |group: &&(&str, &str)| line.is_given(group.0) && line.is_given(group.1);
    groups.iter().find(both).map(|(one, other)| {
        let mut given = [one, other];
        given.sort_unstable();
        format!(
            "if any flags in the group [{one} {other}] are set none of the others can be; [{} {}] were all set",
            given[0], given[1]
        )
    })
}

/// Says what this command cannot do: what needs a cluster, a repository or another program.
fn unsupported(line: &Line) -> Option<String> {
    let is_set = |name: &str| match name {
        "post-renderer" => line.last(name).is_some_and(|name| !name.is_empty()),
        _ => line.is_true(name),
    };
    let reasons = [
        ("validate", "windlass template asks no cluster"),
        ("enable-dns", "windlass template resolves no names"),
        ("verify", "windlass template checks no provenance"),
        ("dependency-update", "windlass template fetches nothing"),
        ("post-renderer", "windlass template starts no other program"),
    ];
    let found = reasons.iter().find(|(flag, _)| is_set(flag));
    found.map(|(flag, reason)| format!("--{flag} is not supported: {reason}"))
}

impl Settings {
    /// Refuses what cannot be done here.
    pub(super) fn refuse_unsupported(&self) -> Result<(), Failure> {
        match &self.unsupported {
            Some(reason) => Err(Failure::Flag(reason.clone())),
            None => Ok(()),
        }
    }
}
