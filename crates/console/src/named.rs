//! The further clusters that the administrator names in one namespace.
//!
//! A cluster is named by a Secret with a kubeconfig or a ConfigMap that describes it, as Kustomizations use them, with the label
//! `windlass.dev/cluster: NAME`; or by a GitopsCluster. A cluster of a tenant's Kustomization is none of these: the console
//! goes to no address that a tenant chose.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use access_review::Reviews;
use api::meta::{KubeConfigReference, LocalObjectReference, SecretKeyReference};
use cluster_access::targets::{Placement, Targets};
use console_server::clusters::{Hand, Other, Shown};
use controller_kit::Context as Kit;
use controller_kit::events::Recorder;
use delivery_graph::object;
use fleet::watch::Reach;
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::ResourceExt as _;
use kube::api::{Api, ApiResource, DynamicObject, PartialObjectMeta};
use kube::runtime::reflector::{self, Store};
use kube::runtime::utils::Backoff;
use kube::runtime::{WatchStreamExt as _, watcher};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

/// Has the name of the cluster that a Secret or ConfigMap describes.
const LABEL: &str = "windlass.dev/cluster";
/// On the same object: service accounts of this cluster are the same there.
const SHARED_ACCOUNTS: &str = "windlass.dev/shared-service-accounts";
/// A cluster that cannot be reached is tried again after so long, at first and at most.
const RETRY: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(60));

/// The pause of a watch of a kind that most clusters do not have.
struct EachMinute;

impl Iterator for EachMinute {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        Some(Duration::from_secs(60))
    }
}

impl Backoff for EachMinute {
    fn reset(&mut self) {}
}

/// How a cluster is reached.
#[derive(Debug, Clone, PartialEq)]
struct Registration {
    reference: KubeConfigReference,
    shares_accounts: bool,
    /// Changes when what describes the cluster does.
    version: String,
}

/// Follows the clusters that a namespace names, and fills the picture with what they have. It ends when it is dropped.
pub async fn follow(shown: &Shown, home: &str, kit: &Kit, targets: Targets, namespace: &str) {
    let (client, targets) = (kit.client.clone(), Arc::new(targets));
    let secrets: Api<PartialObjectMeta<Secret>> = Api::namespaced(client.clone(), namespace);
    let maps: Api<PartialObjectMeta<ConfigMap>> = Api::namespaced(client.clone(), namespace);
    let gitops: Api<DynamicObject> = Api::namespaced_with(client, namespace, &gitops_cluster());
    let (known_secrets, writer) = reflector::store();
    // Only what they are called, and whether they have changed: what they hold is read when it is used.
    let secrets = watcher(secrets, watcher::Config::default()).default_backoff();
    let secrets = secrets.reflect(writer).map(|event| told("secrets", event));
    let (known_maps, writer) = reflector::store();
    let maps = watcher(maps, watcher::Config::default().labels(LABEL)).default_backoff();
    let maps = maps.reflect(writer).map(|event| told("configmaps", event));
    let writer = reflector::store::Writer::new(gitops_cluster());
    let known_gitops = writer.as_reader();
    let gitops = watcher(gitops, watcher::Config::default()).backoff(EachMinute);
    let gitops = gitops.reflect(writer).map(|event| told("gitopsclusters", event));
    let events = futures::stream::select_all([secrets.boxed(), maps.boxed(), gitops.boxed()]);
    futures::pin_mut!(events);
    let mut running: HashMap<Arc<str>, (Registration, AbortOnDropHandle<()>)> = HashMap::new();
    while let Some(is_list) = events.next().await {
        if !is_list {
            continue;
        }
        let wanted = registrations(home, &known_secrets, &known_maps, &known_gitops);
        let gone = running.extract_if(|name, (known, _)| wanted.get(name) != Some(known));
        for (name, (_, task)) in gone.collect::<Vec<_>>() {
            task.abort();
            // It must not write any more when its rows are taken out.
            let _ = task.await;
            if !wanted.contains_key(&name) {
                shown.forget(&name);
            }
        }
        for (name, registration) in wanted {
            if running.contains_key(&name) {
                continue;
            }
            let watching = watch(
                shown.clone(),
                kit.recorder.clone(),
                targets.clone(),
                namespace.to_owned(),
                name.clone(),
                registration.clone(),
            );
            let task = AbortOnDropHandle::new(tokio::spawn(watching));
            running.insert(name, (registration, task));
        }
    }
}

/// Watches a cluster. One that cannot be reached is tried again.
async fn watch(
    shown: Shown,
    recorder: Recorder,
    targets: Arc<Targets>,
    namespace: String,
    name: Arc<str>,
    registration: Registration,
) {
    let mut pause = RETRY.0;
    loop {
        let placement = Placement {
            namespace: &namespace,
            service_account: None,
            kube_config: Some(&registration.reference),
        };
        match targets.target_of(placement).await {
            Ok(target) => {
                let token = CancellationToken::new();
                let _ending = token.clone().drop_guard();
                let recorder = recorder.beside(target.client.clone(), crate::NAME, token);
                let reviews = Arc::new(Reviews::for_remote(target.client.clone()));
                let hand = Hand {
                    client: target.client.clone(),
                    recorder,
                };
                let other = Other {
                    reviews,
                    hand,
                    shares_accounts: registration.shares_accounts,
                    reach: Reach::default(),
                };
                shown.watch(&name, other).await;
                return;
            }
            Err(error) => {
                // Callers need not know where it is; the log says it.
                tracing::warn!(cluster = &*name, %error, "a cluster cannot be reached");
                let picture = &shown.picture;
                picture.unreachable(&name, "it cannot be reached; the log of the console says why");
            }
        }
        tokio::time::sleep(pause).await; // until the cluster may be there again
        pause = (2 * pause).min(RETRY.1);
    }
}

/// Returns whether the stores have changed.
fn told<K>(kind: &str, event: watcher::Result<watcher::Event<K>>) -> bool {
    use watcher::Event;
    match event {
        Ok(Event::Apply(_) | Event::Delete(_) | Event::InitDone) => true,
        Ok(Event::Init | Event::InitApply(_)) => false,
        Err(error) if fleet::watch::is_not_served(&error) => false,
        Err(error) => {
            tracing::warn!(%error, "{kind} cannot be watched: clusters that they name are not noticed");
            false
        }
    }
}

type Metadata<K> = Store<PartialObjectMeta<K>>;

/// The clusters that are named. Of several with one name the first counts: ConfigMaps, Secrets, GitopsClusters, by name.
fn registrations(
    home: &str,
    secrets: &Metadata<Secret>,
    maps: &Metadata<ConfigMap>,
    gitops: &Store<DynamicObject>,
) -> BTreeMap<Arc<str>, Registration> {
    let mut named = Vec::new();
    let maps = sorted(maps);
    for map in &maps {
        let reference = KubeConfigReference {
            config_map_ref: Some(LocalObjectReference { name: map.name_any() }),
            secret_ref: None,
        };
        named.extend(labelled(&**map, reference));
    }
    let secrets = sorted(secrets);
    for secret in &secrets {
        named.extend(labelled(&**secret, of_secret(&secret.name_any())));
    }
    for cluster in sorted(gitops) {
        let Some(name) = secret_of(&cluster) else {
            continue;
        };
        let secret = secrets.iter().find(|secret| secret.name_any() == name);
        let version = secret.and_then(|secret| secret.resource_version());
        let registration = Registration {
            reference: of_secret(&name),
            shares_accounts: is_shared(&*cluster),
            version: version.unwrap_or_default(),
        };
        named.push((Arc::from(cluster.name_any()), registration));
    }
    let mut clusters = BTreeMap::new();
    for (name, registration) in named {
        if *name == *home || clusters.contains_key(&name) {
            tracing::warn!(cluster = &*name, "there is a cluster of this name already");
        } else {
            clusters.insert(name, registration);
        }
    }
    clusters
}

fn labelled(
    object: &impl kube::Resource,
    reference: KubeConfigReference,
) -> Option<(Arc<str>, Registration)> {
    let name = object.labels().get(LABEL).filter(|name| !name.is_empty())?;
    let registration = Registration {
        reference,
        shares_accounts: is_shared(object),
        version: object.resource_version().unwrap_or_default(),
    };
    Some((name.as_str().into(), registration))
}

fn is_shared(object: &impl kube::Resource) -> bool {
    let value = object.annotations().get(SHARED_ACCOUNTS);
    value.is_some_and(|value| value == "true")
}

fn of_secret(name: &str) -> KubeConfigReference {
    KubeConfigReference {
        config_map_ref: None,
        secret_ref: Some(SecretKeyReference {
            name: name.to_owned(),
            key: None,
        }),
    }
}

/// The Secret that a GitopsCluster names, or that Cluster API makes for the cluster that it names.
fn secret_of(cluster: &DynamicObject) -> Option<String> {
    let named = object::text(&cluster.data, "/spec/secretRef/name");
    if !named.is_empty() {
        return Some(named.to_owned());
    }
    let made = object::text(&cluster.data, "/spec/capiClusterRef/name");
    (!made.is_empty()).then(|| format!("{made}-kubeconfig"))
}

fn sorted<K>(store: &Store<K>) -> Vec<Arc<K>>
where
    K: kube::Resource + Clone + 'static,
    K::DynamicType: Eq + std::hash::Hash + Clone,
{
    let mut objects = store.state();
    objects.sort_by_key(|object| object.name_any());
    objects
}

fn gitops_cluster() -> ApiResource {
    ApiResource {
        group: "gitops.weave.works".to_owned(),
        version: "v1alpha1".to_owned(),
        api_version: "gitops.weave.works/v1alpha1".to_owned(),
        kind: "GitopsCluster".to_owned(),
        plural: "gitopsclusters".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use kube::core::TypeMeta;
    use serde_json::{Value, json};

    use super::*;

    fn metadata<K>(objects: &[Value]) -> Metadata<K>
    where
        K: kube::Resource<DynamicType = ()> + Clone + 'static,
    {
        let (store, mut writer) = reflector::store();
        writer.apply_watcher_event(&watcher::Event::Init);
        for object in objects {
            let object = serde_json::from_value(json!({"metadata": object})).unwrap();
            writer.apply_watcher_event(&watcher::Event::InitApply(object));
        }
        writer.apply_watcher_event(&watcher::Event::InitDone);
        store
    }

    fn gitops(objects: &[(&str, Value)]) -> Store<DynamicObject> {
        let mut writer = reflector::store::Writer::new(gitops_cluster());
        writer.apply_watcher_event(&watcher::Event::Init);
        for (name, spec) in objects {
            let object = DynamicObject {
                types: Some(TypeMeta::default()),
                metadata: serde_json::from_value(json!({"name": name, "namespace": "c"})).unwrap(),
                data: json!({"spec": spec}),
            };
            writer.apply_watcher_event(&watcher::Event::InitApply(object));
        }
        writer.apply_watcher_event(&watcher::Event::InitDone);
        writer.as_reader()
    }

    #[test]
    fn each_way_names_a_cluster_once() {
        let label = |name: &str| json!({LABEL: name});
        let secrets = metadata(&[
            json!({"name": "a", "namespace": "c", "labels": label("prod"), "resourceVersion": "7",
                "annotations": {SHARED_ACCOUNTS: "true"}}),
            json!({"name": "b", "namespace": "c", "labels": label("prod")}),
            json!({"name": "h", "namespace": "c", "labels": label("home")}),
            json!({"name": "n", "namespace": "c", "labels": label("")}),
            json!({"name": "mine-kubeconfig", "namespace": "c", "resourceVersion": "9"}),
        ]);
        let maps = metadata(&[json!({"name": "m", "namespace": "c", "labels": label("cloud")})]);
        let gitops = gitops(&[
            ("cloud", json!({"secretRef": {"name": "x"}})),
            ("leaf", json!({"capiClusterRef": {"name": "mine"}})),
            ("empty", json!({})),
        ]);
        let found = registrations("home", &secrets, &maps, &gitops);
        let names: Vec<&str> = found.keys().map(|name| &**name).collect();
        assert_eq!(names, ["cloud", "leaf", "prod"]);
        let secret = |name: &str| found[name].reference.secret_ref.clone().unwrap().name;
        assert_eq!(
            (secret("prod"), secret("leaf")),
            ("a".to_owned(), "mine-kubeconfig".to_owned())
        );
        assert!(found["prod"].shares_accounts && !found["leaf"].shares_accounts);
        assert_eq!(
            (&*found["prod"].version, &*found["leaf"].version),
            ("7", "9"),
            "a new kubeconfig is noticed"
        );
        assert!(found["cloud"].reference.config_map_ref.is_some());
    }
}
