//! `windlass rollback --commit`: what changed since a revision is taken back in Git, by a ChangeRequest (ADR 22).

use std::collections::BTreeSet;

use api::delivery::{ChangeRequestSpec, Revert};
use delivery_diff::{Archives, Reader, declared, place_of};
use delivery_graph::object::{list, text};
use serde_json::Value;

use super::Rollback;
use crate::change;
use crate::cluster::select::Target;
use crate::cluster::{self, Failure};

/// Hexadecimal digits of a commit.
const COMMIT: usize = 40;

/// Proposes the revert of a Kustomization's files, or of the file that declares a HelmRelease.
pub(super) fn revert(target: &Target, flags: &Rollback) -> Result<(), Failure> {
    cluster::run(&flags.cluster, async |cluster| {
        let id = target.id(&cluster.namespace);
        let found = cluster.need(&id).await?;
        let (kustomization, path) = match target.kind.kind {
            "Kustomization" => (id.clone(), None),
            _ => {
                let reader = Reader::new(cluster.client());
                let found = declared(&reader, &Archives::default(), &found).await;
                let found = found.map_err(Failure::NotReady)?;
                (found.kustomization, Some(found.file))
            }
        };
        let built = match &path {
            None => found,
            Some(_) => cluster.need(&kustomization).await?,
        };
        let (repository, _) = place_of(&built).map_err(Failure::NotReady)?;
        let (from, to) = commits(&built, flags.to.as_deref())
            .map_err(|problem| Failure::NotReady(format!("{kustomization}: {problem}")))?;
        let spec = ChangeRequestSpec {
            title: format!("Revert {}/{} to {to}", target.kind.kind, target.name),
            reason: Some(flags.reason.clone()),
            revert: Some(Revert { from, to, path }),
            ..ChangeRequestSpec::default()
        };
        let place = (&kustomization, &repository);
        change::ask(
            &cluster,
            place,
            flags.change_policy.as_deref(),
            spec,
            flags.timeout,
        )
        .await
    })
}

/// Returns the revision that a Kustomization has tried last, and the healthy one before that is meant.
fn commits(object: &Value, asked: Option<&str>) -> Result<(String, String), String> {
    let from = text(object, "/status/lastAttemptedRevision");
    if commit(from).is_none() {
        return Err("it has not tried a revision of a GitRepository yet".to_owned());
    }
    let history = list(object, "/status/history").iter();
    let good = history.filter(|entry| text(entry, "/lastReconciledStatus") == "ReconciliationSucceeded");
    let mut good: Vec<&str> = good.map(|entry| text(entry, "/metadata/revision")).collect();
    good.retain(|revision| commit(revision).is_some() && commit(revision) != commit(from));
    let mut seen = BTreeSet::new();
    good.retain(|revision| seen.insert(*revision));
    let to = match (asked, good.as_slice()) {
        (None, [newest, ..]) => (*newest).to_owned(),
        (None, []) => {
            let problem =
                "no earlier revision in its history was healthy: name one with --to main@sha1:COMMIT";
            return Err(problem.to_owned());
        }
        (Some(asked), _) if commit(asked).is_some() => asked.to_owned(),
        (Some(asked), _) if is_commit(asked) => format!("sha1:{asked}"),
        (Some(asked), _) => {
            let meant: Vec<_> = good.iter().filter(|revision| revision.contains(asked)).collect();
            match meant.as_slice() {
                [one] => (**one).to_owned(),
                _ => {
                    return Err(format!(
                        "'{asked}' is in {} of the earlier healthy revisions of its history ({}): name one of them, or a whole commit",
                        meant.len(),
                        good.join(", ")
                    ));
                }
            }
        }
    };
    Ok((from.to_owned(), to))
}

/// The commit of a revision such as `main@sha1:…`.
fn commit(revision: &str) -> Option<&str> {
    let (_, named) = revision.rsplit_once('@').unwrap_or(("", revision));
    named.strip_prefix("sha1:").filter(|commit| is_commit(commit))
}

fn is_commit(text: &str) -> bool {
    text.len() == COMMIT && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn revision(digit: char) -> String {
        format!("main@sha1:{}", String::from(digit).repeat(COMMIT))
    }

    fn kustomization(tried: char, history: &[(char, &str)]) -> Value {
        let history = history.iter().map(|(digit, outcome)| {
            json!({"lastReconciledStatus": outcome, "metadata": {"revision": revision(*digit)}})
        });
        json!({"status": {"lastAttemptedRevision": revision(tried), "history": history.collect::<Vec<_>>()}})
    }

    #[test]
    fn it_goes_from_what_was_tried_last_to_what_was_healthy_before() {
        let good = "ReconciliationSucceeded";
        let object = kustomization(
            'c',
            &[('c', "HealthCheckFailed"), ('b', good), ('b', good), ('a', good)],
        );
        let found = |asked| commits(&object, asked).map(|(_, to)| to);
        assert_eq!(commits(&object, None), Ok((revision('c'), revision('b'))));
        assert_eq!(found(Some("aaa")), Ok(revision('a')));
        let whole = "d".repeat(COMMIT);
        assert_eq!(found(Some(&whole)), Ok(format!("sha1:{whole}")));
        let other = revision('d');
        assert_eq!(found(Some(&other)), Ok(other.clone()));
        for wrong in ["ddd", "main", "ccc", ""] {
            assert!(found(Some(wrong)).is_err(), "{wrong}");
        }
        // It has been there, elsewhere, and there again.
        let again = kustomization('c', &[('b', good), ('a', good), ('b', good)]);
        assert_eq!(commits(&again, Some("bbb")), Ok((revision('c'), revision('b'))));
        // A healthy one is taken back as well.
        let healthy = kustomization('b', &[('b', good), ('a', good)]);
        assert_eq!(commits(&healthy, None), Ok((revision('b'), revision('a'))));
        assert!(commits(&kustomization('b', &[('b', good)]), None).is_err());
        assert!(commits(&json!({}), None).is_err());
        let chart = json!({"status": {"lastAttemptedRevision": "6.0.0@sha256:abc"}});
        assert!(commits(&chart, None).is_err());
    }
}
