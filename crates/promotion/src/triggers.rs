//! Webhooks that start a pipeline.

use std::collections::BTreeSet;

use api::delivery::{Pipeline, Trigger};
use api::notification::{Receiver, ReceiverResource};

/// Webhooks that are listed: who may write Receivers must not fill the status.
const MAX_TRIGGERS: usize = 20;

/// Kind, namespace and name of an object.
pub type Place = (String, String, String);

/// The Receivers of the pipeline's namespace that have the pipeline reconciled, or one of `sources`: what its first environments run,
/// and what that is made of. `base` is the address at which webhooks are reached, without a slash at the end.
///
/// The path of a Receiver whose type trusts it is as good as a key, and who may read pipelines need not read Receivers.
pub fn triggers<'r>(
    pipeline: &Pipeline,
    sources: &BTreeSet<Place>,
    receivers: impl IntoIterator<Item = &'r Receiver>,
    base: &str,
) -> Vec<Trigger> {
    let namespace = pipeline.metadata.namespace.as_deref().unwrap_or_default();
    let mut found = BTreeSet::new();
    for receiver in receivers {
        let is_here = receiver.metadata.namespace.as_deref() == Some(namespace);
        if !is_here || receiver.spec.suspend {
            continue;
        }
        let path = receiver
            .status
            .as_ref()
            .and_then(|status| status.webhook_path.as_deref());
        let Some(path) = path else {
            continue;
        };
        let resources = receiver.spec.resources.iter();
        let wakes = resources.filter(|one| is_one(one, pipeline, sources, namespace));
        found.extend(wakes.map(|one| Trigger {
            receiver: receiver.metadata.name.clone().unwrap_or_default(),
            type_: word(&receiver.spec.type_),
            reconciles: format!("{}/{}/{}", word(&one.kind), of(one, namespace), one.name),
            url: (!receiver.spec.type_.trusts_the_path()).then(|| format!("{base}{path}")),
        }));
    }
    found.into_iter().take(MAX_TRIGGERS).collect()
}

/// Whether a resource of a Receiver is the pipeline, or what its first environments run.
fn is_one(one: &ReceiverResource, pipeline: &Pipeline, sources: &BTreeSet<Place>, own: &str) -> bool {
    let (kind, of) = (word(&one.kind), of(one, own));
    if kind == "Pipeline" {
        let labels = pipeline.metadata.labels.as_ref();
        let has = |(key, value): (&String, &String)| labels.and_then(|labels| labels.get(key)) == Some(value);
        let is_named = one.name == "*" || pipeline.metadata.name.as_deref() == Some(&*one.name);
        return of == own && is_named && one.match_labels.iter().all(has);
    }
    // Labels of others are not known here.
    let is_all = one.name == "*" && one.match_labels.is_empty();
    let mut sources = sources.iter();
    sources.any(|(known, namespace, name)| *known == kind && namespace == of && (is_all || *name == one.name))
}

fn of<'r>(one: &'r ReceiverResource, own: &'r str) -> &'r str {
    one.namespace
        .as_deref()
        .filter(|of| !of.is_empty())
        .unwrap_or(own)
}

/// A word of the API, as in manifests.
fn word(value: &impl serde::Serialize) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn receiver(namespace: &str, name: &str, type_: &str, resource: &serde_json::Value) -> Receiver {
        let object = json!({
            "apiVersion": "notification.toolkit.fluxcd.io/v1", "kind": "Receiver",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"type": type_, "resources": [resource], "secretRef": {"name": "token"}},
            "status": {"webhookPath": format!("/hook/{name}")},
        });
        serde_json::from_value(object).unwrap()
    }

    fn found(receivers: &[Receiver]) -> Vec<(String, String, Option<String>)> {
        let pipeline = json!({
            "apiVersion": "delivery.windlass.dev/v1alpha1", "kind": "Pipeline",
            "metadata": {"name": "shop", "namespace": "team", "labels": {"ci": "yes"}},
            "spec": {"apps": [], "environments": []},
        });
        let pipeline: Pipeline = serde_json::from_value(pipeline).unwrap();
        let place = |kind: &str, name: &str| (kind.to_owned(), "dev".to_owned(), name.to_owned());
        let sources = BTreeSet::from([place("OCIRepository", "web")]);
        let all = triggers(&pipeline, &sources, receivers, "https://hooks.example.com");
        all.into_iter()
            .map(|one| (one.receiver, one.reconciles, one.url))
            .collect()
    }

    #[test]
    fn those_that_wake_it_are_listed_and_no_path_is_given_that_is_a_key() {
        let pipeline = |name: &str| json!({"kind": "Pipeline", "name": name});
        let source = |name: &str| json!({"kind": "OCIRepository", "name": name, "namespace": "dev"});
        let labelled = |value: &str| json!({"kind": "Pipeline", "name": "*", "matchLabels": {"ci": value}});
        let receivers = [
            receiver("team", "ci", "generic-hmac", &pipeline("shop")),
            receiver("team", "open", "generic", &pipeline("shop")),
            receiver("team", "registry", "harbor", &source("web")),
            receiver("team", "labels", "github", &labelled("yes")),
            receiver("team", "others", "github", &labelled("no")),
            receiver("team", "another", "github", &pipeline("bank")),
            receiver("team", "elsewhere", "harbor", &source("api")),
            receiver(
                "bank",
                "theirs",
                "github",
                &json!({"kind": "Pipeline", "name": "shop", "namespace": "team"}),
            ),
        ];
        let url = |name: &str| Some(format!("https://hooks.example.com/hook/{name}"));
        let line = |name: &str, what: &str, url: Option<String>| (name.to_owned(), what.to_owned(), url);
        assert_eq!(
            found(&receivers),
            [
                line("ci", "Pipeline/team/shop", url("ci")),
                line("labels", "Pipeline/team/*", url("labels")),
                line("open", "Pipeline/team/shop", None),
                line("registry", "OCIRepository/dev/web", url("registry")),
            ]
        );
        let many: Vec<_> = (0..50)
            .map(|at| receiver("team", &format!("r{at}"), "github", &pipeline("shop")))
            .collect();
        assert_eq!(found(&many).len(), MAX_TRIGGERS);
    }
}
