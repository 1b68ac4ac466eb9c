//! Whether what was chosen has arrived: an event of its policy says that it is delivered, or that it failed.
//!
//! The event names the commit that the image was built from, as its labels have it, so that a commit status can be set at the
//! source by whoever has a Provider for that repository. Nothing is asked of a forge here, and no token is used.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::image::{ImagePolicy, ImageUpdateAutomation};
use controller_kit::ObjectKey;
use controller_kit::events::Severity;
use kube::ResourceExt as _;

use super::labels;
use super::run::Run;
use super::settled::{SettledTags, Told};
use super::update;
use crate::context::Context;
use crate::delivery::{self, Delivery, Failed, Invalid, short};

/// Annotation of an automation with the Kustomizations, separated by commas, that deliver what it writes.
pub(crate) const REPORT: &str = "windlass.dev/report-delivery";

/// Metadata of an event: the commit that it is about, without which it is none for commit statuses.
const COMMIT: &str = "event.toolkit.fluxcd.io/commit";

/// The Kustomizations whose state is reported.
#[derive(Debug)]
pub(super) struct Reports(Vec<String>);

/// What became of a choice.
#[derive(Debug, PartialEq)]
struct Report {
    policy: String,
    told: Told,
    message: String,
}

/// Where a Kustomization stands.
#[derive(Debug, Default)]
struct State {
    healthy: Option<String>,
    failed: Option<Failed>,
}

impl From<&Delivery> for State {
    fn from(delivery: &Delivery) -> Self {
        Self {
            healthy: delivery.healthy().map(str::to_owned),
            failed: delivery.failed(),
        }
    }
}

impl Reports {
    /// Reads the annotation; None if nothing is reported.
    pub(super) fn read(object: &ImageUpdateAutomation) -> Result<Option<Self>, Invalid> {
        let names = delivery::names(object, REPORT)?;
        Ok((!names.is_empty()).then_some(Self(names)))
    }

    /// Says what became of the choices since the last run, and marks it as said.
    pub(super) async fn tell(
        &self,
        policies: &[Arc<ImagePolicy>],
        settled: &mut SettledTags,
        run: &Run,
        context: &Context,
    ) {
        let states = self.0.iter().map(|name| {
            let key = ObjectKey::new(settled.namespace(), name);
            let delivery = context.deliveries.get(&key.object_ref());
            delivery
                .map(|delivery| State::from(&*delivery))
                .unwrap_or_default()
        });
        let states: Vec<_> = states.collect();
        for policy in policies {
            let Some(report) = self.due(policy, settled, run, &states) else {
                continue;
            };
            // Without the commit, the status at the source would never be set. The next run tries again.
            let revision = match labels::revision(policy, context).await {
                Ok(revision) => revision,
                Err(error) => {
                    tracing::warn!(%error, "the labels of the image of ImagePolicy {} cannot be read, so its delivery is not reported yet", report.policy);
                    continue;
                }
            };
            let (severity, reason) = match report.told {
                Told::Delivered => (Severity::Info, "Delivered"),
                Told::Failed => (Severity::Error, "DeliveryFailed"),
            };
            let metadata = revision.map(|revision| (COMMIT.to_owned(), format!("sha1:{revision}")));
            let metadata: BTreeMap<_, _> = metadata.into_iter().collect();
            let recorder = &context.policies;
            recorder.publish_with(policy, severity, reason, &report.message, metadata);
            settled.mark(&report.policy, report.told);
        }
    }

    /// What became of a choice, if that was not said before.
    fn due(
        &self,
        policy: &ImagePolicy,
        settled: &SettledTags,
        run: &Run,
        states: &[State],
    ) -> Option<Report> {
        let known = settled.get(policy)?;
        // What was there before anyone looked came by someone else.
        let brought_by = known.commit.as_deref()?;
        let head = head(policy, run);
        let has_it = |commit: &str| commit == brought_by || Some(commit) == head;
        let image = policy.status.as_ref()?.latest_ref.as_ref()?.to_string();
        let report = |told, message| {
            let policy = policy.name_any();
            Some(Report {
                policy,
                told,
                message,
            })
        };
        let named = || self.0.iter().zip(states);
        let healthy = named().map(|(_, state)| state.healthy.as_deref().filter(|commit| has_it(commit)));
        if let Some(commits) = healthy.collect::<Option<Vec<_>>>() {
            if known.told == Some(Told::Delivered) {
                return None;
            }
            let ready = named().zip(commits).map(|((name, _), commit)| {
                format!("Kustomization {name} is ready at commit {}", short(commit))
            });
            let ready: Vec<_> = ready.collect();
            let message = format!("{image} is delivered: {}", ready.join(", "));
            return report(Told::Delivered, message);
        }
        if known.told.is_some() {
            return None;
        }
        let (name, failed) = named().find_map(|(name, state)| {
            let failed = state.failed.as_ref().filter(|failed| has_it(&failed.commit))?;
            Some((name, failed))
        })?;
        let line = failed.message.lines().next().unwrap_or_default();
        let commit = short(&failed.commit);
        let message =
            format!("{image} is not delivered: Kustomization {name} failed at commit {commit}: {line}");
        report(Told::Failed, message)
    }
}

/// The newest commit of the branch that is known to have what the policy has chosen.
fn head<'r>(policy: &ImagePolicy, run: &'r Run) -> Option<&'r str> {
    let Some(looked) = &run.looked else {
        return delivery::commit(&run.revision);
    };
    let tally = looked.tallies.get(&update::key(policy))?;
    (tally.changed == 0 && tally.kept > 0).then_some(&*looked.base)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::run::Looked;
    use super::super::settled;
    use super::super::update::Tally;
    use super::*;

    const BROUGHT: &str = "1111111111111111111111111111111111111111";
    const HEAD: &str = "2222222222222222222222222222222222222222";
    const OTHER: &str = "3333333333333333333333333333333333333333";

    fn policy() -> ImagePolicy {
        serde_json::from_value(json!({
            "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"imageRepositoryRef": {"name": "web"}, "policy": {}},
            "status": {"latestRef": {"name": "h.io/web", "tag": "2.0.0"}},
        }))
        .unwrap()
    }

    fn automation(annotations: &Value) -> ImageUpdateAutomation {
        serde_json::from_value(json!({
            "metadata": {"name": "app", "namespace": "shop", "annotations": annotations},
            "spec": {"sourceRef": {"kind": "GitRepository", "name": "app"}, "interval": "1h"},
        }))
        .unwrap()
    }

    fn healthy(commit: &str) -> State {
        State {
            healthy: Some(commit.to_owned()),
            failed: None,
        }
    }

    fn failed(commit: &str) -> State {
        let failed = Failed {
            commit: commit.to_owned(),
            message: "timeout\nmore".to_owned(),
        };
        State {
            healthy: None,
            failed: Some(failed),
        }
    }

    /// What is said of tag 2.0.0, with what was recorded before.
    fn said(settled: &Value, states: &[State]) -> Option<String> {
        let annotations = json!({
            REPORT: "apps, infra", settled::ANNOTATION: json!({"web": settled}).to_string(),
        });
        let object = automation(&annotations);
        let reports = Reports::read(&object).unwrap().unwrap();
        let tally = Tally {
            kept: 1,
            ..Tally::default()
        };
        let looked = Looked {
            base: HEAD.to_owned(),
            tallies: [("shop:web".to_owned(), tally)].into(),
        };
        let run = Run {
            looked: Some(looked),
            ..Run::default()
        };
        let due = reports.due(&policy(), &SettledTags::read(&object), &run, states);
        due.map(|report| report.message)
    }

    #[test]
    fn it_is_delivered_when_all_are_ready_at_a_commit_that_has_it() {
        let brought = json!({"tag": "2.0.0", "commit": BROUGHT});
        assert_eq!(
            said(&brought, &[healthy(BROUGHT), healthy(HEAD)]).as_deref(),
            Some(
                "h.io/web:2.0.0 is delivered: Kustomization apps is ready at commit 1111111, \
                 Kustomization infra is ready at commit 2222222"
            )
        );
        assert_eq!(said(&brought, &[healthy(BROUGHT), healthy(OTHER)]), None);
        assert_eq!(said(&brought, &[healthy(BROUGHT), State::default()]), None);
        let told = json!({"tag": "2.0.0", "commit": BROUGHT, "told": "Delivered"});
        assert_eq!(said(&told, &[healthy(BROUGHT), healthy(HEAD)]), None);
        let was_there = json!({"tag": "2.0.0"});
        assert_eq!(said(&was_there, &[healthy(HEAD), healthy(HEAD)]), None);
        let before = json!({"tag": "1.0.0", "commit": BROUGHT});
        assert_eq!(said(&before, &[healthy(BROUGHT), healthy(BROUGHT)]), None);
    }

    #[test]
    fn a_failure_is_said_once_and_may_still_be_delivered() {
        let brought = json!({"tag": "2.0.0", "commit": BROUGHT});
        assert_eq!(
            said(&brought, &[healthy(BROUGHT), failed(BROUGHT)]).as_deref(),
            Some("h.io/web:2.0.0 is not delivered: Kustomization infra failed at commit 1111111: timeout")
        );
        assert_eq!(said(&brought, &[healthy(BROUGHT), failed(OTHER)]), None);
        let told = json!({"tag": "2.0.0", "commit": BROUGHT, "told": "Failed"});
        assert_eq!(said(&told, &[healthy(BROUGHT), failed(BROUGHT)]), None);
        assert!(said(&told, &[healthy(BROUGHT), healthy(BROUGHT)]).is_some());
        let delivered = json!({"tag": "2.0.0", "commit": BROUGHT, "told": "Delivered"});
        assert_eq!(said(&delivered, &[healthy(BROUGHT), failed(HEAD)]), None);
    }

    #[test]
    fn nothing_is_said_unless_it_is_asked_for() {
        assert!(Reports::read(&automation(&json!({}))).unwrap().is_none());
        assert!(Reports::read(&automation(&json!({REPORT: "other/apps"}))).is_err());
    }
}
