//! Objects that the controllers create for themselves and that no release contains.

use api::kustomize::LAST_KNOWN_GOOD_LABEL;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{DeleteParams, ListParams};
use kube::core::NamespaceResourceScope;
use kube::{Api, Client, Resource, ResourceExt};

use super::controllers::{self, COMPONENTS, IMAGES};
use crate::cluster::Failure;

const SECRETS: [&str; 2] = ["windlass-artifact-ca", "notification-controller-state"];
const CONFIG_MAPS: [&str; 1] = ["windlass-artifact-ca"];

/// Deletes Secrets and ConfigMaps of the controllers; returns what was there.
pub(crate) async fn delete(client: &Client, namespace: &str) -> Result<Vec<String>, Failure> {
    let mut gone = Vec::new();
    for name in SECRETS {
        gone.extend(delete_one::<Secret>(client, namespace, name).await?);
    }
    let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let labelled = ListParams::default().labels(LAST_KNOWN_GOOD_LABEL);
    let records = secrets.list_metadata(&labelled).await;
    let records = records.map_err(|error| Failure::request("list Secrets", error))?;
    for record in &records.items {
        gone.extend(delete_one::<Secret>(client, namespace, &record.name_any()).await?);
    }
    for name in CONFIG_MAPS {
        gone.extend(delete_one::<ConfigMap>(client, namespace, name).await?);
    }
    Ok(gone)
}

/// Deletes the Leases of the controllers, those of their shards too; returns what was there. Flux's have the same names: those
/// of components that are at work stay, as two would take themselves for the leader.
pub(crate) async fn delete_leases(client: &Client, namespace: &str) -> Result<Vec<String>, Failure> {
    let at_work = controllers::at_work(&controllers::find(client).await?, namespace);
    let leases: Api<Lease> = Api::namespaced(client.clone(), namespace);
    let found = leases.list(&ListParams::default()).await;
    let found = found.map_err(|error| Failure::request("list leases", error))?;
    let mut gone = Vec::new();
    for name in found
        .iter()
        .map(ResourceExt::name_any)
        .filter(|name| is_lease(name, &at_work))
    {
        gone.extend(delete_one::<Lease>(client, namespace, &name).await?);
    }
    Ok(gone)
}

/// The Leases that are named after no component: our image-controller holds that of Flux's second image controller, too.
const FURTHER_LEASES: [(&str, &str); 1] = [("image-automation-controller", IMAGES)];

fn is_lease(name: &str, at_work: &[String]) -> bool {
    let is_at_work = |component: &str| at_work.iter().any(|one| one == component);
    let own = COMPONENTS.map(|component| (component, component));
    let ended = own
        .into_iter()
        .chain(FURTHER_LEASES)
        .filter(|(lease, component)| !is_at_work(lease) && !is_at_work(component));
    ended.into_iter().any(|(lease, _)| {
        let rest = name
            .strip_prefix(lease)
            .and_then(|rest| rest.strip_prefix("-leader-election"));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    })
}

async fn delete_one<K>(client: &Client, namespace: &str, name: &str) -> Result<Option<String>, Failure>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
        + Clone
        + std::fmt::Debug
        + serde::de::DeserializeOwned,
{
    let objects: Api<K> = Api::namespaced(client.clone(), namespace);
    let id = format!("{}/{namespace}/{name}", K::kind(&()));
    match objects.delete(name, &DeleteParams::default()).await {
        Ok(_) => Ok(Some(id)),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(Failure::request(format!("delete {id}"), error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_leases_of_the_controllers_go() {
        for (name, expected) in [
            ("source-controller-leader-election", true),
            ("helm-controller-leader-election-1a2b3c4d", true),
            ("image-automation-controller-leader-election", true),
            ("source-controller", false),
            ("windlass-cli", false),
        ] {
            assert_eq!(is_lease(name, &[]), expected, "{name}");
            assert!(!is_lease(name, &COMPONENTS.map(str::to_owned)), "{name}");
        }
    }
}
