//! Tests that are Jobs, made as the account of the ResourceSet: the end of the Job is the result.

use std::time::Duration;

use api::flux_operator::{AnyMap, ResourceSetSpec};
use k8s_openapi::api::batch::v1::Job;
use kube::api::PostParams;
use kube::{Api, ResourceExt as _};
use kube_health::{Checks, WaitRequest};
use manifest::ObjectId;
use serde_json::{Map, Value, json};

use super::{Found, Test, said};
use crate::health;

/// How long a Job stays when it has ended, if its spec does not say: logs are read, and others must not pile up.
const STAYS: u64 = 3600;
/// Label of the Jobs of a policy.
const LABEL: &str = "delivery.windlass.dev/environment-policy";

impl Test {
    /// Makes the Job, and waits for its end.
    pub(super) async fn run_job(&self, job_spec: &Map<String, Value>, namespace: String) -> Found {
        let timeout = self.timeout();
        let (spec, inputs, to) = (job_spec.clone(), self.inputs.clone(), namespace.clone());
        let (policy, number) = (self.policy.name.clone(), self.request.number);
        let job = tokio::task::spawn_blocking(move || job(&spec, &inputs, (&policy, number), &to, timeout));
        let job = job.await.map_err(|_| "the Job was not rendered".to_owned())??;
        let jobs: Api<Job> = Api::namespaced(self.target.client.clone(), &namespace);
        let made = jobs.create(&PostParams::default(), &job).await;
        let made = made.map_err(|error| format!("the Job was not made: {}", said(&error)))?;
        let id = ObjectId {
            group: "batch".to_owned(),
            kind: "Job".to_owned(),
            namespace,
            name: made.name_any(),
        };
        let live = serde_json::to_value(&made).ok();
        let object = kube_health::Target {
            labelled: false,
            ..health::target(id, "v1".to_owned(), live)
        };
        let request = WaitRequest {
            objects: vec![object],
            timeout,
            fail_fast: true,
            checks: Checks::default(),
            ..WaitRequest::default()
        };
        let outcome = self.target.hub.wait(request).await;
        if let Some(report) = outcome.report() {
            return Err(report.to_string());
        }
        // One of the same name that someone else made in its place says nothing.
        let ended = jobs.get(&made.name_any()).await;
        let ended = ended.map_err(|error| format!("the Job is gone: {}", said(&error)))?;
        match ended.uid() == made.uid() {
            true => Ok(()),
            false => Err("someone made the Job again".to_owned()),
        }
    }
}

/// Renders the Job.
fn job(
    spec: &Map<String, Value>,
    inputs: &AnyMap,
    (policy, number): (&str, u64),
    namespace: &str,
    timeout: Duration,
) -> Result<Job, String> {
    let Value::Object(template) = json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": "test"}, "spec": spec,
    }) else {
        return Err("spec.test.jobSpec is no object".to_owned());
    };
    let set = ResourceSetSpec {
        resources: vec![template],
        ..ResourceSetSpec::default()
    };
    let rendered = resource_set::render(&set, std::slice::from_ref(inputs), "");
    let steps = rendered.map_err(|error| format!("spec.test.jobSpec: {error}"))?;
    let object = steps.iter().flat_map(|step| &step.objects).next();
    let object = object.ok_or("spec.test.jobSpec makes no Job")?;
    let mut spec = object.value().get("spec").cloned().unwrap_or_default();
    let entries = spec.as_object_mut().ok_or("spec.test.jobSpec is no object")?;
    entries.entry("ttlSecondsAfterFinished").or_insert(STAYS.into());
    let deadline = timeout.as_secs().max(1);
    entries.entry("activeDeadlineSeconds").or_insert(deadline.into());
    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {
            "generateName": format!("test-{number}-"), "namespace": namespace, "labels": {LABEL: policy},
        },
        "spec": spec,
    });
    serde_json::from_value(job).map_err(|error| format!("spec.test.jobSpec: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(spec: Value) -> Result<Job, String> {
        let spec = serde_json::from_value(spec).unwrap();
        let inputs = serde_json::from_value(json!({"id": "7", "host": "h"})).unwrap();
        job(
            &spec,
            &inputs,
            ("environments", 7),
            "shop-pr-7",
            Duration::from_secs(90),
        )
    }

    #[test]
    fn a_job_is_rendered_with_the_inputs() {
        let spec = json!({"template": {"spec": {
            "containers": [{"name": "test", "image": "test", "args": ["https://<< inputs.host >>"]}], "restartPolicy": "Never",
        }}});
        let job = made(spec).unwrap();
        assert_eq!(job.namespace().as_deref(), Some("shop-pr-7"));
        assert_eq!(job.metadata.generate_name.as_deref(), Some("test-7-"));
        let spec = job.spec.unwrap();
        assert_eq!(
            (spec.active_deadline_seconds, spec.ttl_seconds_after_finished),
            (Some(90), Some(3600))
        );
        let container = &spec.template.spec.unwrap().containers[0];
        assert_eq!(container.args.as_deref(), Some(&["https://h".to_owned()][..]));
    }

    #[test]
    fn a_job_has_its_form() {
        assert!(made(json!({"template": "x"})).is_err());
        let missing = json!({"template": "<< inputs.nothing >>"});
        assert!(made(missing).unwrap_err().starts_with("spec.test.jobSpec: "));
    }
}
