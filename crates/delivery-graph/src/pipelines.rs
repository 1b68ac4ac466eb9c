//! What a Pipeline says of its environments. Pure.

use std::collections::BTreeSet;

use manifest::ObjectId;
use serde::Serialize;
use serde_json::Value;

use crate::kind;
use crate::object::{Link, list, namespace, text};

/// Environments, and targets of one, that are read: as many as the definition allows.
const MAX: usize = 50;

/// An environment of a pipeline, as its status has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Standing {
    /// Its name.
    pub environment: String,
    /// Number of the release that all its targets have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub release: Option<u64>,
    /// Number of the release that is on its way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entering: Option<u64>,
    /// What the next release waits for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<String>,
}

/// Returns how the environments of a pipeline stand; nothing for other kinds.
pub fn standings(object: &Value) -> Vec<Standing> {
    let environments = environments(object).map(|one| {
        let is_changing = list(one, "/targets")
            .iter()
            .any(|target| target.get("change").is_some());
        let entering = one.get("entering").and_then(Value::as_u64);
        Standing {
            environment: text(one, "/name").to_owned(),
            release: one.get("release").and_then(Value::as_u64),
            entering: entering.filter(|_| is_changing),
            waits: list(one, "/waits")
                .iter()
                .filter_map(|wait| Some(wait.as_str()?.to_owned()))
                .collect(),
        }
    });
    environments.collect()
}

/// The applications of targets of this cluster that are not healthy.
pub(crate) fn unwell(object: &Value) -> Vec<Link> {
    let mut namespaces = BTreeSet::new();
    for (one, spec) in environments(object).zip(list(object, "/spec/environments")) {
        // The status is that of another spec until the controller has looked at this one.
        if text(one, "/name") != text(spec, "/name") {
            continue;
        }
        let targets = list(one, "/targets").iter().zip(list(spec, "/targets")).take(MAX);
        for (seen, target) in targets {
            let is_well = seen.get("ready").and_then(Value::as_bool) == Some(true);
            let is_here = target.get("kubeConfig").is_none_or(Value::is_null);
            if !is_well && is_here {
                let named = text(target, "/namespace");
                namespaces.insert(if named.is_empty() {
                    namespace(object)
                } else {
                    named
                });
            }
        }
    }
    let apps = || list(object, "/spec/apps").iter().take(MAX);
    let links = namespaces.into_iter().flat_map(|namespace| {
        apps().filter_map(move |app| {
            Some(Link {
                word: "application",
                id: application(namespace, app)?,
            })
        })
    });
    links.collect()
}

fn application(namespace: &str, app: &Value) -> Option<ObjectId> {
    Some(kind::exact(text(app, "/kind"))?.id(namespace, text(app, "/name")))
}

fn environments(object: &Value) -> impl Iterator<Item = &Value> {
    let is_pipeline = text(object, "/kind") == "Pipeline";
    let all = list(object, "/status/environments").iter().take(MAX);
    all.filter(move |_| is_pipeline)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_pipeline_says_how_its_environments_stand_and_who_is_unwell() {
        let pipeline = json!({
            "kind": "Pipeline",
            "metadata": {"namespace": "team"},
            "spec": {
                "apps": [{"kind": "HelmRelease", "name": "shop"}, {"kind": "Nothing", "name": "x"}],
                "environments": [
                    {"name": "dev", "targets": [{"namespace": "shop-dev"}]},
                    {"name": "production", "targets": [
                        {"namespace": "shop-eu", "name": "eu"},
                        {"namespace": "shop-us"},
                        {"namespace": "shop-ap", "kubeConfig": {"secretRef": {"name": "ap"}}},
                        {},
                    ]},
                ],
            },
            "status": {"environments": [
                {"name": "dev", "release": 7, "targets": [{"name": "shop-dev", "ready": true}]},
                {"name": "production", "entering": 7, "waits": ["window opens", 5], "targets": [
                    {"name": "eu", "ready": false, "change": {"release": 7}},
                    {"name": "shop-us", "ready": true},
                    {"name": "ap/shop-ap", "ready": false},
                    {"name": "team", "ready": false},
                ]},
            ]},
        });
        let standings = standings(&pipeline);
        assert_eq!((standings[0].release, standings[0].entering), (Some(7), None));
        assert_eq!(standings[1].entering, Some(7));
        assert_eq!(standings[1].waits, ["window opens"]);
        let unwell = unwell(&pipeline);
        let ids: Vec<String> = unwell.iter().map(|link| link.id.to_string()).collect();
        assert_eq!(ids, ["HelmRelease/shop-eu/shop", "HelmRelease/team/shop"]);
        let hostile =
            json!({"kind": "Pipeline", "spec": 5, "status": {"environments": [null, {"targets": {}}]}});
        assert_eq!(super::unwell(&hostile), []);
        assert_eq!(super::standings(&hostile).len(), 2);
    }
}
