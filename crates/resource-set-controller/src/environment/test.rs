//! Tests of environments: a Job for each commit, made as the account of the ResourceSet, whose end is the result.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use api::delivery::EnvironmentTest;
use api::flux_operator::{AnyMap, ResourceSetSpec};
use cluster_access::targets::Target;
use k8s_openapi::api::batch::v1::Job;
use kube::api::PostParams;
use kube::{Api, ResourceExt as _};
use kube_health::{Checks, WaitRequest};
use manifest::ObjectId;
use serde_json::{Value, json};

use super::health::Found;
use crate::health;

/// How long a Job may take, if the spec does not say.
const TIMEOUT: Duration = Duration::from_mins(30);
/// How long a Job stays when it has ended, if its spec does not say: logs are read, and others must not pile up.
const STAYS: u64 = 3600;
/// Label of the Jobs of a policy.
const LABEL: &str = "delivery.windlass.dev/environment-policy";

/// A test to carry out.
pub(super) struct Test {
    pub(super) target: Arc<Target>,
    pub(super) spec: EnvironmentTest,
    pub(super) inputs: AnyMap,
    pub(super) policy: String,
    pub(super) number: u64,
    pub(super) commit: String,
}

impl Test {
    /// Of what is tested: for another commit there is another test.
    pub(super) fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.commit.hash(&mut hasher);
        hasher.finish()
    }

    /// Makes the Job, and waits for its end.
    pub(super) async fn carry_out(self) -> Found {
        let timeout = self.spec.timeout.map_or(TIMEOUT, api::meta::Duration::to_std);
        let (spec, inputs) = (self.spec.clone(), self.inputs.clone());
        let about = (self.policy.clone(), self.number);
        let job = tokio::task::spawn_blocking(move || job(&spec, &inputs, &about, timeout));
        let job = job.await.map_err(|_| "the Job was not rendered".to_owned())??;
        let namespace = job.namespace().unwrap_or_default();
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

fn said(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}

/// Renders the Job. Its namespace is checked: inputs are what strangers write.
fn job(
    test: &EnvironmentTest,
    inputs: &AnyMap,
    (policy, number): &(String, u64),
    timeout: Duration,
) -> Result<Job, String> {
    let Value::Object(template) = json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": "test", "namespace": test.namespace},
        "spec": test.job_spec,
    }) else {
        return Err("spec.test.jobSpec is no object".to_owned());
    };
    let set = ResourceSetSpec {
        resources: vec![template],
        ..ResourceSetSpec::default()
    };
    let rendered = resource_set::render(&set, std::slice::from_ref(inputs), "");
    let steps = rendered.map_err(|error| format!("spec.test: {error}"))?;
    let object = steps.iter().flat_map(|step| &step.objects).next();
    let object = object.ok_or("spec.test.jobSpec makes no Job")?;
    let namespace = object.namespace();
    let is_name = |text: &str| {
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        (1..=63).contains(&text.len()) && text.chars().all(is_plain)
    };
    if !is_name(namespace) {
        return Err(format!(
            "spec.test.namespace makes {namespace:?}, which is no namespace"
        ));
    }
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

    fn made(namespace: &str, spec: Value) -> Result<Job, String> {
        let test = EnvironmentTest {
            namespace: namespace.to_owned(),
            job_spec: serde_json::from_value(spec).unwrap(),
            ..EnvironmentTest::default()
        };
        let inputs =
            serde_json::from_value(json!({"id": "7", "title": "../kube-system", "host": "h"})).unwrap();
        job(
            &test,
            &inputs,
            &("environments".to_owned(), 7),
            Duration::from_secs(90),
        )
    }

    #[test]
    fn a_job_is_rendered_with_the_inputs() {
        let spec = json!({"template": {"spec": {
            "containers": [{"name": "test", "image": "test", "args": ["https://<< inputs.host >>"]}], "restartPolicy": "Never",
        }}});
        let job = made("shop-pr-<< inputs.id >>", spec).unwrap();
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
    fn a_title_is_no_namespace_and_a_job_has_its_form() {
        let error = made("<< inputs.title >>", json!({})).unwrap_err();
        assert_eq!(
            error,
            "spec.test.namespace makes \"../kube-system\", which is no namespace"
        );
        assert!(made("a", json!({"template": "x"})).is_err());
        assert!(
            made("<< inputs.nothing >>", json!({}))
                .unwrap_err()
                .starts_with("spec.test: ")
        );
    }
}
