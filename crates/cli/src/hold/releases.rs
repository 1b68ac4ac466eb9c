//! What people decide about releases of a pipeline.

use access_review::{Caller, Reviews};
use api::delivery::Pipeline;
use clap::Args;
use delivery_diff::{Archives, Promoted, Reader, promoted};
use jiff::{SignedDuration, Timestamp};
use manifest::ObjectId;
use promotion::decide::{Decided, Person, Refusal, Wish, decide, meant};
use serde_json::json;

use super::Part;
use crate::cluster::output::Colours;
use crate::cluster::pipeline::{self, PipelineFlags};
use crate::cluster::{self, Cluster, ClusterFlags, Failure, print};
use crate::diff::hunks;

/// Command line of `approve`.
#[derive(Debug, Args)]
pub(crate) struct Approve {
    #[command(flatten)]
    object: PipelineFlags,

    /// Environment that the release may enter
    #[arg(long, value_name = "NAME")]
    env: String,

    /// Number of the release; defaults to the newest that the environment does not have
    #[arg(long = "number", value_name = "N")]
    number: Option<u64>,
}

/// Command line of `promote`.
#[derive(Debug, Args)]
pub(crate) struct Promote {
    #[command(flatten)]
    object: PipelineFlags,

    /// Environment that the release enters
    #[arg(long, value_name = "NAME")]
    env: String,

    /// Number of the release; defaults to the newest that the environment does not have
    #[arg(long = "number", value_name = "N")]
    number: Option<u64>,

    /// Why, for the commit and the events
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    reason: String,

    /// Print what would change in files, and change nothing
    #[arg(long)]
    dry_run: bool,
}

/// Reads a pipeline, has the wish granted, and writes what changed if no one else did in the meantime.
fn grant(name: &str, flags: &ClusterFlags, what: &'static str, wish: &Wish) -> Result<(), Failure> {
    cluster::run(flags, async |cluster| {
        print(&granted(&cluster, name, what, wish).await?)
    })
}

/// Does it, and returns what is said then.
async fn granted(cluster: &Cluster, name: &str, what: &str, wish: &Wish) -> Result<String, Failure> {
    let myself = Reviews::for_self(cluster.client()).myself().await;
    let myself = myself.map_err(|error| Failure::Request {
        what: "ask the API server who you are".to_owned(),
        why: error_chain::condensed(&error),
    })?;
    let now = Timestamp::now();
    let (said, ()) = super::anew(async || {
        let (id, pipeline) = pipeline::read(cluster, name).await?;
        let decided = decided(&pipeline, wish, &myself, now);
        let decided = decided.map_err(|refusal| in_words(&id, &refusal))?;
        let patch = json!({"metadata": {
            // Refused if someone else changed the object since it was read.
            "resourceVersion": pipeline.metadata.resource_version,
            "annotations": decided.annotations,
        }});
        let written = cluster.merge(&id, what, &patch).await;
        Ok((format!("{id}: {}\n", decided.said), written))
    })
    .await?;
    Ok(said)
}

fn decided(pipeline: &Pipeline, wish: &Wish, myself: &Caller, now: Timestamp) -> Result<Decided, Refusal> {
    let person = Person {
        name: &myself.username,
        groups: myself.groups(),
    };
    match decide(pipeline, wish, person, now) {
        // Who may write the pipeline may approve, too.
        Err(Refusal::NeverThere { environment, release }) if matches!(wish, Wish::Promote { .. }) => {
            let release = Some(release);
            let approve = Wish::Approve { environment, release };
            decide(pipeline, &approve, person, now)
        }
        decided => decided,
    }
}

fn in_words(id: &ObjectId, refusal: &Refusal) -> Failure {
    match refusal {
        Refusal::NoEnvironment { .. } => Failure::Usage(refusal.to_string()),
        Refusal::Unreadable(_) => Failure::NotReady(format!("{id}: {refusal}")),
        _ => Failure::NotReady(refusal.to_string()),
    }
}

/// Prints what a wish would change in the files of an environment.
fn dry_run(name: &str, flags: &ClusterFlags, environment: &str, wish: &Wish) -> Result<(), Failure> {
    cluster::run(flags, async |cluster| {
        let (id, pipeline) = pipeline::read(&cluster, name).await?;
        let meant = meant(&pipeline, wish).map_err(|refusal| in_words(&id, &refusal))?;
        let status = pipeline.status.clone().unwrap_or_default();
        let release = status.releases.iter().find(|one| Some(one.number) == meant);
        let mut environments = pipeline.spec.environments.iter();
        let environment = environments.find(|one| one.name == environment);
        let (Some(environment), Some(release)) = (environment, release) else {
            return Err(Failure::NotReady(format!("{id} has no such release any more")));
        };
        let reader = Reader::new(cluster.client());
        let found = promoted(&reader, &Archives::default(), &pipeline, (environment, release)).await;
        print(&shown(
            &environment.name,
            release.number,
            &found,
            Colours::of_terminal(),
        ))?;
        let unknown = found.iter().filter(|one| one.problem.is_some()).count();
        match unknown {
            0 => Ok(()),
            count => Err(Failure::Incomplete(format!(
                "{count} targets could not be looked at; see above for what and why"
            ))),
        }
    })
}

fn shown(environment: &str, release: u64, found: &[Promoted], colours: Colours) -> String {
    let mut text = format!("release {release} in {environment}\n");
    for one in found {
        let said = match (&one.problem, one.files.is_empty()) {
            (Some(problem), _) => problem.clone(),
            (None, true) => format!("no file changes, with {}", one.place),
            (None, false) => format!("with {}", one.place),
        };
        text.push_str(&format!("\n{}: {said}\n", one.target));
        for (path, now, then) in &one.files {
            text.push_str(&format!("--- {path}\n+++ {path}\n{}", hunks(now, then, colours)));
        }
    }
    text
}

/// Holds releases of a pipeline back.
pub(super) fn hold(name: &str, flags: &super::Hold) -> Result<(), Failure> {
    let Part { env, number } = &flags.part;
    let duration = |duration| SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX);
    let wish = Wish::Hold {
        environment: env.clone(),
        release: *number,
        reason: flags.reason.clone(),
        duration: flags.duration.map(duration),
    };
    grant(name, &flags.object.cluster, "hold", &wish)
}

/// Releases what was held back, as far as it is named.
pub(super) fn release(name: &str, flags: &super::Release) -> Result<(), Failure> {
    let Part { env, number } = &flags.part;
    let wish = Wish::Release {
        environment: env.clone(),
        release: *number,
    };
    grant(name, &flags.object.cluster, "release", &wish)
}

/// Agrees that a release enters an environment.
pub(crate) fn approve(flags: &Approve) -> Result<(), Failure> {
    let wish = Wish::Approve {
        environment: flags.env.clone(),
        release: flags.number,
    };
    grant(&flags.object.name()?, &flags.object.cluster, "approve", &wish)
}

/// Has a release enter an environment.
pub(crate) fn promote(flags: &Promote) -> Result<(), Failure> {
    let wish = Wish::Promote {
        environment: flags.env.clone(),
        release: flags.number,
        reason: flags.reason.clone(),
    };
    if flags.dry_run {
        return dry_run(&flags.object.name()?, &flags.object.cluster, &flags.env, &wish);
    }
    grant(&flags.object.name()?, &flags.object.cluster, "promote", &wish)
}

/// Has an environment go back to an older release.
pub(super) fn rollback(name: &str, environment: &str, flags: &super::Rollback) -> Result<(), Failure> {
    let to = flags.to.as_deref().map(str::parse).transpose();
    let to = to.map_err(|_| Failure::Usage("--to: give the number of a release".to_owned()))?;
    let wish = Wish::RollBack {
        environment: environment.to_owned(),
        to,
        reason: flags.reason.clone(),
    };
    if flags.dry_run {
        return dry_run(name, &flags.cluster, environment, &wish);
    }
    grant(name, &flags.cluster, "rollback", &wish)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use serde_json::Value;

    use super::*;
    use crate::stand_in;

    /// A pipeline that changes each time it is read, and is refused so often.
    async fn held(refusals: usize, holds: fn(usize) -> Value) -> (Result<String, Failure>, usize) {
        let (reads, patches) = (Cell::new(0), Cell::new(0));
        let (address, asked) = stand_in::serve(move |request| {
            let told = |status, body: Value| (status, String::new(), body.to_string());
            match request.what.split(' ').next() {
                Some("POST") => {
                    let user = json!({"userInfo": {"username": "ana"}});
                    let kind = "SelfSubjectReview";
                    told(
                        201,
                        json!({"apiVersion": "authentication.k8s.io/v1", "kind": kind, "metadata": {}, "status": user}),
                    )
                }
                Some("PATCH") if patches.replace(patches.get() + 1) < refusals => {
                    let why = "the object has been modified";
                    told(
                        409,
                        json!({"kind": "Status", "status": "Failure", "message": why, "reason": "Conflict", "code": 409}),
                    )
                }
                _ => {
                    reads.set(reads.get() + 1);
                    let mut pipeline = holds(reads.get());
                    pipeline["metadata"]["resourceVersion"] = reads.get().to_string().into();
                    told(200, pipeline)
                }
            }
        });
        let wish = Wish::Hold {
            environment: Some("production".to_owned()),
            release: None,
            reason: "wait".to_owned(),
            duration: None,
        };
        let said = granted(&Cluster::at(&address), "shop", "hold", &wish).await;
        let asked = asked.lock().unwrap();
        let patches = asked.iter().filter(|request| request.what.starts_with("PATCH"));
        (said, patches.count())
    }

    fn pipeline(_: usize) -> Value {
        json!({
            "apiVersion": "delivery.windlass.dev/v1alpha1", "kind": "Pipeline", "metadata": {"name": "shop", "namespace": "flux-system"},
            "spec": {"apps": [], "environments": [{"name": "production", "targets": []}]},
        })
    }

    #[tokio::test]
    async fn a_wish_outlasts_changes_of_the_status() {
        let (said, patches) = held(3, pipeline).await;
        assert!(said.unwrap().starts_with("Pipeline/flux-system/shop: "));
        assert_eq!(patches, 4);
        let (said, patches) = held(usize::MAX, pipeline).await;
        assert!(matches!(said, Err(Failure::Conflict { .. })));
        assert_eq!(patches, crate::hold::TRIES);
    }

    #[tokio::test]
    async fn a_wish_that_means_something_else_now_is_not_granted() {
        let (said, patches) = held(1, |read| {
            let mut pipeline = pipeline(read);
            if read > 1 {
                pipeline["spec"]["environments"][0]["name"] = "other".into();
            }
            pipeline
        })
        .await;
        assert!(said.is_err());
        assert_eq!(patches, 1);
    }
}
