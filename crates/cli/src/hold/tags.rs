//! Tags that an image policy passes over.

use delivery_graph::kind;
use delivery_graph::object::{self, text};
use image_policy::hold::{self, Holds};
use jiff::Timestamp;
use manifest::ObjectId;
use serde_json::{Value, json};

use crate::cluster::{self, Cluster, ClusterFlags, Failure, print};

/// Reads a policy, changes its holds, and writes them if no one else did in the meantime.
fn change(
    name: &str,
    flags: &ClusterFlags,
    what: &'static str,
    change: impl Fn(&Value, &mut Holds) -> Result<String, Failure>,
) -> Result<(), Failure> {
    cluster::run(flags, async |cluster| {
        let kind = kind::exact("ImagePolicy");
        let kind = kind.ok_or_else(|| Failure::Usage("ImagePolicy is no known kind".to_owned()))?;
        let id = kind.id(&cluster.namespace, name);
        let (done, ()) = super::anew(async || {
            let policy = cluster.need(&id).await?;
            let annotations = policy.pointer("/metadata/annotations");
            let annotation = annotations.and_then(|all| all.get(hold::ANNOTATION)?.as_str());
            let holds = Holds::parse(annotation);
            let mut holds = holds.map_err(|error| Failure::NotReady(format!("{id}: {error}")))?;
            let done = change(&policy, &mut holds)?;
            Ok((done, write(&cluster, &id, what, &policy, &holds).await))
        })
        .await?;
        print(&format!("{id}: {done}\n"))
    })
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

/// Holds a tag of a policy back.
pub(super) fn hold(name: &str, flags: &super::Hold) -> Result<(), Failure> {
    change(name, &flags.object.cluster, "hold a tag of", |policy, holds| {
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

/// Releases tags of a policy.
pub(super) fn release(name: &str, flags: &super::Release) -> Result<(), Failure> {
    change(name, &flags.object.cluster, "release a tag of", |_, holds| {
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
