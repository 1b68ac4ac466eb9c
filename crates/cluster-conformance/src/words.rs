//! What the `flux` command says of controllers: a story of commands, typed one after the other, whose output is recorded and
//! compared line by line.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use anyhow::{Context as _, Result};
use regex::Regex;
use serde::{Deserialize, Serialize};
use testkit::git::{Change, Repository};
use testkit::{ControlPlane, GitServer, HelmRepository};

/// A command, and how it ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Said {
    /// What was typed behind `flux`.
    pub command: String,
    /// Its exit code.
    pub code: i32,
    /// What it printed, and said on standard error, without what differs from run to run.
    pub output: String,
}

/// The namespace in which the story plays, and which nothing else uses.
const NAMESPACE: &str = "words";

/// What the commands are about.
#[derive(Debug)]
pub struct Stage {
    repository: Repository,
    charts: HelmRepository,
    /// A folder as the repository has it, changed.
    local: tempfile::TempDir,
    _git: GitServer,
}

/// Flux's own would be five minutes.
const PATIENCE: &str = "--timeout=30s";

const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {colour: green}\n";
const OTHER: &str =
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\ndata:\n  colour: ${colour:=blue}\n";
const ACCOUNT: &str = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: web}\n";
const KUSTOMIZATION: &str = "resources: [map.yaml, other.yaml, account.yaml]\nnamespace: words\n";

impl Stage {
    /// Starts the servers that sources name.
    pub async fn set() -> Result<Self> {
        let git = GitServer::start().await?;
        let repository = git.create_repository("words")?;
        repository.commit(
            "main",
            "first",
            &[
                Change::write("good/kustomization.yaml", KUSTOMIZATION),
                Change::write("good/map.yaml", MAP),
                Change::write("good/other.yaml", OTHER),
                Change::write("good/account.yaml", ACCOUNT),
                Change::write("broken/kustomization.yaml", "resources: [none.yaml]\n"),
                Change::write(
                    "refused/map.yaml",
                    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Refused, namespace: words}\n",
                ),
            ],
        )?;
        let local = testkit::scratch::directory("words")?;
        for (file, content) in [
            ("kustomization.yaml", KUSTOMIZATION.to_owned()),
            ("map.yaml", MAP.replace("green", "red")),
            ("other.yaml", OTHER.to_owned()),
            ("account.yaml", ACCOUNT.to_owned()),
        ] {
            std::fs::write(local.path().join(file), content)?;
        }
        Ok(Self {
            repository,
            charts: HelmRepository::start().await?,
            local,
            _git: git,
        })
    }

    /// The commands. Those that concern no controller are the same for all, and left out.
    fn commands(&self) -> Vec<String> {
        let (git, charts, local) = (
            self.repository.url(),
            self.charts.url(),
            self.local.path().display(),
        );
        let lines = format!(
            "get all
             get sources git
             create source git fleet --url={git} --branch=main --interval=10m
             create source git missing --url={git} --branch=missing --interval=10m --timeout=5s
             create source helm charts --url={charts} --interval=10m
             create kustomization good --source=GitRepository/fleet --path=./good --prune=true --interval=10m
             create kustomization broken --source=GitRepository/fleet --path=./broken --prune=true --interval=10m --timeout=10s
             create kustomization refused --source=GitRepository/fleet --path=./refused --prune=true --interval=10m --timeout=10s
             create kustomization after --source=GitRepository/fleet --path=./good --depends-on=broken --interval=10m --timeout=5s
             create helmrelease app --source=HelmRepository/charts --chart=app --chart-version=1.0.0 --interval=10m
             create helmrelease none --source=HelmRepository/charts --chart=none --interval=10m --timeout=10s
             get all
             get all --no-header
             get sources all
             get sources git
             get sources git fleet
             get sources helm
             get sources chart
             get kustomizations
             get kustomizations good
             get kustomizations nothing
             get kustomizations --status-selector=ready=true
             get kustomizations --status-selector=ready=false
             get kustomizations --label-selector=a=b
             get kustomizations --show-labels
             get helmreleases
             get helmreleases -A
             tree kustomization good
             tree kustomization good --compact
             tree kustomization good --output=json
             tree kustomization nothing
             trace configmap settings
             trace --kind=ConfigMap --name=app --api-version=v1
             trace helmrelease app
             trace configmap nothing
             events
             events --for=Kustomization/good
             events --for=HelmRelease/app
             events --for=GitRepository/fleet
             events --types=Warning
             stats
             export source git fleet
             export kustomization good
             export helmrelease --all
             build kustomization good --path={local}
             diff kustomization good --path={local}
             diff kustomization good --path={local} --progress-bar=false
             debug kustomization good --show-vars
             debug kustomization good --show-status
             debug kustomization good --show-history
             debug helmrelease app --show-values
             debug helmrelease app --show-status
             debug helmrelease app --show-history
             reconcile source git fleet
             reconcile source git missing --timeout=5s
             reconcile source git nothing
             reconcile source helm charts
             reconcile source chart {NAMESPACE}-app
             reconcile kustomization good
             reconcile kustomization good --with-source
             reconcile kustomization broken --timeout=5s
             reconcile helmrelease app
             reconcile helmrelease app --with-source
             reconcile helmrelease app --force
             reconcile helmrelease app --reset
             reconcile helmrelease none --timeout=5s
             suspend kustomization good
             get kustomizations good
             reconcile kustomization good
             resume kustomization good
             suspend kustomization --all
             resume kustomization good after --wait=false
             suspend helmrelease app
             get helmreleases
             reconcile helmrelease app
             resume helmrelease app
             suspend source git fleet
             get sources git
             resume source git fleet
             suspend source helm charts
             resume source helm charts
             suspend source git nothing
             resume kustomization nothing
             stats
             create kustomization good --source=GitRepository/fleet --path=./good --prune=true --interval=20m
             create helmrelease app --source=HelmRepository/charts --chart=app --chart-version=1.1.0 --interval=10m
             get helmreleases app
             delete kustomization after --silent
             delete kustomization good --silent
             delete helmrelease app --silent
             delete source git fleet --silent
             delete source git nothing --silent
             get all"
        );
        lines.lines().map(|line| line.trim().to_owned()).collect()
    }
}

/// Types the commands. `tell` hears each.
pub async fn speak(
    control_plane: &ControlPlane,
    stage: &Stage,
    flux: PathBuf,
    tell: impl Fn(&str),
) -> Result<Vec<Said>> {
    let namespace =
        serde_json::json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    testkit::objects::apply(&control_plane.client(), &namespace).await?;
    let home = testkit::scratch::directory("home")?;
    let mut said = Vec::new();
    for typed in stage.commands() {
        let start = std::time::Instant::now();
        let mut command = Command::new(&flux);
        command
            .args(typed.split_whitespace())
            .args(if typed.contains("--timeout=") {
                None
            } else {
                Some(PATIENCE)
            })
            .args(["--namespace", NAMESPACE, "--kubeconfig"])
            .arg(control_plane.kubeconfig_path())
            .env("HOME", home.path())
            .stdin(std::process::Stdio::null());
        let output = tokio::task::spawn_blocking(move || command.output())
            .await?
            .context("flux does not run")?;
        let text = [output.stdout, output.stderr].concat();
        tell(&format!("{:>5.1} s  flux {typed}", start.elapsed().as_secs_f64()));
        said.push(Said {
            command: without_places(&typed, stage.local.path()),
            code: output.status.code().unwrap_or(-1),
            output: normal(&String::from_utf8_lossy(&text), &typed, stage.local.path()),
        });
    }
    Ok(said)
}

fn without_places(text: &str, local: &Path) -> String {
    let text = text.replace(&local.display().to_string(), "LOCAL");
    static PORT: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"127\.0\.0\.1:\d+").ok());
    match &*PORT {
        Some(port) => port.replace_all(&text, "127.0.0.1:PORT").into_owned(),
        None => text,
    }
}

/// What differs from run to run in the output of the command.
static VARYING: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let patterns = [
        (r"\b[0-9a-f]{40}\b", "COMMIT"),
        (r"sha1:[0-9a-f]{8}\b", "sha1:COMMIT"),
        (r"\bsha256:[0-9a-f]{64}\b", "sha256:DIGEST"),
        (
            r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
            "UID",
        ),
        (
            r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?( ?(Z|UTC|[+-]\d\d:?\d\d))*",
            "TIME",
        ),
        (r"\b[0-9]+(\.[0-9]+)?(µs|ms|s|m[0-9.]+s)\b", "TIME"),
        // How large an archive is depends on who packs it.
        (r"\b[0-9.]+ (B|KiB|MiB)\b", "SIZE"),
        (r"resourceVersion: .*", "resourceVersion: VERSION"),
    ];
    let compiled = patterns
        .into_iter()
        .filter_map(|(pattern, stand_in)| Some((Regex::new(pattern).ok()?, stand_in)));
    compiled.collect()
});

/// What we say in other words, or with more of them: the pattern, what stands for it, and the row of
/// docs/compatibility/flux.md that explains it, by its section and its first words.
const EXPLAINED: [(&str, &str, &str, &str); 8] = [
    (
        r#"couldn't find remote ref ['"]([^'"\n]+)['"](; there is: [^\t\n]*)?"#,
        "couldn't find remote ref $1",
        "Sources",
        "a reference that is not there",
    ),
    (
        r"/tmp/kustomization-\d+/",
        "",
        "Kustomizations",
        "words of failures",
    ),
    (
        r"failed to apply: \S+:\d+: ",
        "",
        "Kustomizations",
        "words of failures",
    ),
    (
        r#"\(Invalid\): \S+ "[^"]+" is invalid: "#,
        "(Invalid): ",
        "Kustomizations",
        "words of failures",
    ),
    (
        r"Dependencies do not meet ready condition, retrying in TIME|dependency '[^']+' is not ready",
        "DEPENDENCY",
        "Kustomizations",
        "events of runs",
    ),
    (
        r"\n *windlass\.dev/[a-z-]+: [^\n]*",
        "",
        "Kustomizations",
        "what the history says more",
    ),
    (
        r"\n[^\n]*\tSourceNotReady *\t *HelmRelease/[^\n]*",
        "",
        "HelmReleases",
        "a source that fails",
    ),
    (
        r"(HelmChart '[^']+' is not ready): [^\t\n]*",
        "$1",
        "HelmReleases",
        "a source that fails",
    ),
];

static OTHERWISE: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let patterns = EXPLAINED.iter();
    patterns
        .filter_map(|(pattern, stand_in, ..)| Some((Regex::new(pattern).ok()?, *stand_in)))
        .collect()
});

fn normal(output: &str, command: &str, local: &Path) -> String {
    let mut text = without_places(output, local);
    for (pattern, stand_in) in VARYING.iter().chain(OTHERWISE.iter()) {
        text = pattern.replace_all(&text, *stand_in).into_owned();
    }
    // Columns are as wide as the widest value, and events of one moment come in any order.
    let lines = text.lines().map(|line| {
        let words: Vec<&str> = line.split('\t').map(str::trim).collect();
        let indented = line.len() - line.trim_start().len();
        match words.len() {
            1 => format!("{}{}", " ".repeat(indented), line.trim()),
            _ => words.join("\t"),
        }
    });
    // Flux's command prints an empty row for a kind without objects, depending on when it asks.
    let mut lines: Vec<String> = lines.filter(|line| !line.trim().is_empty()).collect();
    if command.starts_with("events") {
        // The first column is how long ago it was.
        for line in lines.iter_mut().skip(1) {
            *line = line
                .split_once('\t')
                .map_or(String::new(), |(_, rest)| rest.to_owned());
        }
        if let Some(rows) = lines.get_mut(1..) {
            rows.sort();
        }
        lines.dedup();
    }
    lines.join("\n")
}

/// A command of which two sets of controllers have it say something else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Different {
    /// The command.
    pub command: String,
    /// Lines of Flux's that are missing, with `-`, and lines that Flux does not have, with `+`; the exit codes if they differ.
    pub lines: Vec<String>,
}

/// Compares two recordings of the story.
pub fn compare(flux: &[Said], ours: &[Said]) -> Vec<Different> {
    let mut different = Vec::new();
    for (theirs, own) in flux.iter().zip(ours) {
        let mut lines = Vec::new();
        if theirs.code != own.code || theirs.command != own.command {
            lines.push(format!("- {}: exit code {}", theirs.command, theirs.code));
            lines.push(format!("+ {}: exit code {}", own.command, own.code));
        }
        let (left, right): (Vec<&str>, Vec<&str>) =
            (theirs.output.lines().collect(), own.output.lines().collect());
        let missing = left.iter().filter(|line| !right.contains(line));
        lines.extend(missing.map(|line| format!("- {line}")));
        let added = right.iter().filter(|line| !left.contains(line));
        lines.extend(added.map(|line| format!("+ {line}")));
        if lines.is_empty() && left != right {
            lines.push("  the same lines in another order".to_owned());
        }
        if !lines.is_empty() {
            different.push(Different {
                command: theirs.command.clone(),
                lines,
            });
        }
    }
    different
}

/// The comparison as Markdown.
pub fn markdown(flux: &[Said], ours: &[Said]) -> String {
    let different = compare(flux, ours);
    let mut text = format!(
        "{} commands, of which {} say the same.\n",
        flux.len(),
        flux.len() - different.len()
    );
    for Different { command, lines } in different {
        text.push_str(&format!(
            "\n`flux {command}`\n\n```diff\n{}\n```\n",
            lines.join("\n")
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_explanation_is_a_row_of_the_page() {
        let page = include_str!("../../../docs/compatibility/flux.md");
        for (_, _, section, what) in EXPLAINED {
            let (_, rows) = page.split_once(&format!("\n## {section}\n")).unwrap();
            let rows = rows.split("\n## ").next().unwrap();
            let mut cells = rows.lines().filter_map(|line| line.split('|').nth(1));
            assert!(cells.any(|cell| cell.contains(what)), "{section}: {what}");
        }
        assert_eq!((VARYING.len(), OTHERWISE.len()), (8, EXPLAINED.len()));
    }

    #[test]
    fn a_difference_is_named_by_its_command_and_lines() {
        let said = |code: i32, output: &str| Said {
            command: "get all".to_owned(),
            code,
            output: output.to_owned(),
        };
        let same = compare(&[said(0, "a\nb")], &[said(0, "a\nb")]);
        assert_eq!(same, []);
        let other = compare(&[said(0, "a\nb")], &[said(1, "b\nc")]);
        assert_eq!(
            other[0].lines,
            ["- get all: exit code 0", "+ get all: exit code 1", "- a", "+ c"]
        );
    }

    #[test]
    fn what_differs_from_run_to_run_is_taken_out() {
        let output =
            "NAME\tREVISION\tMESSAGE\ngood    \tmain@sha1:01234567\tcouldn't find remote ref \"x\"\n\n";
        assert_eq!(
            normal(output, "get all", Path::new("/nowhere")),
            "NAME\tREVISION\tMESSAGE\ngood\tmain@sha1:COMMIT\tcouldn't find remote ref x"
        );
    }
}
