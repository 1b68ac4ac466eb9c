//! Decides whether an event that an Alert wants goes to its Provider: the second half of routing, in Flux's order and words.

use std::str::FromStr as _;

use api::notification::Provider;
use event::{Event, keys};
use notifier::ProviderType;

use super::rule::Rule;
use crate::flags::Policy;

/// Whether an event goes to a Provider.
#[derive(Debug, PartialEq, Eq)]
pub enum Admission {
    /// It does.
    Send,
    /// It does not, and no one need know: the Provider is suspended, or the event is for Git services only.
    Pass,
    /// It lacks the commit that a commit status is for.
    NoCommit,
    /// It lacks the change request that a comment is for.
    NoChangeRequest,
}

/// Decides about an event that was cleaned, with prefixes still on its metadata.
pub fn admit(
    event: &Event,
    rule: &Rule,
    provider: Option<&Provider>,
    policy: &Policy,
) -> Result<Admission, String> {
    let object = &event.involved_object;
    if policy.no_cross_namespace_refs && object.namespace != rule.key.namespace {
        return Err(format!(
            "discarding event, access denied to cross-namespace sources: alert '{}' can't process event from '{object}', \
             cross-namespace references have been blocked",
            rule.key
        ));
    }
    let Some(provider) = provider else {
        let name = &rule.alert.spec.provider_ref.name;
        return Err(format!(
            "failed to read provider: Provider.notification.toolkit.fluxcd.io \"{name}\" not found"
        ));
    };
    if provider.spec.suspend {
        return Ok(Admission::Pass);
    }
    let type_ = type_of(provider)?;
    let is_update = event.of_group(keys::COMMIT_STATUS) == Some(keys::COMMIT_STATUS_UPDATE);
    if !type_.is_commit_status() && !type_.is_generic() && is_update {
        return Ok(Admission::Pass);
    }
    if type_.is_commit_status() && !has(event, keys::COMMIT) && !is_update && !event.is_error() {
        return Ok(Admission::NoCommit);
    }
    if type_.is_change_request() && !has(event, keys::CHANGE_REQUEST) {
        return Ok(Admission::NoChangeRequest);
    }
    if provider.spec.service_account_name.is_some() && !policy.object_level_identity {
        return Err(
            "to use spec.serviceAccountName for provider authentication please enable the \
             ObjectLevelWorkloadIdentity feature gate in the controller"
                .to_owned(),
        );
    }
    Ok(Admission::Send)
}

/// The notifier's name of a Provider's type.
pub fn type_of(provider: &Provider) -> Result<ProviderType, String> {
    let name = match serde_json::to_value(provider.spec.type_) {
        Ok(serde_json::Value::String(name)) => name,
        _ => String::new(),
    };
    ProviderType::from_str(&name).map_err(|error| error.to_string())
}

fn has(event: &Event, key: &str) -> bool {
    let value = event.metadata.get(&format!("{}/{key}", keys::GROUP));
    value.is_some_and(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;

    fn rule() -> Rule {
        let alert = json!({
            "metadata": {"name": "a", "namespace": "apps"},
            "spec": {"providerRef": {"name": "p"}, "eventSources": []},
        });
        Rule::from_alert(Arc::new(serde_json::from_value(alert).unwrap()))
    }

    fn decide(
        namespace: &str,
        severity: &str,
        metadata: Value,
        provider: Option<Value>,
        policy: &Policy,
    ) -> Result<Admission, String> {
        let object = json!({
            "kind": "Kustomization", "namespace": namespace, "name": "web",
            "apiVersion": "kustomize.toolkit.fluxcd.io/v1",
        });
        let event = json!({"involvedObject": object, "severity": severity, "metadata": metadata});
        let provider: Option<Provider> = provider
            .map(|spec| serde_json::from_value(json!({"metadata": {"name": "p"}, "spec": spec})).unwrap());
        admit(
            &serde_json::from_value(event).unwrap(),
            &rule(),
            provider.as_ref(),
            policy,
        )
    }

    #[test]
    fn events_go_to_the_providers_that_can_use_them() {
        let update = json!({"kustomize.toolkit.fluxcd.io/commit_status": "update"});
        let commit = json!({"event.toolkit.fluxcd.io/commit": "main@sha1:1"});
        let change_request = json!({"event.toolkit.fluxcd.io/change_request": "42"});
        let cases = [
            ("slack", "info", json!({}), Admission::Send),
            ("slack", "info", update.clone(), Admission::Pass),
            ("generic", "info", update.clone(), Admission::Send),
            ("generic-hmac", "info", update.clone(), Admission::Send),
            ("github", "info", json!({}), Admission::NoCommit),
            ("github", "error", json!({}), Admission::Send),
            ("github", "info", update, Admission::Send),
            ("gitlab", "info", commit.clone(), Admission::Send),
            ("githubdispatch", "info", json!({}), Admission::Send),
            (
                "githubpullrequestcomment",
                "error",
                commit,
                Admission::NoChangeRequest,
            ),
            (
                "githubpullrequestcomment",
                "info",
                change_request,
                Admission::Send,
            ),
        ];
        for (type_, severity, metadata, expected) in cases {
            let provider = Some(json!({"type": type_}));
            let admission = decide("apps", severity, metadata.clone(), provider, &Policy::default());
            assert_eq!(admission, Ok(expected), "{type_} {severity} {metadata}");
        }
        let suspended = Some(json!({"type": "slack", "suspend": true}));
        assert_eq!(
            decide("apps", "error", json!({}), suspended, &Policy::default()),
            Ok(Admission::Pass)
        );
    }

    #[test]
    fn what_is_refused_is_told_in_fluxs_words() {
        let slack = || Some(json!({"type": "slack"}));
        let locked = Policy {
            no_cross_namespace_refs: true,
            ..Policy::default()
        };
        assert_eq!(
            decide("apps", "info", json!({}), slack(), &locked),
            Ok(Admission::Send)
        );
        assert_eq!(
            decide("other", "info", json!({}), slack(), &locked).unwrap_err(),
            "discarding event, access denied to cross-namespace sources: alert 'apps/a' can't process event from \
             'Kustomization/other/web', cross-namespace references have been blocked"
        );
        assert_eq!(
            decide("apps", "info", json!({}), None, &Policy::default()).unwrap_err(),
            "failed to read provider: Provider.notification.toolkit.fluxcd.io \"p\" not found"
        );
        let account = Some(json!({"type": "googlepubsub", "serviceAccountName": "tenant"}));
        let refused = decide("apps", "info", json!({}), account.clone(), &Policy::default()).unwrap_err();
        assert!(
            refused.contains("please enable the ObjectLevelWorkloadIdentity feature gate"),
            "{refused}"
        );
        let open = Policy {
            object_level_identity: true,
            ..Policy::default()
        };
        assert_eq!(
            decide("apps", "info", json!({}), account, &open),
            Ok(Admission::Send)
        );
    }
}
