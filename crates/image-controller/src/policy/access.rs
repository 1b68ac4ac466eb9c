//! Decides whether a policy may refer to a repository in another namespace.

use api::image::{ImagePolicy, ImageRepository};
use api::meta::AccessFrom;
use controller_kit::ObjectKey;
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client};
use std::collections::BTreeMap;

/// A reference that is not allowed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Denied {
    /// The controller does not allow it.
    #[error("cannot access '{0}', cross-namespace references have been blocked")]
    Blocked(ObjectKey),
    /// The owner of the repository does not allow it.
    #[error("'{0}' can't be accessed due to missing ACL labels on 'accessFrom'")]
    NotListed(ObjectKey),
    /// It cannot be found out.
    #[error("failed to read the labels of namespace '{namespace}'")]
    ReadNamespace {
        /// Of the policy.
        namespace: String,
        /// Why not.
        #[source]
        source: Box<kube::Error>,
    },
}

/// Checks what needs no repository, so that nothing is learned about those that may not be referred to.
pub(crate) fn check_reference(
    policy: &ImagePolicy,
    repository: &ObjectKey,
    is_blocked: bool,
) -> Result<(), Denied> {
    let own = policy.metadata.namespace.as_deref().unwrap_or_default();
    if is_blocked && own != repository.namespace {
        return Err(Denied::Blocked(repository.clone()));
    }
    Ok(())
}

/// Checks what the repository's owner allows.
pub(crate) async fn check(
    policy: &ImagePolicy,
    repository: &ImageRepository,
    client: &Client,
) -> Result<(), Denied> {
    let own = policy.metadata.namespace.as_deref().unwrap_or_default();
    if repository.metadata.namespace.as_deref() == Some(own) {
        return Ok(());
    }
    let denied = || Denied::NotListed(ObjectKey::from_object(repository));
    let Some(access) = &repository.spec.access_from else {
        return Err(denied());
    };
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace = namespaces.get_metadata(own).await;
    let namespace = namespace.map_err(|source| Denied::ReadNamespace {
        namespace: own.to_owned(),
        source: Box::new(source),
    })?;
    let labels = namespace.metadata.labels.unwrap_or_default();
    if is_listed(access, &labels) {
        Ok(())
    } else {
        Err(denied())
    }
}

fn is_listed(access: &AccessFrom, labels: &BTreeMap<String, String>) -> bool {
    access.namespace_selectors.iter().any(|selector| {
        let mut wanted = selector.match_labels.iter();
        wanted.all(|(key, value)| labels.get(key) == Some(value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn one_selector_with_all_labels_is_enough() {
        let access = |value| serde_json::from_value::<AccessFrom>(value).unwrap();
        let labels = [("team", "a"), ("env", "dev")];
        let labels = labels
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into();
        for (selectors, expected) in [
            (json!([]), false),
            (json!([{}]), true),
            (json!([{"matchLabels": {"team": "a"}}]), true),
            (json!([{"matchLabels": {"team": "a", "env": "prod"}}]), false),
            (
                json!([{"matchLabels": {"x": "y"}}, {"matchLabels": {"env": "dev"}}]),
                true,
            ),
        ] {
            let access = access(json!({"namespaceSelectors": selectors}));
            assert_eq!(is_listed(&access, &labels), expected);
        }
    }
}
