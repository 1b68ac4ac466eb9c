//! The policies of the cluster, for the controller of sources.

use std::sync::Arc;

use api::delivery::{PolicySourceKind, VerificationPolicy};
use controller_kit::Context;
use controller_kit::flags::WatchFlags;
use controller_kit::rules::{Changes, Rules};

use super::admission::Admission;
use crate::scope::{self, Way};
use crate::tally::Tally;
use crate::trust::Trusts;

/// Knows which policies apply to which sources.
pub struct Judge {
    policies: Rules<VerificationPolicy>,
    /// The namespace of this process, whose policies reach into others.
    namespace: String,
    trusts: Arc<Trusts>,
    tally: Tally,
}

impl Judge {
    /// Watches the policies. The stream must be polled by [`follow`](Self::follow).
    pub fn new(kit: &Context, flags: &WatchFlags) -> (Self, Changes<VerificationPolicy>) {
        let (policies, changes) = Rules::new(&kit.client, flags);
        let judge = Self {
            policies,
            namespace: kit.namespace.clone(),
            trusts: Arc::new(Trusts::new(kit.client.clone())),
            tally: Tally::of_sources(&kit.metrics),
        };
        (judge, changes)
    }

    /// Waits until the policies are known. Where the kind is not installed there are none.
    pub async fn wait_until_ready(&self) {
        self.policies
            .wait_until_ready("no source is verified by it")
            .await;
    }

    /// Calls `changed` for each change of a policy, with the policy as it is and as it was.
    pub async fn follow(
        &self,
        changes: Changes<VerificationPolicy>,
        changed: impl Fn(&[Arc<VerificationPolicy>]),
    ) {
        self.policies.follow(changes, changed).await;
    }

    /// Returns whether one of these policies concerns the sources of a namespace.
    pub fn concerns(&self, policies: &[Arc<VerificationPolicy>], namespace: &str) -> bool {
        policies.iter().any(|policy| self.covers(policy, namespace))
    }

    fn covers(&self, policy: &VerificationPolicy, namespace: &str) -> bool {
        let way = Way {
            from: namespace,
            to: namespace,
        };
        scope::covers(policy, way, &self.namespace)
    }

    /// The policies that may apply to sources of a kind in a namespace.
    pub fn admission(&self, kind: PolicySourceKind, namespace: &str) -> Admission {
        let mut policies = self.policies.all();
        policies
            .retain(|policy| scope::is_about_sources(policy, Some(kind)) && self.covers(policy, namespace));
        policies.sort_by_cached_key(|policy| scope::id(policy));
        let tally = self.tally.of(kind.name());
        Admission::new(namespace, policies, Arc::clone(&self.trusts), tally)
    }

    /// Returns why a source of another namespace may not be used in this one, if so.
    pub fn refuses_elsewhere(&self, from: &str, kind: &str, namespace: &str) -> Option<String> {
        scope::refusal_of_elsewhere(&self.policies.all(), from, (kind, namespace), &self.namespace)
    }
}
