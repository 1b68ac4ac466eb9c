//! `windlass hold`, `windlass release` and `windlass rollback`: tags that an image policy passes over, releases that a pipeline does not promote,
//! Kustomizations and HelmReleases that get nothing new, and revisions that a Kustomization was rolled back from.

mod apps;
mod back;
mod in_git;
mod releases;
mod tags;

use clap::Args;
use delivery_graph::kind::Kind;

use crate::cluster::select::Selection;
use crate::cluster::{self, ClusterFlags, Failure, select};

pub(crate) use back::{Rollback, rollback};
pub(crate) use releases::{Approve, Promote, approve, promote};

/// Command line of `hold`.
#[derive(Debug, Args)]
pub(crate) struct Hold {
    #[command(flatten)]
    object: Object,

    /// Tag to hold back; defaults to the chosen one
    #[arg(long, value_name = "TAG")]
    tag: Option<String>,

    #[command(flatten)]
    part: Part,

    /// How long it is held, e.g. 12h; defaults to until it is released. Not for image policies
    #[arg(long = "for", value_name = "DURATION", value_parser = cluster::parse_timeout)]
    duration: Option<std::time::Duration>,

    /// Why it is held back, for the status and for `why`
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

/// Command line of `release`.
#[derive(Debug, Args)]
pub(crate) struct Release {
    #[command(flatten)]
    object: Object,

    /// Tag to release; defaults to all that are held
    #[arg(long, value_name = "TAG")]
    tag: Option<String>,

    #[command(flatten)]
    part: Part,
}

#[derive(Debug, Args)]
struct Object {
    /// imagepolicy/NAME, pipeline/NAME, kustomization/NAME or helmrelease/NAME
    #[arg(value_name = "OBJECT", required = true)]
    words: Vec<String>,

    #[command(flatten)]
    cluster: ClusterFlags,
}

/// Part of a pipeline.
#[derive(Debug, Args)]
struct Part {
    /// Environment of a pipeline; defaults to all
    #[arg(long, value_name = "NAME")]
    env: Option<String>,

    /// Number of a release of a pipeline; defaults to all
    #[arg(long = "number", value_name = "N")]
    number: Option<u64>,
}

enum Named {
    Policy(String),
    Pipeline(String),
    App(&'static Kind, String),
}

impl Object {
    fn named(&self) -> Result<Named, Failure> {
        let usage = || {
            let text =
                "name one object: imagepolicy/NAME, pipeline/NAME, kustomization/NAME or helmrelease/NAME";
            Failure::Usage(text.to_owned())
        };
        match select::select(&self.words)? {
            Selection::Targets(targets) => match targets.as_slice() {
                [target] if target.kind.kind == "ImagePolicy" => Ok(Named::Policy(target.name.clone())),
                [target] if target.kind.kind == "Pipeline" => Ok(Named::Pipeline(target.name.clone())),
                [target] if ["Kustomization", "HelmRelease"].contains(&target.kind.kind) => {
                    Ok(Named::App(target.kind, target.name.clone()))
                }
                _ => Err(usage()),
            },
            Selection::Kinds(_) => Err(usage()),
        }
    }
}

/// Holds a tag or a release back.
pub(crate) fn hold(flags: &Hold) -> Result<(), Failure> {
    let misplaced = |flag: &str, kind: &str| Failure::Usage(format!("{flag} is for {kind}"));
    match flags.object.named()? {
        Named::Policy(_) if flags.part.env.is_some() => Err(misplaced("--env", "pipelines")),
        Named::Policy(_) if flags.part.number.is_some() => Err(misplaced("--number", "pipelines")),
        Named::Policy(_) if flags.duration.is_some() => {
            Err(Failure::Usage("--for is not for image policies".to_owned()))
        }
        Named::Policy(name) => tags::hold(&name, flags),
        Named::Pipeline(_) if flags.tag.is_some() => Err(misplaced("--tag", "image policies")),
        Named::Pipeline(name) => releases::hold(&name, flags),
        Named::App(..) if flags.tag.is_some() => Err(misplaced("--tag", "image policies")),
        Named::App(..) if flags.part.env.is_some() => Err(misplaced("--env", "pipelines")),
        Named::App(..) if flags.part.number.is_some() => Err(misplaced("--number", "pipelines")),
        Named::App(kind, name) => apps::hold(kind, &name, flags),
    }
}

/// Releases what was held back.
pub(crate) fn release(flags: &Release) -> Result<(), Failure> {
    let misplaced = |flag: &str, kind: &str| Failure::Usage(format!("{flag} is for {kind}"));
    match flags.object.named()? {
        Named::Policy(_) if flags.part.env.is_some() => Err(misplaced("--env", "pipelines")),
        Named::Policy(_) if flags.part.number.is_some() => Err(misplaced("--number", "pipelines")),
        Named::Policy(name) => tags::release(&name, flags),
        Named::Pipeline(_) if flags.tag.is_some() => Err(misplaced("--tag", "image policies")),
        Named::Pipeline(name) => releases::release(&name, flags),
        Named::App(..) if flags.tag.is_some() => Err(misplaced("--tag", "image policies")),
        Named::App(..) if flags.part.env.is_some() => Err(misplaced("--env", "pipelines")),
        Named::App(..) if flags.part.number.is_some() => Err(misplaced("--number", "pipelines")),
        Named::App(kind, name) => apps::release(kind, &name, flags),
    }
}

/// How often something is tried that came together with a change of its object.
const TRIES: usize = 10;

/// Reads an object, and changes it if no one else did in the meantime. The controller writes the status often: as long as what is done
/// means the same in words, it is tried again.
async fn anew<T>(
    attempt: impl AsyncFn() -> Result<(String, Result<T, Failure>), Failure>,
) -> Result<(String, T), Failure> {
    let mut refused: Option<(String, Failure)> = None;
    for _ in 0..TRIES {
        let (meant, written) = attempt().await?;
        match refused {
            Some((before, failure)) if before != meant => return Err(failure),
            _ => {}
        }
        match written {
            Err(failure @ Failure::Conflict { .. }) => refused = Some((meant, failure)),
            written => return written.map(|done| (meant, done)),
        }
    }
    let refused = refused.map(|(_, failure)| failure);
    // There was a first time.
    Err(refused.unwrap_or_else(|| Failure::NotReady("it changes all the time".to_owned())))
}
