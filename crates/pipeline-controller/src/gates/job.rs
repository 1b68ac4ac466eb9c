//! Gates that are Jobs: one for each release and environment, made as the pipeline's ServiceAccount.

use api::delivery::{Gate, GateJob, Pipeline, Release};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams, LogParams, PostParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::said;

/// What the Jobs of one gate have in common, and what their Pods are told.
const PREFIX: &str = "delivery.windlass.dev";
/// Bytes of the part of a name that people read: a Job's name becomes a label.
const MAX_NAME: usize = 45;
/// Hexadecimal digits of the part that makes it one.
const DIGITS: usize = 10;
/// Lines and bytes of a log that are read, and characters that are shown.
const LOG_LINES: i64 = 5;
const LOG_BYTES: i64 = 4096;
const MAX_LOG: usize = 160;
/// Characters of what the API server says of a Job.
const MAX_PROBLEM: usize = 80;

/// Returns why the Job of a release has not succeeded, and makes it if it is not there.
pub(super) async fn run(
    job: &GateJob,
    gate: &Gate,
    pipeline: &Pipeline,
    (environment, release): (&str, &Release),
    client: Client,
) -> Result<(), String> {
    let name = name(job, gate, pipeline, environment, release);
    let api: Api<Job> = Api::namespaced(client, &pipeline.namespace().unwrap_or_default());
    if let Some(found) = api.get_opt(&name).await.map_err(said)? {
        return match outcome(&found, pipeline) {
            Ok(()) => Ok(()),
            Err(NotYet::Failed(problem)) => Err(failed(&name, &problem, api).await),
            Err(NotYet::Other(problem)) => Err(problem),
        };
    }
    let labels = labels(gate, pipeline, environment);
    let selector: Vec<String> = labels
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    let older = ListParams::default().labels(&selector.join(","));
    // Those of earlier releases. Where the account may not delete them, they stay.
    if let Err(error) = api.delete_collection(&DeleteParams::background(), &older).await {
        tracing::debug!(%error, job = name, "earlier Jobs of a gate stay");
    }
    let made = made(&name, job, pipeline, (environment, release), &labels)?;
    api.create(&PostParams::default(), &made).await.map_err(said)?;
    Err(format!("Job/{name} was made"))
}

/// Why a Job has not succeeded.
#[derive(Debug, PartialEq, Eq)]
enum NotYet {
    /// It has failed, and what the API server says of it.
    Failed(String),
    /// It has not ended, or is not the pipeline's.
    Other(String),
}

/// How a Job is: succeeded, or why not yet, or never.
fn outcome(job: &Job, pipeline: &Pipeline) -> Result<(), NotYet> {
    let name = job.name_any();
    let is_ours = job
        .owner_references()
        .iter()
        .any(|owner| Some(&owner.uid) == pipeline.metadata.uid.as_ref());
    if !is_ours {
        let problem = format!("Job/{name} is not one of this pipeline: delete it");
        return Err(NotYet::Other(problem));
    }
    let conditions = job
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten());
    let mut conditions = conditions.filter(|condition| condition.status == "True");
    let ended = conditions.find(|condition| matches!(condition.type_.as_str(), "Complete" | "Failed"));
    match ended {
        Some(ended) if ended.type_ == "Complete" => Ok(()),
        Some(ended) => Err(NotYet::Failed(ended.message.clone().unwrap_or_default())),
        None => Err(NotYet::Other(format!("Job/{name} runs"))),
    }
}

/// What people need to know of a Job that failed.
async fn failed(name: &str, problem: &str, jobs: Api<Job>) -> String {
    let problem: String = problem.trim_end_matches('.').chars().take(MAX_PROBLEM).collect();
    let log = match log(name, jobs).await {
        Some(log) => format!("; its log ends with: {log}"),
        None => String::new(),
    };
    format!("Job/{name} failed: {problem}; delete it to have it run again{log}")
}

/// The end of the log of the newest Pod of a Job, in one line, if the account may read it.
async fn log(name: &str, jobs: Api<Job>) -> Option<String> {
    let namespace = jobs.namespace()?.to_owned();
    let pods: Api<Pod> = Api::namespaced(jobs.into_client(), &namespace);
    let of_job = ListParams::default().labels(&format!("batch.kubernetes.io/job-name={name}"));
    let found = match pods.list(&of_job).await {
        Ok(found) => found.items,
        Err(error) => {
            tracing::debug!(%error, job = name, "the log of a Job is not read");
            return None;
        }
    };
    let pod = found.into_iter().max_by_key(Pod::creation_timestamp)?;
    let containers = pod.spec.as_ref()?.containers.iter();
    let parameters = LogParams {
        container: containers.map(|one| one.name.clone()).next(),
        tail_lines: Some(LOG_LINES),
        limit_bytes: Some(LOG_BYTES),
        ..LogParams::default()
    };
    let text = pods.logs(&pod.name_any(), &parameters).await.ok()?;
    let line = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let line = line.collect::<Vec<_>>().join(" | ");
    // The end says most.
    let cut = line.char_indices().rev().nth(MAX_LOG).map_or(0, |(at, _)| at);
    Some(line[cut..].to_owned()).filter(|line| !line.is_empty())
}

/// The same for the same Job and release, and another one once either changes.
fn name(job: &GateJob, gate: &Gate, pipeline: &Pipeline, environment: &str, release: &Release) -> String {
    let mut digest = Sha256::new();
    let spec = Value::Object(job.spec.clone()).to_string();
    let uid = pipeline.uid().unwrap_or_default();
    for part in [uid.as_str(), environment, &gate.name, &release.digest, &spec] {
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part);
    }
    let digest = hex::encode(digest.finalize());
    let readable = format!("{}-{environment}-{}", pipeline.name_any(), gate.name);
    // The name of a gate may have any letters.
    let plain = readable.chars().map(|c| {
        if c.is_ascii_alphanumeric() {
            c.to_ascii_lowercase()
        } else {
            '-'
        }
    });
    let plain: String = plain.take(MAX_NAME).collect();
    format!("{}-{}", plain.trim_matches('-'), &digest[..DIGITS])
}

fn labels(gate: &Gate, pipeline: &Pipeline, environment: &str) -> Vec<(String, String)> {
    let digest = Sha256::digest(format!("{environment}/{}", gate.name));
    vec![
        (format!("{PREFIX}/pipeline"), pipeline.uid().unwrap_or_default()),
        (format!("{PREFIX}/gate"), hex::encode(&digest[..DIGITS])),
    ]
}

fn made(
    name: &str,
    job: &GateJob,
    pipeline: &Pipeline,
    (environment, release): (&str, &Release),
    labels: &[(String, String)],
) -> Result<Job, String> {
    let mut spec = Value::Object(job.spec.clone());
    let values = json!(release.values).to_string();
    let told = [
        ("release", release.number.to_string()),
        ("digest", release.digest.clone()),
        ("values", values),
        ("environment", environment.to_owned()),
    ];
    let annotations = annotations(&mut spec);
    let annotations = annotations.ok_or("job.spec.template.metadata.annotations is no object")?;
    for (key, value) in told {
        annotations.insert(format!("{PREFIX}/{key}"), value.into());
    }
    let owner = json!({
        "apiVersion": format!("{PREFIX}/v1alpha1"), "kind": "Pipeline",
        "name": pipeline.name_any(), "uid": pipeline.uid().unwrap_or_default(),
    });
    let labels: serde_json::Map<String, Value> = labels
        .iter()
        .map(|(key, value)| (key.clone(), json!(value)))
        .collect();
    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": name, "labels": labels, "ownerReferences": [owner]},
        "spec": spec,
    });
    serde_json::from_value(job).map_err(|error| format!("job.spec: {error}"))
}

/// The annotations of the Pods of a Job, made if they are not there; None if something else is.
fn annotations(spec: &mut Value) -> Option<&mut serde_json::Map<String, Value>> {
    let mut at = spec;
    for key in ["template", "metadata", "annotations"] {
        at = at.as_object_mut()?.entry(key).or_insert_with(|| json!({}));
    }
    at.as_object_mut()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pipeline() -> Pipeline {
        serde_json::from_value(json!({
            "apiVersion": "delivery.windlass.dev/v1alpha1", "kind": "Pipeline",
            "metadata": {"name": "shop", "namespace": "team", "uid": "u"},
            "spec": {"apps": [], "environments": []},
        }))
        .unwrap()
    }

    fn job(spec: Value) -> GateJob {
        serde_json::from_value(json!({"spec": spec})).unwrap()
    }

    #[test]
    fn a_job_is_of_a_release_and_of_what_it_does() {
        let gate = Gate {
            name: "End to End!".to_owned(),
            ..Gate::default()
        };
        let release = |digest: &str| Release {
            digest: digest.to_owned(),
            ..Release::default()
        };
        let named =
            |spec: Value, digest: &str| name(&job(spec), &gate, &pipeline(), "prod", &release(digest));
        let first = named(json!({}), "a");
        assert!(first.starts_with("shop-prod-end-to-end-"), "{first}");
        assert_eq!(first, named(json!({}), "a"));
        assert_ne!(first, named(json!({}), "b"));
        assert_ne!(first, named(json!({"backoffLimit": 0}), "a"));
        let long = Gate {
            name: "x".repeat(63),
            ..Gate::default()
        };
        let long = name(
            &job(json!({})),
            &long,
            &pipeline(),
            &"e".repeat(63),
            &release("a"),
        );
        assert!(long.len() <= 63, "{long}");
    }

    #[test]
    fn pods_are_told_the_release_and_hostile_specs_are_refused() {
        let made = |spec: Value| made("x", &job(spec), &pipeline(), ("prod", &Release::default()), &[]);
        let spec = json!({"template": {"spec": {"containers": [], "restartPolicy": "Never"}}});
        let template = made(spec).unwrap().spec.unwrap().template;
        let annotations = template.metadata.unwrap().annotations.unwrap();
        assert_eq!(annotations["delivery.windlass.dev/environment"], "prod");
        for spec in [
            json!({"template": {"metadata": {"annotations": []}}}),
            json!({"template": "x"}),
            json!({"template": {"spec": {"containers": "none"}}}),
        ] {
            assert!(made(spec).is_err());
        }
    }

    #[test]
    fn a_job_of_someone_else_opens_no_gate() {
        let done = json!({"metadata": {"name": "x"},
            "status": {"conditions": [{"type": "Complete", "status": "True"}]}});
        let mut done: Job = serde_json::from_value(done).unwrap();
        assert!(
            matches!(outcome(&done, &pipeline()), Err(NotYet::Other(text)) if text.contains("is not one of this pipeline"))
        );
        let owner = json!([{"apiVersion": "v", "kind": "Pipeline", "name": "shop", "uid": "u"}]);
        done.metadata.owner_references = serde_json::from_value(owner).unwrap();
        assert_eq!(outcome(&done, &pipeline()), Ok(()));
    }
}
