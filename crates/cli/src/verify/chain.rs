//! From the images that the Pods of an object run to the signature of the commit: every link, broken ones first.

use std::collections::{BTreeMap, BTreeSet};

use artifact::Digest;
use delivery_graph::climb::{APPLIED_BY, MADE_OF, climb};
use delivery_graph::field_managers::{self, Program};
use delivery_graph::object::{self, list, text};
use delivery_graph::walk::{Finding, State};
use delivery_graph::{kind, one_line};
use delivery_statement::FETCHED;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use kube::Api;
use kube::api::ListParams;
use kube::core::Selector;
use manifest::ObjectId;
use oci_client::image_name::ImageName;
use serde::Serialize;
use serde_json::Value;
use signature::cosign::PublicKey;
use verification_policy::images;
use verification_policy::scope::Way;

use super::statement;
use super::trust::{Signed, Trust};
use crate::cluster::anything::Named;
use crate::cluster::output::{self, Cell, Colours, Tone};
use crate::cluster::{Cluster, Failure, Output, Reader, print};

/// Digests of one image that are verified: Pods that are replaced run another one for a while.
const MAX_DIGESTS: usize = 5;
/// Conditions that say whether a source was verified.
const SAYS_VERIFIED: [&str; 2] = ["SourceVerified", "PoliciesMet"];

/// How firm a link is, the weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Verdict {
    Broken,
    Unproven,
    Good,
}

/// A link of the chain.
#[derive(Debug, Serialize)]
pub(super) struct Link {
    link: &'static str,
    object: String,
    pub(super) verdict: Verdict,
    pub(super) message: String,
}

impl Link {
    pub(super) fn new(
        link: &'static str,
        object: impl Into<String>,
        verdict: Verdict,
        message: impl Into<String>,
    ) -> Self {
        let (object, message): (String, String) = (object.into(), message.into());
        Self {
            link,
            object: one_line(&object),
            verdict,
            message: one_line(&message),
        }
    }
}

/// Verifies all links of an object, and prints them.
pub(super) async fn run(
    cluster: &Cluster,
    named: &Named,
    (trust, delivery_keys): (&Trust<'_>, &[PublicKey]),
    is_json: bool,
) -> Result<(), Failure> {
    let object = cluster.need_named(named).await?;
    let found = climb(&Reader::new(cluster), &object).await;
    let mut links = images(cluster, &object, &found, trust).await;
    links.extend(by_hand(&object));
    links.extend(deliveries(cluster, &object, &found, delivery_keys).await);
    // Those of one verdict stay in the order of the chain.
    links.sort_by_key(|link| link.verdict);
    let text = match is_json {
        true => {
            let links = serde_json::to_value(&links).map_err(|error| Failure::Write(error.to_string()))?;
            output::document(&links, Output::Json)?
        }
        false => table(&links),
    };
    print(&text)?;
    let weak = links.iter().filter(|link| link.verdict != Verdict::Good).count();
    match weak {
        0 => Ok(()),
        _ => Err(Failure::NotReady(format!(
            "{weak} of {} links from the image to the commit are not good",
            links.len()
        ))),
    }
}

fn table(links: &[Link]) -> String {
    let rows: Vec<_> = links
        .iter()
        .map(|link| {
            let (word, tone) = match link.verdict {
                Verdict::Broken => ("broken", Tone::Bad),
                Verdict::Unproven => ("unproven", Tone::Open),
                Verdict::Good => ("good", Tone::Good),
            };
            vec![
                Cell::toned(word, tone),
                link.link.to_owned().into(),
                link.object.clone().into(),
                link.message.clone().into(),
            ]
        })
        .collect();
    output::table(
        &["VERDICT", "LINK", "OBJECT", "MESSAGE"],
        &rows,
        Colours::of_terminal(),
    )
}

/// What Pods run, and who signed it.
async fn images(cluster: &Cluster, object: &Value, found: &Finding, trust: &Trust<'_>) -> Vec<Link> {
    let Some(fields) = object.as_object() else {
        return Vec::new();
    };
    let deliverer = deliverers(found).next().map(|one| one.object.clone());
    let from = deliverer.as_deref().and_then(|id| id.split('/').nth(1));
    let to = object::namespace(object);
    let way = Way {
        from: from.unwrap_or(to),
        to,
    };
    let mut links = Vec::new();
    let pods = pods(cluster, object).await.unwrap_or_else(|why| {
        let id = object::id(object).to_string();
        links.push(Link::new("image", id, Verdict::Unproven, why));
        Vec::new()
    });
    let named = images::named(fields);
    // Pods may run what the object does not name: an earlier revision, and containers that others add.
    let of_pods = pods.iter().filter_map(Value::as_object).flat_map(images::named);
    for text in of_pods.chain(named.iter().copied()).collect::<BTreeSet<_>>() {
        let image = match ImageName::parse(text) {
            Ok(image) => image,
            Err(error) => {
                links.push(Link::new("image", text, Verdict::Broken, error.to_string()));
                continue;
            }
        };
        let running = running(&pods, text);
        links.push(match named.contains(text) {
            true => runs(text, &image, &running),
            false => {
                let message = "Pods run it, and the object does not name it: an earlier revision, or a container that others add";
                Link::new("image", text, Verdict::Unproven, message)
            }
        });
        let mut digests: Vec<Digest> = running.keys().flatten().copied().take(MAX_DIGESTS).collect();
        if digests.is_empty() {
            let known = match image.digest {
                Some(digest) => Ok(digest),
                None => trust.digest(&image).await,
            };
            match known {
                Ok(digest) => digests.push(digest),
                Err(why) => links.push(Link::new("signature", text, Verdict::Unproven, why)),
            }
        }
        for digest in digests {
            let (verdict, message) = match trust.judge(&image, digest, way).await {
                Signed::Good(by) => (Verdict::Good, by),
                Signed::Broken(why) => (Verdict::Broken, why),
                Signed::Unknown(why) => (Verdict::Unproven, why),
            };
            let name = format!("{}@{digest}", image.repository());
            links.push(Link::new("signature", name, verdict, message));
        }
    }
    links
}

/// The Pods of an object: itself, or those that its selector finds. Of Jobs, those that have ended, too.
async fn pods(cluster: &Cluster, object: &Value) -> Result<Vec<Value>, String> {
    let kind = text(object, "/kind");
    if kind == "Pod" {
        return Ok(vec![object.clone()]);
    }
    let selector = object.pointer("/spec/selector").cloned().unwrap_or_default();
    let selector = serde_json::from_value::<LabelSelector>(selector).ok();
    let selector = selector.and_then(|selector| Selector::try_from(selector).ok());
    let selector = selector.map(|selector| selector.to_string()).unwrap_or_default();
    if selector.is_empty() {
        return Ok(Vec::new());
    }
    let api: Api<Pod> = Api::namespaced(cluster.client(), object::namespace(object));
    let pods = api.list(&ListParams::default().labels(&selector)).await;
    let pods =
        pods.map_err(|error| format!("its Pods cannot be listed: {}", error_chain::condensed(&error)))?;
    let pods = pods.items.iter().filter_map(|pod| serde_json::to_value(pod).ok());
    let runs = |pod: &Value| kind == "Job" || !matches!(text(pod, "/status/phase"), "Succeeded" | "Failed");
    Ok(pods.filter(runs).collect())
}

/// How many containers run an image with which digest; None where the node does not tell it.
fn running(pods: &[Value], image: &str) -> BTreeMap<Option<Digest>, usize> {
    let mut running = BTreeMap::new();
    for pod in pods {
        for (containers, statuses) in [
            ("/spec/containers", "/status/containerStatuses"),
            ("/spec/initContainers", "/status/initContainerStatuses"),
        ] {
            let of_image = list(pod, containers)
                .iter()
                .filter(|one| text(one, "/image") == image);
            let names: BTreeSet<_> = of_image.map(|one| text(one, "/name")).collect();
            let statuses = list(pod, statuses).iter();
            for status in statuses.filter(|one| names.contains(text(one, "/name"))) {
                let id = text(status, "/imageID");
                let digest = id.rsplit_once('@').map_or(id, |(_, digest)| digest);
                *running.entry(digest.parse().ok()).or_default() += 1;
            }
        }
    }
    running
}

fn runs(text: &str, image: &ImageName, running: &BTreeMap<Option<Digest>, usize>) -> Link {
    let link = |verdict, message: String| Link::new("image", text, verdict, message);
    let known: Vec<_> = running
        .iter()
        .filter_map(|(digest, count)| Some((digest.as_ref()?, count)))
        .collect();
    match (known.as_slice(), image.digest) {
        ([], _) if running.is_empty() => link(Verdict::Unproven, "no Pod of it was seen to run".to_owned()),
        ([], _) => link(
            Verdict::Unproven,
            "the nodes do not tell which digest runs".to_owned(),
        ),
        ([(digest, _)], Some(wanted)) if **digest != wanted => {
            link(Verdict::Broken, format!("{digest} runs, and not {wanted}"))
        }
        ([(digest, 1)], _) => link(Verdict::Good, format!("1 container runs {digest}")),
        ([(digest, count)], _) => link(Verdict::Good, format!("{count} containers run {digest}")),
        (several, _) => {
            let several = several.iter();
            let several = several.map(|(digest, count)| format!("{digest} ({count})"));
            let several = several.collect::<Vec<_>>().join(", ");
            link(Verdict::Broken, format!("several digests run: {several}"))
        }
    }
}

/// Images that a person set past what delivers the object.
fn by_hand(object: &Value) -> Vec<Link> {
    let metadata = object.get("metadata").cloned().unwrap_or_default();
    let metadata: ObjectMeta = serde_json::from_value(metadata).unwrap_or_default();
    let writes = field_managers::writes(&metadata);
    let by_persons = writes.filter(|write| Program::from_manager(&write.manager) == Program::Person);
    by_persons
        .filter(|write| write.paths.iter().any(|path| path.ends_with(".image")))
        .map(|write| {
            let at = write.at.map(|at| format!(" at {at}")).unwrap_or_default();
            let message = format!("its image was set by {}{at}", write.manager);
            Link::new("fields", object::id(object).to_string(), Verdict::Broken, message)
        })
        .collect()
}

/// What delivers it, one above the other, and what that is made of.
async fn deliveries(cluster: &Cluster, object: &Value, found: &Finding, keys: &[PublicKey]) -> Vec<Link> {
    let mut links = Vec::new();
    let mut below = Some(object::id(object));
    for deliverer in deliverers(found) {
        let is_itself = deliverer.object == found.object;
        let of = below.as_ref().filter(|_| !is_itself);
        let read = match kind::parse_id(&deliverer.object) {
            Some(id) => cluster.get(&id).await.ok().flatten(),
            None => None,
        };
        links.push(delivery(deliverer, read.as_ref(), of));
        links.extend(read.as_ref().and_then(fetched));
        if !keys.is_empty() {
            links.push(statement::link(&deliverer.object, read.as_ref(), of, keys));
        }
        below = kind::parse_id(&deliverer.object);
        let mut sources = Vec::new();
        collect_sources(deliverer, &mut sources);
        for source in sources {
            links.push(commit(cluster, source).await);
        }
    }
    if links.is_empty() {
        let message = "nothing of Flux delivers it";
        links.push(Link::new(
            "delivery",
            found.object.clone(),
            Verdict::Broken,
            message,
        ));
    }
    links
}

/// What was fetched for a build from elsewhere: no source has verified it.
fn fetched(deliverer: &Value) -> Option<Link> {
    let newest = list(deliverer, "/status/history").first()?;
    let fetched = newest.get("metadata")?.get(FETCHED)?.as_str()?;
    let message = format!("it is also made of what its build fetched, which nothing has verified: {fetched}");
    Some(Link::new(
        "source",
        object::id(deliverer).to_string(),
        Verdict::Unproven,
        message,
    ))
}

/// Whether something has applied an object: labels say so, which anyone may set, and the inventory must have it.
fn delivery(deliverer: &Finding, read: Option<&Value>, below: Option<&ObjectId>) -> Link {
    let link = |verdict, message: String| Link::new("delivery", deliverer.object.clone(), verdict, message);
    let (verdict, message) = match deliverer.state {
        State::Ready => (Verdict::Good, format!("has applied {}", deliverer.revision)),
        State::Behind => (
            Verdict::Good,
            format!(
                "has applied {}; its source has a newer revision",
                deliverer.revision
            ),
        ),
        State::Suspended => (
            Verdict::Unproven,
            format!("is suspended at {}", deliverer.revision),
        ),
        State::NotReady | State::Absent | State::Unreadable => (Verdict::Broken, deliverer.message.clone()),
    };
    let Some(below) = below.filter(|_| verdict != Verdict::Broken) else {
        return link(verdict, message);
    };
    in_inventory(read, below, link, (verdict, message))
}

fn in_inventory(
    deliverer: Option<&Value>,
    below: &ObjectId,
    link: impl Fn(Verdict, String) -> Link,
    (verdict, message): (Verdict, String),
) -> Link {
    match deliverer.filter(|deliverer| deliverer.pointer("/status/inventory").is_some()) {
        None => link(
            Verdict::Unproven,
            format!("{message}, and has no inventory that can be read"),
        ),
        Some(deliverer) if object::has_applied(deliverer, below) => link(verdict, message),
        Some(_) => link(
            Verdict::Broken,
            format!("labels of {below} say that this has applied it, and its inventory does not have it"),
        ),
    }
}

fn deliverers(found: &Finding) -> impl Iterator<Item = &Finding> {
    let is_deliverer = |one: &&Finding| {
        let kind = one.object.split('/').next().unwrap_or_default();
        matches!(kind, "Kustomization" | "HelmRelease" | "ResourceSet")
    };
    let chain = found.chain().into_iter().enumerate();
    let above = chain.filter(|(place, one)| *place == 0 || one.role == APPLIED_BY);
    above.map(|(_, one)| one).filter(is_deliverer)
}

fn collect_sources<'f>(found: &'f Finding, sources: &mut Vec<&'f Finding>) {
    for source in found.because.iter().filter(|cause| cause.role == MADE_OF) {
        sources.push(source);
        collect_sources(source, sources);
    }
}

/// Whether a source was verified when it was fetched.
async fn commit(cluster: &Cluster, source: &Finding) -> Link {
    let link = |verdict, message: String| Link::new("source", source.object.clone(), verdict, message);
    let Some(id) = kind::parse_id(&source.object) else {
        return link(Verdict::Unproven, "it is no source of Flux".to_owned());
    };
    let object = match cluster.get(&id).await {
        Ok(Some(object)) => object,
        Ok(None) => return link(Verdict::Broken, "it is not there".to_owned()),
        Err(error) => return link(Verdict::Unproven, error.to_string()),
    };
    verified(&object, link)
}

fn verified(object: &Value, link: impl Fn(Verdict, String) -> Link) -> Link {
    let generation = object.pointer("/metadata/generation");
    let revision = text(object, "/status/artifact/revision");
    let is_verdict = |one: &&Value| SAYS_VERIFIED.contains(&text(one, "/type"));
    let verdicts: Vec<_> = list(object, "/status/conditions")
        .iter()
        .filter(is_verdict)
        .collect();
    let message = |one: &Value| text(one, "/message").to_owned();
    if let Some(bad) = verdicts.iter().find(|one| text(one, "/status") != "True") {
        return link(Verdict::Broken, message(bad));
    }
    if verdicts.is_empty() {
        let why = "spec.verify is not set, and no VerificationPolicy applies to it";
        return link(Verdict::Unproven, format!("{revision} is not verified: {why}"));
    }
    let is_of_spec = |one: &&Value| one.get("observedGeneration") == generation;
    let good: Vec<_> = verdicts.iter().copied().filter(is_of_spec).map(message).collect();
    match good.is_empty() {
        true => link(
            Verdict::Unproven,
            "its spec has changed since it was verified".to_owned(),
        ),
        false => link(Verdict::Good, format!("{revision}: {}", good.join("; "))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ONE: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    const TWO: &str = "sha256:ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb";

    fn pod(ids: &[&str]) -> Value {
        let names = 0..ids.len();
        let containers: Vec<_> = names
            .map(|n| json!({"name": format!("c{n}"), "image": "app:1"}))
            .collect();
        let statuses = ids.iter().enumerate();
        let statuses: Vec<_> = statuses
            .map(|(n, id)| json!({"name": format!("c{n}"), "imageID": id}))
            .collect();
        json!({"spec": {"containers": containers}, "status": {"containerStatuses": statuses}})
    }

    #[test]
    fn what_pods_run_is_told_by_their_nodes() {
        let verdict = |image: &str, pods: &[Value]| {
            let running = running(pods, "app:1");
            let link = runs(image, &ImageName::parse(image).unwrap(), &running);
            (link.verdict, link.message)
        };
        let (one, two) = (format!("docker.io/library/app@{ONE}"), format!("x@{TWO}"));
        let said = |text: &str| text.to_owned();
        assert_eq!(verdict("app:1", &[]).0, Verdict::Unproven);
        assert_eq!(
            verdict("app:1", &[pod(&["", "sha256:short"])]).0,
            Verdict::Unproven
        );
        assert_eq!(
            verdict("app:1", &[pod(&[&one]), pod(&[ONE])]),
            (Verdict::Good, said(&format!("2 containers run {ONE}")))
        );
        assert_eq!(verdict("app:1", &[pod(&[&one, &two])]).0, Verdict::Broken);
        let pinned = format!("app:1@{TWO}");
        assert_eq!(
            verdict(&pinned, &[pod(&[&one])]),
            (Verdict::Broken, said(&format!("{ONE} runs, and not {TWO}")))
        );
    }

    #[test]
    fn labels_alone_are_no_delivery() {
        let below = ObjectId {
            group: "apps".to_owned(),
            kind: "Deployment".to_owned(),
            namespace: "n".to_owned(),
            name: "web".to_owned(),
        };
        let verdict = |deliverer: Option<Value>| {
            let link = |verdict, message: String| Link::new("delivery", "k", verdict, message);
            let good = (Verdict::Good, "has applied it".to_owned());
            in_inventory(deliverer.as_ref(), &below, link, good).verdict
        };
        let inventory = |ids: &[&str]| {
            let entries: Vec<_> = ids.iter().map(|id| json!({"id": id, "v": "v1"})).collect();
            Some(json!({"status": {"inventory": {"entries": entries}}}))
        };
        assert_eq!(verdict(inventory(&["n_web_apps_Deployment"])), Verdict::Good);
        assert_eq!(verdict(inventory(&["n_other_apps_Deployment"])), Verdict::Broken);
        assert_eq!(verdict(Some(json!({"status": {}}))), Verdict::Unproven);
        assert_eq!(verdict(None), Verdict::Unproven);
    }

    #[test]
    fn what_a_build_fetched_is_not_proven() {
        let history = |metadata: Value| json!({"kind": "Kustomization", "status": {"history": [{"metadata": metadata}]}});
        assert!(fetched(&history(json!({"revision": "main@sha1:1"}))).is_none());
        let link = fetched(&history(json!({FETCHED: "https://example.com/base v1@sha1:1"}))).unwrap();
        assert_eq!(link.verdict, Verdict::Unproven);
        assert!(link.message.ends_with("https://example.com/base v1@sha1:1"));
    }

    #[test]
    fn a_source_is_as_good_as_its_verification() {
        let source = |condition: Value| {
            let object = json!({
                "metadata": {"generation": 2},
                "status": {"artifact": {"revision": "main@sha1:1"}, "conditions": [condition]},
            });
            verified(&object, |verdict, message| {
                Link::new("source", "s", verdict, message)
            })
            .verdict
        };
        let condition = |status: &str, generation: u8| json!({"type": "SourceVerified", "status": status, "observedGeneration": generation, "message": "m"});
        assert_eq!(source(condition("True", 2)), Verdict::Good);
        assert_eq!(source(condition("True", 1)), Verdict::Unproven);
        assert_eq!(source(condition("False", 2)), Verdict::Broken);
        assert_eq!(source(json!({"type": "Ready"})), Verdict::Unproven);
        let policies =
            |status: &str| json!({"type": "PoliciesMet", "status": status, "observedGeneration": 2});
        assert_eq!(source(policies("True")), Verdict::Good);
        assert_eq!(source(policies("False")), Verdict::Broken);
    }
}
