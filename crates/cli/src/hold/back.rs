//! `windlass rollback`: back to what ran before, until that is released.

use std::time::Duration;

use api::kustomize::ROLLBACK_ANNOTATION;
use api::meta::{ROLLBACK_REASON_ANNOTATION, ROLLBACK_TO_ANNOTATION, condition_types};
use clap::Args;
use delivery_graph::kind::Kind;
use delivery_graph::object::{self, list, text};
use serde_json::{Value, json};

use super::{in_git, releases};
use crate::cluster::select::{self, Selection};
use crate::cluster::{self, ClusterFlags, Failure, parse_timeout, print};
use crate::reconcile::suspended;

/// Command line of `rollback`.
#[derive(Debug, Args)]
pub(crate) struct Rollback {
    /// kustomization/NAME, helmrelease/NAME or pipeline/NAME
    #[arg(value_name = "OBJECT", required = true)]
    words: Vec<String>,

    #[command(flatten)]
    pub(super) cluster: ClusterFlags,

    /// Environment of a pipeline that goes back
    #[arg(long, value_name = "NAME")]
    env: Option<String>,

    /// Revision of a Kustomization's source, or a part of it; number of a Helm revision; number of a pipeline's release.
    /// Defaults to the one before that was healthy
    #[arg(long, value_name = "REVISION")]
    pub(super) to: Option<String>,

    /// Why, for the status, the events, and the commit of a pipeline
    #[arg(
        long,
        value_name = "TEXT",
        required_unless_present = "dry_run",
        default_value = "",
        hide_default_value = true
    )]
    pub(super) reason: String,

    /// Change Git instead of the cluster: propose a pull request that takes back what changed since the revision. Not for
    /// pipelines, which always do
    #[arg(long)]
    commit: bool,

    /// With --commit: ChangePolicy of the type PullRequest; defaults to the only one in the namespace of the GitRepository
    #[arg(long, value_name = "[NAMESPACE/]NAME", requires = "commit")]
    pub(super) change_policy: Option<String>,

    /// Pipelines: print what would change in files, and change nothing
    #[arg(long)]
    pub(super) dry_run: bool,

    /// How long to wait until a Kustomization or HelmRelease is rolled back, or for the pull request
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = parse_timeout)]
    pub(super) timeout: Duration,
}

/// Goes back.
pub(crate) fn rollback(flags: &Rollback) -> Result<(), Failure> {
    let usage = || {
        Failure::Usage("name one object: kustomization/NAME, helmrelease/NAME or pipeline/NAME".to_owned())
    };
    let Selection::Targets(targets) = select::select(&flags.words)? else {
        return Err(usage());
    };
    let [target] = targets.as_slice() else {
        return Err(usage());
    };
    match (target.kind.kind, &flags.env) {
        ("Pipeline", _) if flags.commit => Err(Failure::Usage("--commit is not for pipelines".to_owned())),
        ("Pipeline", Some(environment)) => releases::rollback(&target.name, environment, flags),
        ("Pipeline", None) => Err(Failure::Usage(
            "name the environment of the pipeline with --env".to_owned(),
        )),
        ("Kustomization" | "HelmRelease", Some(_)) => {
            Err(Failure::Usage("--env is for pipelines".to_owned()))
        }
        ("Kustomization" | "HelmRelease", None) if flags.dry_run => {
            Err(Failure::Usage("--dry-run is for pipelines".to_owned()))
        }
        ("Kustomization" | "HelmRelease", None) if flags.commit => in_git::revert(target, flags),
        ("Kustomization" | "HelmRelease", None) => app(target.kind, &target.name, flags),
        _ => Err(usage()),
    }
}

/// Has an application go back, and waits until it has.
fn app(kind: &Kind, name: &str, flags: &Rollback) -> Result<(), Failure> {
    cluster::run(&flags.cluster, async |cluster| {
        let app = kind.id(&cluster.namespace, name);
        let (_, to) = super::anew(async || {
            let found = cluster.need(&app).await?;
            if object::is_suspended(&found) {
                return Err(suspended(&app));
            }
            let to = match kind.kind {
                "HelmRelease" => helm_revision(&found, flags.to.as_deref()),
                _ => source_revision(&found, flags.to.as_deref()),
            };
            let to = to.map_err(|why| Failure::NotReady(format!("{app}: {why}")))?;
            let patch = json!({"metadata": {
                // Refused if something else was delivered since it was read.
                "resourceVersion": text(&found, "/metadata/resourceVersion"),
                "annotations": {ROLLBACK_TO_ANNOTATION: to.named, ROLLBACK_REASON_ANNOTATION: flags.reason},
            }});
            let written = cluster.merge(&app, "roll back", &patch).await;
            Ok((to.named.clone(), written.map(|()| to)))
        })
        .await?;
        let gone = || Some(Err(format!("{app} does not exist any more")));
        let said = cluster
            .watch_until(&app, flags.timeout, |object| {
                object.map_or_else(gone, |object| outcome(object, &to))
            })
            .await?;
        match said {
            Some(Ok(message)) => print(&format!("{app}: {message}\n")),
            Some(Err(message)) => Err(Failure::NotReady(format!("{app}: {message}"))),
            None => Err(Failure::TimedOut(format!(
                "{app} is not rolled back to {} after {}",
                to.revision,
                api::meta::Duration::from(flags.timeout)
            ))),
        }
    })
}

/// Returns what became of a rollback, once something did.
fn outcome(object: &Value, to: &Target) -> Option<Result<String, String>> {
    let is = |type_, status: &str| object::condition(object, type_).filter(|found| found.status == status);
    let done = format!("rolled back by hand to revision {} ", to.revision);
    if let Some(held) = is(condition_types::HELD, "True").filter(|held| held.message.starts_with(&done)) {
        return Some(Ok(held.message.to_owned()));
    }
    let failed = [
        format!("roll back to revision {}:", to.revision),
        format!("roll back to revision {},", to.revision),
        format!("{ROLLBACK_TO_ANNOTATION} asks for revision {},", to.named),
    ];
    let ready = is(condition_types::READY, "False");
    if let Some(ready) = ready.filter(|ready| failed.iter().any(|words| ready.message.contains(words))) {
        return Some(Err(ready.message.to_owned()));
    }
    is(condition_types::FROZEN, "True").map(|frozen| Err(frozen.message.to_owned()))
}

/// What an application goes back to.
#[derive(Debug, PartialEq, Eq)]
struct Target {
    /// How the annotation names it.
    named: String,
    /// How the status does.
    revision: String,
}

impl From<&str> for Target {
    fn from(revision: &str) -> Self {
        Self {
            named: revision.to_owned(),
            revision: revision.to_owned(),
        }
    }
}

/// Returns the revision of a Kustomization to go back to.
fn source_revision(object: &Value, asked: Option<&str>) -> Result<Target, String> {
    let annotations = object.pointer("/metadata/annotations");
    if annotations.and_then(|all| all.get(ROLLBACK_ANNOTATION)).is_none() {
        return Err(format!(
            "no revision of it is kept. The annotation {ROLLBACK_ANNOTATION}=by-hand keeps those to come; until then, revert \
             in Git"
        ));
    }
    let history = list(object, "/status/history");
    let newest = history.first().unwrap_or(&Value::Null);
    let were_good = history
        .iter()
        .filter(|entry| text(entry, "/lastReconciledStatus") == "ReconciliationSucceeded");
    let good: Vec<&Value> = were_good.collect();
    let is_newest = |entry: &&Value| text(entry, "/digest") == text(newest, "/digest");
    let revision = |entry: &Value| text(entry, "/metadata/revision").to_owned();
    let target = |entry: &Value| Target {
        // Other variables made something else of the same revision.
        named: match revision(entry) == revision(newest) {
            true => text(entry, "/digest").to_owned(),
            false => revision(entry),
        },
        revision: revision(entry),
    };
    let Some(asked) = asked else {
        let passed = good.iter().position(is_newest).map_or(0, |at| at + 1);
        let before = good[passed..].iter().find(|entry| !is_newest(entry));
        return before
            .map(|entry| target(entry))
            .ok_or_else(|| "no revision before in its history was healthy".to_owned());
    };
    let others = good.iter().filter(|entry| !is_newest(entry));
    let meant: Vec<&Value> = others
        .clone()
        .filter(|entry| revision(entry).contains(asked))
        .copied()
        .collect();
    match meant.as_slice() {
        [one] => Ok(target(one)),
        [] if asked.contains(':') || asked.contains('@') => Ok(asked.into()),
        [] => {
            let known: Vec<_> = others.map(|entry| revision(entry)).collect();
            Err(format!(
                "no healthy revision of its history but the newest has '{asked}' in it: {}",
                known.join(", ")
            ))
        }
        several => {
            let several: Vec<_> = several.iter().map(|entry| revision(entry)).collect();
            Err(format!(
                "'{asked}' is in several revisions of its history: {}",
                several.join(", ")
            ))
        }
    }
}

/// Returns the revision of a release to go back to.
fn helm_revision(object: &Value, asked: Option<&str>) -> Result<Target, String> {
    if let Some(asked) = asked {
        let number = asked.parse::<i64>().ok().filter(|number| *number > 0);
        let number =
            number.ok_or_else(|| "--to: give the number of a Helm revision (helm history)".to_owned())?;
        return Ok((&*number.to_string()).into());
    }
    let history = list(object, "/status/history").iter().skip(1);
    let mut were_good = history.filter(|entry| ["superseded", "deployed"].contains(&text(entry, "/status")));
    let before = were_good.next().and_then(|entry| entry.get("version")?.as_i64());
    let before = before.ok_or_else(|| {
        "its status knows no earlier revision: give one with --to (helm history)".to_owned()
    })?;
    Ok((&*before.to_string()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kustomization(history: &[(&str, &str, &str)]) -> Value {
        let history = history.iter().map(|(digest, outcome, revision)| {
            json!({"digest": digest, "lastReconciledStatus": outcome, "metadata": {"revision": revision}})
        });
        json!({
            "metadata": {"annotations": {ROLLBACK_ANNOTATION: "by-hand"}},
            "status": {"history": history.collect::<Vec<_>>()},
        })
    }

    #[test]
    fn a_kustomization_goes_back_to_the_healthy_one_before() {
        let good = "ReconciliationSucceeded";
        let app = kustomization(&[
            ("3", good, "main@sha1:ccc"),
            ("2", "HealthCheckFailed", "main@sha1:bbb"),
            ("1", good, "main@sha1:abc"),
            ("0", good, "main@sha1:aaa"),
        ]);
        let to = |asked| source_revision(&app, asked);
        assert_eq!(to(None).unwrap(), "main@sha1:abc".into());
        assert_eq!(to(Some("aaa")).unwrap(), "main@sha1:aaa".into());
        assert_eq!(to(Some("main@sha1:older")).unwrap(), "main@sha1:older".into());
        assert!(to(Some("bbb")).unwrap_err().contains("has 'bbb' in it"));
        assert!(to(Some("main")).unwrap_err().contains("in several"));
        let failed = kustomization(&[("2", "HealthCheckFailed", "bbb"), ("1", good, "aaa")]);
        assert_eq!(source_revision(&failed, None).unwrap(), "aaa".into());
        // Back once already: further back, and not forward.
        let back = kustomization(&[
            ("2", "RolledBack", "bbb"),
            ("3", good, "ccc"),
            ("2", good, "bbb"),
            ("1", good, "aaa"),
        ]);
        assert_eq!(source_revision(&back, None).unwrap(), "aaa".into());
        assert_eq!(source_revision(&back, Some("ccc")).unwrap(), "ccc".into());
        // Other variables made something else of the same revision.
        let variables = kustomization(&[("2", good, "aaa"), ("1", good, "aaa")]);
        let before = source_revision(&variables, None).unwrap();
        assert_eq!((&*before.named, &*before.revision), ("1", "aaa"));
        let first = kustomization(&[("1", good, "aaa")]);
        assert!(source_revision(&first, None).is_err());
        let unkept = json!({"status": failed["status"]});
        assert!(source_revision(&unkept, None).unwrap_err().contains("is kept"));
    }

    #[test]
    fn a_release_goes_back_to_the_good_revision_before() {
        let release = json!({"status": {"history": [
            {"version": 4, "status": "deployed"}, {"version": 3, "status": "failed"},
            {"version": 2, "status": "superseded"}, {"version": 1, "status": "superseded"},
        ]}});
        assert_eq!(helm_revision(&release, None).unwrap(), "2".into());
        assert_eq!(helm_revision(&release, Some("1")).unwrap(), "1".into());
        for wrong in ["", "0", "-1", "v1"] {
            assert!(helm_revision(&release, Some(wrong)).is_err(), "{wrong}");
        }
        assert!(helm_revision(&json!({}), None).is_err());
    }

    #[test]
    fn what_became_of_it_is_said_once_it_is_known() {
        let with = |type_: &str, status: &str, message: &str| json!({"status": {"conditions": [{"type": type_, "status": status, "message": message}]}});
        let held = with("Held", "True", "rolled back by hand to revision 2 since now: x");
        assert!(outcome(&held, &"2".into()).unwrap().is_ok());
        assert!(outcome(&held, &"22".into()).is_none() && outcome(&json!({}), &"2".into()).is_none());
        let failed = with(
            "Ready",
            "False",
            "failed to roll back to revision 2: there is no release",
        );
        assert!(outcome(&failed, &"2".into()).unwrap().is_err());
        let another = with(
            "Ready",
            "False",
            "failed to roll back to revision 22: there is no release",
        );
        assert!(outcome(&another, &"2".into()).is_none());
        let frozen = with("Frozen", "True", "the rollback to revision 2 waits");
        assert!(outcome(&frozen, &"2".into()).unwrap().is_err());
    }
}
