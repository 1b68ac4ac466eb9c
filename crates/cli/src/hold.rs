//! `windlass hold` and `windlass release`: tags that an image policy passes over.

use clap::Args;
use delivery_graph::kind;
use delivery_graph::object::{self, text};
use image_policy::hold::{self, Holds};
use jiff::Timestamp;
use manifest::ObjectId;
use serde_json::{Value, json};

use crate::cluster::select::Selection;
use crate::cluster::{self, Cluster, ClusterFlags, Failure, print, select};

/// Command line of `hold`.
#[derive(Debug, Args)]
pub(crate) struct Hold {
    #[command(flatten)]
    policy: Policy,

    /// Tag to hold back; defaults to the chosen one
    #[arg(long, value_name = "TAG")]
    tag: Option<String>,

    /// Why it is held back, for the status and for `why`
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

/// Command line of `release`.
#[derive(Debug, Args)]
pub(crate) struct Release {
    #[command(flatten)]
    policy: Policy,

    /// Tag to release; defaults to all that are held
    #[arg(long, value_name = "TAG")]
    tag: Option<String>,
}

#[derive(Debug, Args)]
struct Policy {
    /// imagepolicy/NAME or imagepolicy NAME
    #[arg(value_name = "OBJECT", required = true)]
    words: Vec<String>,

    #[command(flatten)]
    cluster: ClusterFlags,
}

impl Policy {
    fn name(&self) -> Result<String, Failure> {
        let usage = || Failure::Usage("name one ImagePolicy: imagepolicy/NAME".to_owned());
        match select::select(&self.words)? {
            Selection::Targets(targets) => match targets.as_slice() {
                [target] if target.kind.kind == "ImagePolicy" => Ok(target.name.clone()),
                _ => Err(usage()),
            },
            Selection::Kinds(_) => Err(usage()),
        }
    }

    /// Reads the policy, changes its holds, and writes them if no one else did in the meantime.
    fn change(
        &self,
        what: &'static str,
        change: impl FnOnce(&Value, &mut Holds) -> Result<String, Failure>,
    ) -> Result<(), Failure> {
        let name = self.name()?;
        cluster::run(&self.cluster, async |cluster| {
            let kind = kind::exact("ImagePolicy");
            let kind = kind.ok_or_else(|| Failure::Usage("ImagePolicy is no known kind".to_owned()))?;
            let id = kind.id(&cluster.namespace, &name);
            let policy = cluster.need(&id).await?;
            let annotations = policy.pointer("/metadata/annotations");
            let annotation = annotations.and_then(|all| all.get(hold::ANNOTATION)?.as_str());
            let holds = Holds::parse(annotation);
            let mut holds = holds.map_err(|error| Failure::NotReady(format!("{id}: {error}")))?;
            let done = change(&policy, &mut holds)?;
            write(&cluster, &id, what, &policy, &holds).await?;
            print(&format!("{id}: {done}\n"))
        })
    }
}

async fn write(
    cluster: &Cluster,
    id: &ObjectId,
    what: &str,
    policy: &Value,
    holds: &Holds,
) -> Result<(), Failure> {
    let patch = json!({"metadata": {
        // Refused if someone else changed the object since it was read.
        "resourceVersion": text(policy, "/metadata/resourceVersion"),
        "annotations": {hold::ANNOTATION: holds.annotation()},
    }});
    cluster.merge(id, what, &patch).await
}

/// Holds a tag back.
pub(crate) fn hold(flags: &Hold) -> Result<(), Failure> {
    flags.policy.change("hold a tag of", |policy, holds| {
        let chosen = text(policy, "/status/latestRef/tag");
        let tag = flags.tag.as_deref().unwrap_or(chosen).to_owned();
        if tag.is_empty() {
            let id = object::id(policy);
            return Err(Failure::Usage(format!(
                "{id} has chosen no tag yet: give one with --tag"
            )));
        }
        let held = hold::Hold {
            tag: tag.clone(),
            reason: flags.reason.clone(),
            since: now(),
            ..hold::Hold::default()
        };
        holds
            .add(held)
            .map_err(|error| Failure::Usage(error.to_string()))?;
        Ok(format!("{tag} is held back"))
    })
}

/// Releases tags.
pub(crate) fn release(flags: &Release) -> Result<(), Failure> {
    flags.policy.change("release a tag of", |_, holds| {
        let released = holds.release(flags.tag.as_deref());
        let names: Vec<&str> = released.iter().map(|hold| hold.tag.as_str()).collect();
        match (names.is_empty(), &flags.tag) {
            (false, _) => Ok(format!("{} released", names.join(", "))),
            (true, Some(tag)) => Err(Failure::NotReady(format!("{tag} is not held back"))),
            (true, None) => Err(Failure::NotReady("no tag is held back".to_owned())),
        }
    })
}

fn now() -> String {
    let now = Timestamp::now();
    now.round(jiff::Unit::Second).unwrap_or(now).to_string()
}
