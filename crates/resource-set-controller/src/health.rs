//! What is waited for: objects of a ResourceSet, as they were applied.

use std::collections::HashSet;

use kube_health::Target;
use manifest::ObjectId;
use serde_json::Value;

/// An object to wait for, with what is known of it.
pub(crate) fn target(id: ObjectId, version: String, live: Option<Value>) -> Target {
    let metadata = live.as_ref().map(|live| &live["metadata"]);
    Target {
        minimum_generation: metadata.and_then(|metadata| metadata["generation"].as_i64()),
        uid: metadata
            .and_then(|metadata| metadata["uid"].as_str())
            .map(str::to_owned),
        id,
        version,
        labelled: true,
        initial: live,
    }
}

/// Jobs that go by themselves when they have ended.
pub(crate) fn jobs_with_ttl(objects: &[Target]) -> HashSet<ObjectId> {
    let jobs = objects.iter().filter(|target| {
        let job = target.initial.as_ref();
        target.id.kind == "Job" && job.is_some_and(|job| !job["spec"]["ttlSecondsAfterFinished"].is_null())
    });
    jobs.map(|target| target.id.clone()).collect()
}
