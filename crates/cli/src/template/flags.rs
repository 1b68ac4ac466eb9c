//! The flags of `windlass template`: those of `helm template`, and what they mean here.

mod help;
mod table;

use std::env;
use std::path::PathBuf;

use helm_chart::Helm;
use helm_chart::set_values::merge;
use helm_render::printed::Shown;

use super::Failure;
use super::helm_version::{HELM_VERSION, helm_version};
use crate::cluster::{ClusterFlags, Overrides};
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
    /// None if it was not typed.
    pub(super) namespace: Option<String>,
    pub(super) kube_version: Option<String>,
    pub(super) api_versions: Vec<String>,
    pub(super) name_template: Option<String>,
    pub(super) generate_name: bool,
    pub(super) show_only: Vec<String>,
    pub(super) output_folder: Option<String>,
    pub(super) use_release_name: bool,
    pub(super) shown: Shown,
    pub(super) is_upgrade: bool,
    pub(super) skip_schema_validation: bool,
    pub(super) with_notes_of_dependencies: bool,
    pub(super) debug: bool,
    pub(super) repository: Option<String>,
    pub(super) deprecations: Vec<String>,
    pub(super) dry_run: Option<String>,
    pub(super) validate: bool,
    /// Objects are sent as a dry run.
    pub(super) dry_run_apply: bool,
    pub(super) enable_dns: bool,
    pub(super) take_ownership: bool,
    /// Which cluster is asked, if one is.
    pub(super) connection: ClusterFlags,
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
        namespace: text("namespace").or_else(|| variable("HELM_NAMESPACE")),
        kube_version: text("kube-version"),
        api_versions: all("api-versions"),
        name_template: text("name-template"),
        generate_name: line.is_true("generate-name"),
        show_only: all("show-only"),
        output_folder: text("output-dir"),
        use_release_name: line.is_true("release-name"),
        shown: Shown {
            crds: line.is_true("include-crds"),
            hooks: !line.is_true("no-hooks"),
            tests: !line.is_true("skip-tests"),
        },
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
        validate: line.is_true("validate"),
        dry_run_apply: line.is_true("dry-run-apply"),
        enable_dns: line.is_true("enable-dns"),
        take_ownership: line.is_true("take-ownership"),
        connection: connection(line),
        excluded: if is_4 { excluded(line) } else { None },
        unsupported: unsupported(line),
    })
}

/// Returns how a cluster is reached: by flags, or Helm's variables.
fn connection(line: &Line) -> ClusterFlags {
    let text = |name: &str, other: &str| {
        let given = line.last(name).filter(|text| !text.is_empty());
        given.map(str::to_owned).or_else(|| variable(other))
    };
    let groups = match line.all("kube-as-group") {
        [] => variable("HELM_KUBEASGROUPS")
            .map(|groups| groups.split(',').map(str::to_owned).collect())
            .unwrap_or_default(),
        given => given.to_vec(),
    };
    let insecure = line
        .last("kube-insecure-skip-tls-verify")
        .map(str::to_owned)
        .or_else(|| variable("HELM_KUBEINSECURE_SKIP_TLS_VERIFY"));
    let overrides = Overrides {
        server: text("kube-apiserver", "HELM_KUBEAPISERVER"),
        ca_file: text("kube-ca-file", "HELM_KUBECAFILE"),
        tls_server_name: text("kube-tls-server-name", "HELM_KUBETLS_SERVER_NAME"),
        insecure: insecure.is_some_and(|value| matches!(value.as_str(), "true" | "1")),
        token: text("kube-token", "HELM_KUBETOKEN"),
        user: text("kube-as-user", "HELM_KUBEASUSER"),
        groups,
    };
    let kubeconfig = line.last("kubeconfig").filter(|path| !path.is_empty());
    let context = text("kube-context", "HELM_KUBECONTEXT");
    ClusterFlags::with_overrides(kubeconfig.map(PathBuf::from), context, overrides)
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
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

/// Says what this command cannot do: what needs a repository or another program.
fn unsupported(line: &Line) -> Option<String> {
    let is_set = |name: &str| match name {
        "post-renderer" => line.last(name).is_some_and(|name| !name.is_empty()),
        _ => line.is_true(name),
    };
    let reasons = [
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
