//! What people decide about releases of a pipeline.

use access_review::Reviews;
use clap::Args;
use delivery_diff::{Archives, Promoted, Reader, promoted};
use jiff::{SignedDuration, Timestamp};
use manifest::ObjectId;
use promotion::decide::{Person, Refusal, Wish, decide, meant};
use serde_json::json;

use super::Part;
use crate::cluster::output::Colours;
use crate::cluster::pipeline::{self, PipelineFlags};
use crate::cluster::{self, ClusterFlags, Failure, print};
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
        let (id, pipeline) = pipeline::read(&cluster, name).await?;
        let myself = Reviews::for_self(cluster.client()).myself().await;
        let myself = myself.map_err(|error| Failure::Request {
            what: "ask the API server who you are".to_owned(),
            why: error_chain::condensed(&error),
        })?;
        let now = Timestamp::now();
        let person = Person {
            name: &myself.username,
            groups: myself.groups(),
        };
        let decided = match decide(&pipeline, wish, person, now) {
            // Who may write the pipeline may approve, too.
            Err(Refusal::NeverThere { environment, release }) if matches!(wish, Wish::Promote { .. }) => {
                let release = Some(release);
                let approve = Wish::Approve { environment, release };
                decide(&pipeline, &approve, person, now)
            }
            decided => decided,
        };
        let decided = decided.map_err(|refusal| refused(&id, &refusal))?;
        let patch = json!({"metadata": {
            // Refused if someone else changed the object since it was read.
            "resourceVersion": pipeline.metadata.resource_version,
            "annotations": decided.annotations,
        }});
        cluster.merge(&id, what, &patch).await?;
        print(&format!("{id}: {}\n", decided.said))
    })
}

fn refused(id: &ObjectId, refusal: &Refusal) -> Failure {
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
        let meant = meant(&pipeline, wish).map_err(|refusal| refused(&id, &refusal))?;
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
