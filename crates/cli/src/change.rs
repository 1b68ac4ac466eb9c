//! `windlass edit`, `propose` and `adopt`: manifests changed through Git, by a ChangeRequest that pipeline-controller proposes as a pull
//! request (ADR 22).

pub(crate) mod adopt;
mod editor;

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use access_review::Reviews;
use api::delivery::{
    ChangeKind, ChangePolicySpec, ChangeRequest, ChangeRequestSpec, FileChange, KustomizationReference,
};
use api::meta::LocalObjectReference;
use clap::Args;
use delivery_diff::{Archives, Reader, Summary, declared, place_of, proposed};
use delivery_graph::kind;
use delivery_graph::object::{self, condition, text};
use kube::api::{Api, PostParams};
use manifest::ObjectId;
use serde_json::Value;

use crate::cluster::output::Colours;
use crate::cluster::{self, Cluster, ClusterFlags, Failure, print, select};
use crate::diff::{Form, hunks, shown};

/// Larger files are no manifests.
const MAX_CONTENT: u64 = 65_536;

/// How a change is proposed.
#[derive(Debug, Args)]
struct How {
    /// ChangePolicy of the type PullRequest; defaults to the only one in the namespace of the GitRepository
    #[arg(long, value_name = "[NAMESPACE/]NAME")]
    change_policy: Option<String>,

    /// Title of the pull request
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,

    /// Why, for the pull request
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    reason: String,

    /// Print what would change in Git and in the cluster, and propose nothing
    #[arg(long)]
    dry_run: bool,

    /// How long to wait for the pull request; 0s does not wait
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = cluster::parse_timeout)]
    timeout: Duration,

    #[command(flatten)]
    cluster: ClusterFlags,
}

/// Command line of `edit`.
#[derive(Debug, Args)]
pub(crate) struct Edit {
    /// Object, as KIND/NAME or KIND NAME
    #[arg(value_name = "OBJECT", required = true)]
    words: Vec<String>,

    /// File with the new manifest, - for standard input; by default $EDITOR is started
    #[arg(long, short, value_name = "FILE")]
    file: Option<PathBuf>,

    #[command(flatten)]
    how: How,
}

/// Command line of `propose`.
#[derive(Debug, Args)]
pub(crate) struct Propose {
    /// File with the manifests, - for standard input
    #[arg(long, short, value_name = "FILE", required = true)]
    file: PathBuf,

    /// Kustomization that is to apply them
    #[arg(long, value_name = "[NAMESPACE/]NAME", required = true)]
    kustomization: String,

    /// Path of the new file in the repository; defaults to the name of FILE, in the folder of the Kustomization
    #[arg(long, value_name = "PATH")]
    path: Option<String>,

    #[command(flatten)]
    how: How,
}

/// What is to be changed.
struct Change {
    kustomization: ObjectId,
    repository: ObjectId,
    files: Vec<FileChange>,
    /// Title, and beginning of the name, unless another title is given.
    title: String,
}

/// Changes the manifest of an object.
pub(crate) fn edit(flags: &Edit) -> Result<(), Failure> {
    let target = select::one_target(&flags.words)?;
    cluster::run(&flags.how.cluster, async |cluster| {
        let id = target.id(&cluster.namespace);
        let found = cluster.need(&id).await?;
        let reader = Reader::new(cluster.client());
        let found = declared(&reader, &Archives::default(), &found)
            .await
            .map_err(Failure::NotReady)?;
        let content = match &flags.file {
            Some(file) => read(file)?,
            None => editor::edit(&found.file, &found.text)?,
        };
        if content.trim_end() == found.text.trim_end() {
            return print(&format!("{}: nothing changed\n", found.file));
        }
        let change = Change {
            files: vec![FileChange {
                path: found.file,
                object: Some(found.object),
                digest: Some(manifest_edit::digest(&found.text)),
                content,
            }],
            kustomization: found.kustomization,
            repository: found.repository,
            title: format!("Change {}/{}", target.kind.kind, target.name),
        };
        finish(&cluster, change, &flags.how).await
    })
}

/// Adds a file.
pub(crate) fn propose(flags: &Propose) -> Result<(), Failure> {
    let content = read(&flags.file)?;
    cluster::run(&flags.how.cluster, async |cluster| {
        let kustomization = named(&cluster, "Kustomization", &flags.kustomization)?;
        let built = cluster.need(&kustomization).await?;
        let (repository, folder) = place_of(&built).map_err(Failure::NotReady)?;
        let path = match &flags.path {
            Some(path) => path.clone(),
            None => {
                let name = flags.file.file_name().and_then(|name| name.to_str());
                let name = name.filter(|name| *name != "-");
                let usage = || Failure::Usage("name the file in the repository with --path".to_owned());
                let name = name.ok_or_else(usage)?;
                if folder.is_empty() {
                    name.to_owned()
                } else {
                    format!("{folder}/{name}")
                }
            }
        };
        let change = Change {
            title: format!("Add {}", path.rsplit('/').next().unwrap_or_default()),
            files: vec![FileChange {
                path,
                content,
                ..FileChange::default()
            }],
            kustomization,
            repository,
        };
        finish(&cluster, change, &flags.how).await
    })
}

/// Shows what it would change, or proposes it.
async fn finish(cluster: &Cluster, change: Change, how: &How) -> Result<(), Failure> {
    let reader = Reader::new(cluster.client());
    if how.dry_run {
        let found = proposed(reader, Archives::default(), &change.kustomization, &change.files).await;
        let found = found.map_err(Failure::NotReady)?;
        let colours = Colours::of_terminal();
        let mut text = String::new();
        for (path, old, new) in &found.files {
            text.push_str(&format!("--- {path}\n+++ {path}\n{}", hunks(old, new, colours)));
        }
        text.push_str(&format!("\n{}", shown(&found.sections, Form::Table, colours)?));
        print(&text)?;
        let unknown = Summary::from_sections(&found.sections).unknown();
        return match unknown {
            0 => Ok(()),
            count => Err(Failure::Incomplete(format!(
                "{count} could not be compared; see above for what and why"
            ))),
        };
    }
    let spec = ChangeRequestSpec {
        title: how.title.clone().unwrap_or_else(|| change.title.clone()),
        reason: Some(how.reason.clone()).filter(|reason| !reason.is_empty()),
        files: change.files,
        ..ChangeRequestSpec::default()
    };
    let place = (&change.kustomization, &change.repository);
    ask(cluster, place, how.change_policy.as_deref(), spec, how.timeout).await
}

/// Asks for a change of what a Kustomization is built from, in the name of the user, and waits for its pull request.
pub(crate) async fn ask(
    cluster: &Cluster,
    (kustomization, repository): (&ObjectId, &ObjectId),
    change_policy: Option<&str>,
    asked: ChangeRequestSpec,
    timeout: Duration,
) -> Result<(), Failure> {
    let policy = policy(cluster, repository, change_policy).await?;
    let myself = Reviews::for_self(cluster.client()).myself().await;
    let myself = myself.map_err(|error| Failure::Request {
        what: "ask the API server who you are".to_owned(),
        why: error_chain::condensed(&error),
    })?;
    let of = &kustomization.namespace;
    let spec = ChangeRequestSpec {
        kustomization_ref: KustomizationReference {
            name: kustomization.name.clone(),
            namespace: (*of != policy.namespace).then(|| of.clone()),
        },
        change_policy_ref: LocalObjectReference {
            name: policy.name.clone(),
        },
        requested_by: Some(myself.username),
        ..asked
    };
    let mut request = ChangeRequest::new("", spec);
    request.metadata.name = None;
    request.metadata.generate_name = Some("change-".to_owned());
    let api: Api<ChangeRequest> = Api::namespaced(cluster.client(), &policy.namespace);
    let made = api.create(&PostParams::default(), &request).await;
    let made = made.map_err(|error| Failure::request("create a ChangeRequest", error))?;
    let id = named_kind("ChangeRequest")?.id(&policy.namespace, &made.metadata.name.unwrap_or_default());
    print(&format!("{id} created\n"))?;
    if timeout.is_zero() {
        return Ok(());
    }
    wait(cluster, &id, timeout).await
}

/// Waits for the pull request.
async fn wait(cluster: &Cluster, id: &ObjectId, timeout: Duration) -> Result<(), Failure> {
    let said = cluster
        .watch_until(id, timeout, |found| match found {
            None => Some(Err(format!("{id} was deleted"))),
            Some(found) => {
                let ready = condition(found, "Ready")?;
                let is_open = !text(found, "/status/pullRequest/url").is_empty() || ready.status == "True";
                match (is_open, ready.status) {
                    (true, _) => Some(Ok(ready.message.to_owned())),
                    (false, "False") => Some(Err(format!("{}: {}", ready.reason, ready.message))),
                    _ => None,
                }
            }
        })
        .await?;
    match said {
        Some(Ok(message)) => print(&format!("{message}\n")),
        Some(Err(problem)) => Err(Failure::NotReady(format!("{id}: {problem}"))),
        None => Err(Failure::TimedOut(format!(
            "{id}: no pull request after {timeout:?}; windlass get changerequests says how it stands"
        ))),
    }
}

/// The ChangePolicy that is named, or the only one of the namespace that opens pull requests.
async fn policy(cluster: &Cluster, repository: &ObjectId, word: Option<&str>) -> Result<ObjectId, Failure> {
    let kind = named_kind("ChangePolicy")?;
    if let Some(word) = word {
        return named(cluster, kind.kind, word);
    }
    let all = cluster.list(kind, Some(&repository.namespace), None).await?;
    let is_by_request = |found: &Value| {
        let spec = serde_json::from_value::<ChangePolicySpec>(found["spec"].clone());
        spec.is_ok_and(|spec| spec.kind == ChangeKind::PullRequest)
    };
    let found: Vec<ObjectId> = all
        .unwrap_or_default()
        .iter()
        .filter(|one| is_by_request(one))
        .map(object::id)
        .collect();
    match <[_; 1]>::try_from(found) {
        Ok([one]) => Ok(one),
        Err(found) => Err(Failure::Usage(format!(
            "{} ChangePolicies of the type PullRequest are in namespace {}: name one with --change-policy",
            found.len(),
            repository.namespace
        ))),
    }
}

/// An object of a kind that a flag names, in the namespace of the command unless it names another one.
fn named(cluster: &Cluster, kind: &str, word: &str) -> Result<ObjectId, Failure> {
    let (namespace, name) = word.split_once('/').unwrap_or((&cluster.namespace, word));
    if name.is_empty() || namespace.is_empty() || name.contains('/') {
        return Err(Failure::Usage(format!("{word:?}: write [NAMESPACE/]NAME")));
    }
    Ok(named_kind(kind)?.id(namespace, name))
}

fn named_kind(kind: &str) -> Result<&'static kind::Kind, Failure> {
    kind::exact(kind).ok_or_else(|| Failure::Usage(format!("{kind} is no known kind")))
}

fn read(file: &Path) -> Result<String, Failure> {
    let failed = |why: String| Failure::Usage(format!("{}: {why}", file.display()));
    let mut text = String::new();
    let read = match file.to_str() {
        Some("-") => std::io::stdin().take(MAX_CONTENT + 1).read_to_string(&mut text),
        _ => std::fs::File::open(file).and_then(|open| open.take(MAX_CONTENT + 1).read_to_string(&mut text)),
    };
    read.map_err(|error| failed(error.to_string()))?;
    match text.len() as u64 > MAX_CONTENT {
        true => Err(failed(format!("it is larger than {MAX_CONTENT} bytes"))),
        false => Ok(text),
    }
}
