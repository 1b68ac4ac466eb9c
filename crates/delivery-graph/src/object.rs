//! Reads the common parts of an object from its JSON: the same for all kinds, and pure.

use manifest::ObjectId;
use serde_json::Value;

use crate::kind;

/// A condition of the status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Condition<'a> {
    /// `True`, `False` or `Unknown`.
    pub status: &'a str,
    /// A word for programs.
    pub reason: &'a str,
    /// Words for people.
    pub message: &'a str,
    observed_generation: Option<i64>,
}

/// Reads a string; empty when there is none.
pub fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// Reads a list; empty when there is none.
pub fn list<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object
        .pointer(pointer)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// Reads `metadata.name`.
pub fn name(object: &Value) -> &str {
    text(object, "/metadata/name")
}

/// Reads `metadata.namespace`.
pub fn namespace(object: &Value) -> &str {
    text(object, "/metadata/namespace")
}

/// Reads which object it is.
pub fn id(object: &Value) -> ObjectId {
    let (group, _) = text(object, "/apiVersion").split_once('/').unwrap_or_default();
    ObjectId {
        group: group.to_owned(),
        kind: text(object, "/kind").to_owned(),
        namespace: namespace(object).to_owned(),
        name: name(object).to_owned(),
    }
}

/// Reads a condition by its type, in any case of letters, as Flux's `--status-selector` takes it.
pub fn condition<'a>(object: &'a Value, type_: &str) -> Option<Condition<'a>> {
    let found = list(object, "/status/conditions")
        .iter()
        .find(|condition| text(condition, "/type").eq_ignore_ascii_case(type_))?;
    Some(Condition {
        status: text(found, "/status"),
        reason: text(found, "/reason"),
        message: text(found, "/message"),
        observed_generation: found.get("observedGeneration").and_then(Value::as_i64),
    })
}

/// Reads what there is to say about an object's readiness. Some kinds have no status: they are ready as they are.
pub fn ready(object: &Value) -> Condition<'_> {
    if is_static(object) {
        return Condition {
            status: "True",
            ..Condition::default()
        };
    }
    condition(object, api::meta::condition_types::READY).unwrap_or(Condition {
        status: "Unknown",
        message: "no controller has looked at it yet",
        ..Condition::default()
    })
}

/// Returns whether no controller writes a status for it.
fn is_static(object: &Value) -> bool {
    let has_status = !list(object, "/status/conditions").is_empty();
    match text(object, "/kind") {
        "Alert" | "Provider" => !has_status,
        "HelmRepository" => text(object, "/spec/type") == "oci",
        "ChangePolicy" | "Freeze" => true,
        _ => false,
    }
}

/// Returns whether its controller has seen the newest spec. The status says so only after a run that went well or that nothing
/// but a change can help; Ready says it of every run.
pub fn is_observed(object: &Value) -> bool {
    let generation = object.pointer("/metadata/generation").and_then(Value::as_i64);
    let of_status = object
        .pointer("/status/observedGeneration")
        .and_then(Value::as_i64);
    match (generation, of_status.max(ready(object).observed_generation)) {
        (Some(generation), Some(observed)) => observed >= generation,
        _ => is_static(object) || ready(object).status == "True",
    }
}

/// Returns whether it is ready, as it is written now.
pub fn is_ready(object: &Value) -> bool {
    ready(object).status == "True" && is_observed(object)
}

/// Returns whether its controller is at work on it, and not only about to try again what failed.
pub fn is_in_progress(object: &Value) -> bool {
    condition(object, api::meta::condition_types::RECONCILING)
        .is_some_and(|condition| condition.status == "True" && condition.reason != "ProgressingWithRetry")
}

/// Returns whether nothing will happen before someone changes something.
pub fn is_stalled(object: &Value) -> bool {
    condition(object, api::meta::condition_types::STALLED).is_some_and(|condition| condition.status == "True")
}

/// Returns whether its controller leaves it alone.
pub fn is_suspended(object: &Value) -> bool {
    object.pointer("/spec/suspend") == Some(&Value::Bool(true))
}

/// The revision that it has, or has applied; empty when there is none.
pub fn revision(object: &Value) -> &str {
    let pointers: &[&str] = match text(object, "/kind") {
        "Kustomization" => &["/status/lastAppliedRevision"],
        "HelmRelease" => &["/status/history/0/chartVersion", "/status/lastAttemptedRevision"],
        "ImageRepository" => &["/status/lastScanResult/revision"],
        "ImagePolicy" => &["/status/latestRef/tag"],
        "ImageUpdateAutomation" => &["/status/lastPushCommit"],
        _ => &["/status/artifact/revision"],
    };
    let found = pointers.iter().map(|pointer| text(object, pointer));
    found
        .into_iter()
        .find(|text| !text.is_empty())
        .unwrap_or_default()
}

/// A chart that is delivered, as its release or its HelmChart tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chart<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its version.
    pub version: &'a str,
    /// Version of what it deploys, as its author says.
    pub app_version: &'a str,
}

/// The chart of a HelmRelease or a HelmChart; empty for others.
pub fn chart(object: &Value) -> Chart<'_> {
    // A chart in a repository of Git is named by its folder.
    let named = |pointer| text(object, pointer).trim_end_matches('/').rsplit('/').next();
    match text(object, "/kind") {
        "HelmRelease" => {
            let released = text(object, "/status/history/0/chartName");
            let wanted = named("/spec/chart/spec/chart").unwrap_or_default();
            Chart {
                name: if released.is_empty() { wanted } else { released },
                version: text(object, "/status/history/0/chartVersion"),
                app_version: text(object, "/status/history/0/appVersion"),
            }
        }
        "HelmChart" => Chart {
            name: named("/spec/chart").unwrap_or_default(),
            version: text(object, "/status/artifact/revision"),
            app_version: "",
        },
        _ => Chart::default(),
    }
}

/// The address that a source has its content from, without what signs in; empty for others.
pub fn repository(object: &Value) -> String {
    let address = match text(object, "/kind") {
        "GitRepository" | "OCIRepository" | "HelmRepository" => text(object, "/spec/url"),
        "ImageRepository" => text(object, "/spec/image"),
        "Bucket" => {
            let (endpoint, bucket) = (text(object, "/spec/endpoint"), text(object, "/spec/bucketName"));
            return format!("{endpoint}/{bucket}");
        }
        _ => "",
    };
    let Some((scheme, rest)) = address.split_once("://") else {
        return address.to_owned();
    };
    let host_ends = rest.find('/').unwrap_or(rest.len());
    let host_begins = rest[..host_ends].rfind('@').map_or(0, |at| at + 1);
    format!("{scheme}://{}", &rest[host_begins..])
}

/// What applied an object, as its labels say; anybody who may write it can write these.
pub fn owner(object: &Value) -> Option<ObjectId> {
    let labels = object.pointer("/metadata/labels")?;
    owner_by(|label| labels.get(label)?.as_str())
}

/// The same, of labels in any form.
pub(crate) fn owner_by<'a>(label: impl Fn(&str) -> Option<&'a str>) -> Option<ObjectId> {
    crate::DELIVERERS.into_iter().find_map(|kind| {
        let kind = kind::exact(kind)?;
        let field = |name: &str| label(&format!("{}/{name}", kind.group));
        Some(kind.id(field("namespace")?, field("name")?))
    })
}

/// The revision that was tried last.
pub fn attempted(object: &Value) -> &str {
    text(object, "/status/lastAttemptedRevision")
}

/// Shortens the digest in a revision: `main@sha1:0123456789…` is `main@sha1:01234567`. A commit alone is shortened, too.
pub fn short_revision(revision: &str) -> String {
    let is_hexadecimal = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    match revision.rsplit_once(':') {
        Some((head, digest)) if digest.len() > 8 && is_hexadecimal(digest) => {
            format!("{head}:{}", &digest[..8])
        }
        None if matches!(revision.len(), 40 | 64) && is_hexadecimal(revision) => revision[..8].to_owned(),
        _ => revision.to_owned(),
    }
}

/// Where something comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Its role for the object: `source`, `chart`, `image`, `policy`, `change policy`, `kustomization`, `dependency`, `provider`.
    pub word: &'static str,
    /// The object that is needed.
    pub id: ObjectId,
}

/// Objects of Flux that an object needs.
pub fn links(object: &Value) -> Vec<Link> {
    let kind = text(object, "/kind");
    let mut links = Vec::new();
    match kind {
        "Kustomization" | "HelmChart" | "ExternalArtifact" => {
            links.extend(reference(object, "source", object.pointer("/spec/sourceRef")));
        }
        "HelmRelease" => {
            links.extend(reference(object, "chart", object.pointer("/spec/chartRef")));
            links.extend(made_chart(object).map(|id| Link { word: "chart", id }));
        }
        "GitRepository" => {
            let included = list(object, "/spec/include").iter();
            links.extend(included.filter_map(|one| local(object, "included", kind, one.get("repository")?)));
        }
        "ArtifactGenerator" => {
            let sources = list(object, "/spec/sources").iter();
            links.extend(sources.filter_map(|one| reference(object, "source", Some(one))));
        }
        "ImagePolicy" => {
            let image = object.pointer("/spec/imageRepositoryRef");
            links.extend(image.and_then(|one| local(object, "image", "ImageRepository", one)));
        }
        "ImageUpdateAutomation" => {
            links.extend(reference(object, "source", object.pointer("/spec/sourceRef")));
            let observed = object
                .pointer("/status/observedPolicies")
                .and_then(Value::as_object);
            let names = observed.into_iter().flat_map(|policies| policies.keys());
            links.extend(names.filter_map(|name| {
                let id = observed_policy(object, name)?;
                Some(Link { word: "policy", id })
            }));
            let annotations = object.pointer("/metadata/annotations");
            let way = annotations.and_then(|all| all.get(api::delivery::CHANGE_POLICY)?.as_str());
            links.extend(way.and_then(|name| {
                let id = kind::exact("ChangePolicy")?.id(namespace(object), name);
                Some(Link {
                    word: "change policy",
                    id,
                })
            }));
        }
        "ChangeRequest" => {
            let policy = object.pointer("/spec/changePolicyRef");
            links.extend(policy.and_then(|one| local(object, "change policy", "ChangePolicy", one)));
            let applies = object.pointer("/spec/kustomizationRef");
            links.extend(applies.and_then(|one| local(object, "kustomization", "Kustomization", one)));
        }
        "Pipeline" => links.extend(crate::pipelines::unwell(object)),
        "Alert" => {
            let provider = object.pointer("/spec/providerRef");
            links.extend(provider.and_then(|one| local(object, "provider", "Provider", one)));
        }
        _ => {}
    }
    if matches!(kind, "Kustomization" | "HelmRelease") {
        let dependencies = list(object, "/spec/dependsOn").iter();
        links.extend(dependencies.filter_map(|one| local(object, "dependency", kind, one)));
    }
    links
}

/// A policy that the status of an automation names: `name`, or `namespace/name` for one of another namespace.
pub(crate) fn observed_policy(automation: &Value, named: &str) -> Option<ObjectId> {
    let (namespace, name) = named.split_once('/').unwrap_or((namespace(automation), named));
    Some(kind::exact("ImagePolicy")?.id(namespace, name))
}

/// The HelmChart that helm-controller makes of `spec.chart`, which has the same name in every version of Flux.
fn made_chart(object: &Value) -> Option<ObjectId> {
    let spec = object.pointer("/spec/chart/spec")?;
    let namespace_of_source = text(spec, "/sourceRef/namespace");
    let namespace_of_chart = if namespace_of_source.is_empty() {
        namespace(object)
    } else {
        namespace_of_source
    };
    let chart = format!("{}-{}", namespace(object), name(object));
    Some(kind::exact("HelmChart")?.id(namespace_of_chart, &chart))
}

fn reference(object: &Value, word: &'static str, reference: Option<&Value>) -> Option<Link> {
    let reference = reference?;
    local(object, word, text(reference, "/kind"), reference)
}

fn local(object: &Value, word: &'static str, kind: &str, reference: &Value) -> Option<Link> {
    let given = text(reference, "/namespace");
    let namespace = if given.is_empty() {
        namespace(object)
    } else {
        given
    };
    let id = kind::exact(kind)?.id(namespace, text(reference, "/name"));
    Some(Link { word, id })
}

/// Returns whether the inventory of an object has another.
pub fn has_applied(deliverer: &Value, id: &ObjectId) -> bool {
    let inventory_id = id.inventory_id();
    inventory_ids(deliverer).any(|entry| entry == inventory_id)
}

/// What an object has applied, as inventories name it.
pub fn inventory_ids(deliverer: &Value) -> impl Iterator<Item = &str> {
    let entries = list(deliverer, "/status/inventory/entries").iter();
    entries.map(|entry| text(entry, "/id"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn linked(object: &Value) -> Vec<String> {
        links(object)
            .iter()
            .map(|link| format!("{} {}", link.word, link.id))
            .collect()
    }

    #[test]
    fn what_an_object_needs_is_found_in_its_spec() {
        let meta = json!({"name": "web", "namespace": "shop"});
        for (object, expected) in [
            (
                json!({"kind": "Kustomization", "metadata": meta, "spec": {
                    "sourceRef": {"kind": "GitRepository", "name": "app"},
                    "dependsOn": [{"name": "db"}, {"name": "crds", "namespace": "infra"}]}}),
                vec![
                    "source GitRepository/shop/app",
                    "dependency Kustomization/shop/db",
                    "dependency Kustomization/infra/crds",
                ],
            ),
            (
                json!({"kind": "HelmRelease", "metadata": meta, "spec": {
                    "chart": {"spec": {"sourceRef": {"kind": "HelmRepository", "name": "r", "namespace": "infra"}}}}}),
                vec!["chart HelmChart/infra/shop-web"],
            ),
            (
                json!({"kind": "HelmRelease", "metadata": meta, "spec": {"chartRef": {"kind": "OCIRepository", "name": "web"}}}),
                vec!["chart OCIRepository/shop/web"],
            ),
            (
                json!({"kind": "GitRepository", "metadata": meta, "spec": {"include": [{"repository": {"name": "lib"}}]}}),
                vec!["included GitRepository/shop/lib"],
            ),
            (
                json!({"kind": "ArtifactGenerator", "metadata": meta, "spec": {"sources": [{"kind": "Bucket", "name": "b"}]}}),
                vec!["source Bucket/shop/b"],
            ),
            (
                json!({"kind": "ImagePolicy", "metadata": meta, "spec": {
                    "imageRepositoryRef": {"name": "app", "namespace": "infra"}}}),
                vec!["image ImageRepository/infra/app"],
            ),
            (
                json!({"kind": "ImageUpdateAutomation", "metadata": meta,
                    "spec": {"sourceRef": {"kind": "GitRepository", "name": "fleet"}},
                    "status": {"observedPolicies": {"app": {"name": "r.example/app", "tag": "1"},
                        "tools/app": {"name": "r.example/tool", "tag": "1"}}}}),
                vec![
                    "source GitRepository/shop/fleet",
                    "policy ImagePolicy/shop/app",
                    "policy ImagePolicy/tools/app",
                ],
            ),
            (
                json!({"kind": "ImageUpdateAutomation",
                    "metadata": {"name": "auto", "namespace": "shop", "annotations": {"delivery.windlass.dev/change-policy": "review"}},
                    "spec": {"sourceRef": {"kind": "GitRepository", "name": "fleet"}}}),
                vec![
                    "source GitRepository/shop/fleet",
                    "change policy ChangePolicy/shop/review",
                ],
            ),
            (
                json!({"kind": "ChangeRequest", "metadata": meta,
                    "spec": {"changePolicyRef": {"name": "review"}, "kustomizationRef": {"name": "apps", "namespace": "fleet"}}}),
                vec![
                    "change policy ChangePolicy/shop/review",
                    "kustomization Kustomization/fleet/apps",
                ],
            ),
            (
                json!({"kind": "Alert", "metadata": meta, "spec": {"providerRef": {"name": "chat"}}}),
                vec!["provider Provider/shop/chat"],
            ),
            (json!({"kind": "Kustomization", "metadata": meta}), vec![]),
        ] {
            assert_eq!(linked(&object), expected);
        }
    }

    #[test]
    fn ready_counts_only_for_the_newest_spec() {
        let object = |generation: i64, observed: i64, status: &str| {
            json!({"kind": "Kustomization", "metadata": {"generation": generation}, "status": {
                "observedGeneration": observed, "conditions": [{"type": "Ready", "status": status}]}})
        };
        assert!(is_ready(&object(2, 2, "True")));
        assert!(!is_ready(&object(2, 1, "True")));
        assert!(!is_ready(&object(2, 2, "Unknown")));
        let of_condition = json!({"kind": "ExternalArtifact", "metadata": {"generation": 2}, "status": {
            "conditions": [{"type": "Ready", "status": "True", "observedGeneration": 1}]}});
        assert!(!is_ready(&of_condition));
        let failed = json!({"kind": "Kustomization", "metadata": {"generation": 1}, "status": {"observedGeneration": -1,
            "conditions": [{"type": "Ready", "status": "False", "observedGeneration": 1}]}});
        assert!(is_observed(&failed));
        let static_one = json!({"kind": "Provider", "metadata": {"generation": 2}});
        assert!(is_ready(&static_one));
        let new = json!({"kind": "Kustomization", "metadata": {"generation": 1}, "status": {"observedGeneration": -1}});
        assert_eq!((is_ready(&new), ready(&new).status), (false, "Unknown"));
    }

    #[test]
    fn digests_in_revisions_are_shortened() {
        for (revision, shown) in [
            ("main@sha1:0123456789abcdef", "main@sha1:01234567"),
            ("sha256:0123456789abcdef", "sha256:01234567"),
            ("0123456789abcdef0123456789abcdef01234567", "01234567"),
            ("1.2.3", "1.2.3"),
            ("v1:branch-with-words", "v1:branch-with-words"),
        ] {
            assert_eq!(short_revision(revision), shown);
        }
    }

    #[test]
    fn an_inventory_tells_copies_from_what_was_applied() {
        let deliverer =
            json!({"status": {"inventory": {"entries": [{"id": "shop_web_apps_Deployment", "v": "v1"}]}}});
        let id = |name: &str| ObjectId {
            group: "apps".to_owned(),
            kind: "Deployment".to_owned(),
            namespace: "shop".to_owned(),
            name: name.to_owned(),
        };
        assert!(has_applied(&deliverer, &id("web")) && !has_applied(&deliverer, &id("copy")));
    }

    #[test]
    fn a_source_tells_where_it_is_from_and_not_how_it_signs_in() {
        let address = |kind: &str, url: &str| repository(&json!({"kind": kind, "spec": {"url": url}}));
        assert_eq!(
            address("GitRepository", "https://ana:secret@git.example.com/a/b@c"),
            "https://git.example.com/a/b@c"
        );
        assert_eq!(
            address("GitRepository", "ssh://git@git.example.com"),
            "ssh://git.example.com"
        );
        assert_eq!(address("Kustomization", "https://a"), "");
        assert_eq!(
            address("OCIRepository", "nothing of the kind"),
            "nothing of the kind"
        );
        let bucket = json!({"kind": "Bucket", "spec": {"endpoint": "s3.example.com", "bucketName": "apps"}});
        assert_eq!(repository(&bucket), "s3.example.com/apps");
    }

    #[test]
    fn a_release_tells_its_chart_and_an_object_who_applied_it() {
        let mut release = json!({
            "kind": "HelmRelease", "spec": {"chart": {"spec": {"chart": "./charts/web/"}}},
            "metadata": {"labels": {"kustomize.toolkit.fluxcd.io/name": "apps", "kustomize.toolkit.fluxcd.io/namespace": "shop"}},
        });
        assert_eq!((chart(&release).name, chart(&release).version), ("web", ""));
        release["status"] =
            json!({"history": [{"chartName": "podinfo", "chartVersion": "6.5.0", "appVersion": "6.5"}]});
        let known = chart(&release);
        assert_eq!(
            (known.name, known.version, known.app_version),
            ("podinfo", "6.5.0", "6.5")
        );
        assert_eq!(owner(&release).unwrap().to_string(), "Kustomization/shop/apps");
        let of_release = json!({"metadata": {"labels": {"helm.toolkit.fluxcd.io/name": "a", "helm.toolkit.fluxcd.io/namespace": "b"}}});
        assert_eq!(owner(&of_release).unwrap().to_string(), "HelmRelease/b/a");
        assert_eq!(
            owner(&json!({"metadata": {"labels": {"helm.toolkit.fluxcd.io/name": 1}}})),
            None
        );
    }
}
