//! Steps that chapters share.

use kube::ResourceExt;
use kube::api::DynamicObject;
use testkit::objects::{condition, field, is_ready, text};

use crate::demo::witness::{Expectation, Known, expect};
use crate::demo::world::short;

/// The time limit of each chapter: far above the seconds that it takes on a busy machine.
pub(super) const LIMIT: std::time::Duration = std::time::Duration::from_secs(90);

/// A source has stored `revision`.
pub(super) fn fetched(subject: &'static str, revision: String) -> Expectation {
    expect(subject, "fetched", move |known| {
        let source = known.get(subject)?;
        let stored = text(source, "/status/artifact/revision") == revision && is_ready(source);
        let digest = text(source, "/status/artifact/digest");
        stored.then(|| format!("{}, archive {}", short(&revision), short(digest)))
    })
}

/// A Kustomization is Ready at `revision`.
pub(super) fn ready(subject: &'static str, revision: String) -> Expectation {
    expect(subject, "ready", move |known| {
        let kustomization = known.get(subject)?;
        let applied = text(kustomization, "/status/lastAppliedRevision") == revision;
        (applied && is_ready(kustomization)).then(|| format!("at {}", short(&revision)))
    })
}

/// All pods of a Deployment are updated and available, and its image is `image`.
pub(super) fn available(subject: &'static str, image: &'static str) -> Expectation {
    expect(subject, "available", move |known| {
        let deployment = known.get(subject)?;
        let wanted = field(deployment, "/spec/replicas")?.as_i64()?;
        let count =
            |name: &str| field(deployment, &format!("/status/{name}")).and_then(serde_json::Value::as_i64);
        let observed = count("observedGeneration") == deployment.metadata.generation;
        let all = ["replicas", "updatedReplicas", "availableReplicas"]
            .iter()
            .all(|name| count(name) == Some(wanted));
        let told = condition(deployment, "Available").is_some_and(|(status, ..)| status == "True");
        (image_of(deployment) == image && observed && all && told)
            .then(|| format!("{wanted} of {wanted} pods run {image}"))
    })
}

pub(super) fn image_of(deployment: &DynamicObject) -> &str {
    text(deployment, "/spec/template/spec/containers/0/image")
}

/// All of `names` (`Kind/name`) exist, and are labelled as those of the Kustomization `owner`.
pub(super) fn all_managed(known: &Known, names: &[&str], owner: &str) -> Option<String> {
    let managed = |name: &&str| {
        let labels = known.get(name).map(ResourceExt::labels);
        labels
            .and_then(|labels| labels.get("kustomize.toolkit.fluxcd.io/name"))
            .is_some_and(|name| name == owner)
    };
    names.iter().all(managed).then(|| names.join(", "))
}
