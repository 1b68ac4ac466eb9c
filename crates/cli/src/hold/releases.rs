//! Releases that a pipeline does not promote, or that people agree to.

use access_review::Reviews;
use clap::Args;
use delivery_graph::kind;
use delivery_graph::object::text;
use jiff::{SignedDuration, Timestamp};
use promotion::decisions::{APPROVALS, Approval, Decisions, HOLDS, Hold};
use serde_json::{Value, json};

use super::Part;
use crate::cluster::select::Selection;
use crate::cluster::{self, ClusterFlags, Failure, print, select};

/// Command line of `approve`.
#[derive(Debug, Args)]
pub(crate) struct Approve {
    /// pipeline/NAME
    #[arg(value_name = "OBJECT", required = true)]
    words: Vec<String>,

    #[command(flatten)]
    cluster: ClusterFlags,

    /// Environment that the release may enter
    #[arg(long, value_name = "NAME")]
    env: String,

    /// Number of the release; defaults to the newest that the environment does not have
    #[arg(long = "number", value_name = "N")]
    number: Option<u64>,
}

/// Reads a pipeline, changes what people decided, and writes it if no one else did in the meantime.
fn change(
    name: &str,
    flags: &ClusterFlags,
    what: &'static str,
    change: impl FnOnce(&Value, &str, &mut Decisions) -> Result<String, Failure>,
) -> Result<(), Failure> {
    cluster::run(flags, async |cluster| {
        let kind = kind::exact("Pipeline");
        let kind = kind.ok_or_else(|| Failure::Usage("Pipeline is no known kind".to_owned()))?;
        let id = kind.id(&cluster.namespace, name);
        let pipeline = cluster.need(&id).await?;
        let annotations = pipeline.pointer("/metadata/annotations");
        let annotation = |name: &str| annotations.and_then(|all| all.get(name)?.as_str());
        let decisions = Decisions::parse(annotation);
        let mut decisions = decisions.map_err(|error| Failure::NotReady(format!("{id}: {error}")))?;
        let myself = Reviews::for_self(cluster.client()).myself().await;
        let myself = myself.map_err(|error| Failure::Request {
            what: "ask the API server who you are".to_owned(),
            why: error_chain::condensed(&error),
        })?;
        let done = change(&pipeline, &myself.username, &mut decisions)?;
        let patch = json!({"metadata": {
            // Refused if someone else changed the object since it was read.
            "resourceVersion": text(&pipeline, "/metadata/resourceVersion"),
            "annotations": {HOLDS: list(&decisions.holds), APPROVALS: list(&decisions.approvals)},
        }});
        cluster.merge(&id, what, &patch).await?;
        print(&format!("{id}: {done}\n"))
    })
}

/// The text of an annotation; null removes it.
fn list<T: serde::Serialize>(entries: &[T]) -> Value {
    match entries.is_empty() {
        true => Value::Null,
        false => json!(json!(entries).to_string()),
    }
}

/// Refuses an environment that the pipeline does not have.
fn check(pipeline: &Value, environment: &str) -> Result<(), Failure> {
    let environments = pipeline["spec"]["environments"].as_array().into_iter().flatten();
    let names: Vec<&str> = environments.filter_map(|one| one["name"].as_str()).collect();
    if names.contains(&environment) {
        return Ok(());
    }
    let names = names.join(", ");
    Err(Failure::Usage(format!(
        "there is no environment '{environment}': it has {names}"
    )))
}

/// What a hold is about, for people.
fn place(environment: &str, release: Option<u64>) -> String {
    let release = release.map_or("every release".to_owned(), |release| format!("release {release}"));
    match environment {
        "" => release,
        environment => format!("{release} in {environment}"),
    }
}

/// Holds releases of a pipeline back.
pub(super) fn hold(name: &str, flags: &super::Hold) -> Result<(), Failure> {
    let Part { env, number } = &flags.part;
    change(
        name,
        &flags.object.cluster,
        "hold",
        |pipeline, myself, decisions| {
            if let Some(environment) = env {
                check(pipeline, environment)?;
            }
            let until = flags.duration.map(|duration| {
                let duration = SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX);
                let until = Timestamp::now().checked_add(duration).unwrap_or(Timestamp::MAX);
                until.round(jiff::Unit::Second).unwrap_or(until)
            });
            let environment = env.clone().unwrap_or_default();
            decisions
                .holds
                .retain(|hold| hold.environment != environment || hold.release != *number);
            let said = place(&environment, *number);
            decisions.holds.push(Hold {
                environment,
                release: *number,
                reason: flags.reason.clone(),
                by: myself.to_owned(),
                until,
            });
            Ok(format!("{said} is held back"))
        },
    )
}

/// Releases what was held back, as far as it is named.
pub(super) fn release(name: &str, flags: &super::Release) -> Result<(), Failure> {
    let Part { env, number } = &flags.part;
    change(name, &flags.object.cluster, "release", |_, _, decisions| {
        let is_meant = |hold: &Hold| {
            env.as_ref().is_none_or(|env| *env == hold.environment)
                && (number.is_none() || *number == hold.release)
        };
        let (released, kept): (Vec<_>, Vec<_>) = decisions.holds.drain(..).partition(is_meant);
        decisions.holds = kept;
        if released.is_empty() {
            return Err(Failure::NotReady("nothing such is held back".to_owned()));
        }
        let said = released.iter().map(|hold| place(&hold.environment, hold.release));
        Ok(format!("{} released", said.collect::<Vec<_>>().join(", ")))
    })
}

/// Agrees that a release enters an environment.
pub(crate) fn approve(flags: &Approve) -> Result<(), Failure> {
    let usage = || Failure::Usage("name one Pipeline: pipeline/NAME".to_owned());
    let name = match select::select(&flags.words)? {
        Selection::Targets(targets) => match targets.as_slice() {
            [target] if target.kind.kind == "Pipeline" => target.name.clone(),
            _ => return Err(usage()),
        },
        Selection::Kinds(_) => return Err(usage()),
    };
    change(&name, &flags.cluster, "approve", |pipeline, myself, decisions| {
        check(pipeline, &flags.env)?;
        let (number, digest) = release_for(pipeline, &flags.env, flags.number)?;
        let is_known =
            |one: &Approval| one.environment == flags.env && one.digest == digest && one.by == myself;
        if decisions.approvals.iter().any(is_known) {
            return Err(Failure::NotReady(format!(
                "{myself} has approved release {number} already"
            )));
        }
        // Those of releases that are gone are not needed any more.
        let releases = pipeline["status"]["releases"].as_array().into_iter().flatten();
        let known: Vec<&str> = releases
            .filter_map(|release| release["digest"].as_str())
            .collect();
        decisions
            .approvals
            .retain(|one| known.contains(&one.digest.as_str()));
        let now = Timestamp::now();
        decisions.approvals.push(Approval {
            environment: flags.env.clone(),
            digest: digest.clone(),
            by: myself.to_owned(),
            at: Some(now.round(jiff::Unit::Second).unwrap_or(now)),
        });
        Ok(format!(
            "release {number} is approved for {} by {myself}",
            flags.env
        ))
    })
}

/// Number and digest of the release that is meant.
fn release_for(pipeline: &Value, environment: &str, number: Option<u64>) -> Result<(u64, String), Failure> {
    let environments = pipeline["status"]["environments"]
        .as_array()
        .into_iter()
        .flatten();
    let mut environments = environments.filter(|one| one["name"] == environment);
    let has = environments.next().and_then(|one| one["release"].as_u64());
    let releases = pipeline["status"]["releases"].as_array().into_iter().flatten();
    let releases = releases.filter_map(|release| {
        let digest = release["digest"].as_str()?.to_owned();
        Some((
            release["number"].as_u64()?,
            digest,
            release["rolledBack"].is_null(),
        ))
    });
    let meant = match number {
        Some(number) => releases.filter(|one| one.0 == number).max(),
        None => releases.filter(|one| one.2 && Some(one.0) > has).max(),
    };
    let missing = || match number {
        Some(number) => format!("there is no release {number}"),
        None => format!("no release is newer than that of {environment}"),
    };
    let (number, digest, _) = meant.ok_or_else(|| Failure::NotReady(missing()))?;
    Ok((number, digest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_release_is_meant_that_the_environment_does_not_have() {
        let pipeline = json!({"status": {
            "releases": [
                {"number": 4, "digest": "d4"},
                {"number": 5, "digest": "d5"},
                {"number": 6, "digest": "d6", "rolledBack": "dev"},
            ],
            "environments": [{"name": "dev", "release": 5}, {"name": "production", "release": 4}, {"name": "new"}],
        }});
        let meant = |environment, number| {
            let found = release_for(&pipeline, environment, number);
            found.map_err(|failure| failure.to_string())
        };
        assert_eq!(meant("production", None), Ok((5, "d5".to_owned())));
        assert_eq!(meant("new", None), Ok((5, "d5".to_owned())));
        assert_eq!(meant("production", Some(4)), Ok((4, "d4".to_owned())));
        assert_eq!(
            meant("dev", None),
            Err("no release is newer than that of dev".to_owned())
        );
        assert_eq!(meant("dev", Some(9)), Err("there is no release 9".to_owned()));
    }
}
