//! Tests of environments that are ready, once for each commit: a Job, or a CI system.

mod job;
mod webhook;

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use api::delivery::EnvironmentTest;
use api::flux_operator::AnyMap;
use cluster_access::targets::Target;
use controller_kit::ObjectKey;
use resource_set::environment::{self, Request};

use super::health::Found;
use crate::context::Context;

/// How long a test may take, if the spec does not say.
const TIMEOUT: Duration = Duration::from_mins(30);

/// A test to carry out.
pub(super) struct Test {
    pub(super) context: Arc<Context>,
    pub(super) target: Arc<Target>,
    pub(super) spec: EnvironmentTest,
    pub(super) policy: ObjectKey,
    pub(super) request: Request,
    pub(super) inputs: AnyMap,
    /// Where the environment is found.
    pub(super) address: String,
}

impl Test {
    /// Of what is tested: for another commit there is another test.
    pub(super) fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.request.commit.hash(&mut hasher);
        hasher.finish()
    }

    /// Has the environment tested, and waits for the result.
    pub(super) async fn carry_out(self) -> Found {
        let namespace = self.namespace().await?;
        match (&self.spec.job_spec, &self.spec.webhook) {
            (Some(job), _) => self.run_job(job, namespace).await,
            (None, Some(webhook)) => self.call(webhook, &namespace).await,
            (None, None) => Err("spec.test has neither jobSpec nor webhook".to_owned()),
        }
    }

    fn timeout(&self) -> Duration {
        self.spec.timeout.map_or(TIMEOUT, api::meta::Duration::to_std)
    }

    /// The namespace of the test. It is checked: inputs are what strangers write.
    async fn namespace(&self) -> Result<String, String> {
        let (template, inputs) = (self.spec.namespace.clone(), self.inputs.clone());
        let rendered = tokio::task::spawn_blocking(move || {
            environment::lines("spec.test.namespace", &template, &[inputs])
        });
        let rendered = rendered
            .await
            .map_err(|_| "spec.test.namespace was not rendered".to_owned())??;
        checked(rendered.into_iter().next().unwrap_or_default())
    }
}

fn checked(namespace: String) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    match (1..=63).contains(&namespace.len()) && namespace.chars().all(is_plain) {
        true => Ok(namespace),
        false => Err(format!(
            "spec.test.namespace makes {namespace:?}, which is no namespace"
        )),
    }
}

/// What the API server says.
fn said(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_no_namespace() {
        assert_eq!(checked("shop-pr-7".to_owned()), Ok("shop-pr-7".to_owned()));
        for title in ["../kube-system", "a/b", "", "A", &"a".repeat(64)] {
            assert!(checked(title.to_owned()).is_err(), "{title}");
        }
    }
}
