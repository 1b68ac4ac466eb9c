//! Checks, before anything is changed, that the user may do all that an installation does, and reports every missing right at
//! once.

use delivery_graph::kind;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::api::PostParams;
use kube::{Api, Client};

use crate::cluster::Failure;

/// A right: verb, group, resource, and whether it is needed in the namespace only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Right(&'static str, &'static str, &'static str, bool);

const APPLIED: [&str; 4] = ["get", "create", "patch", "delete"];
/// Kinds of the chart's objects.
const KINDS: [(&str, &str, bool); 12] = [
    ("", "namespaces", false),
    ("apiextensions.k8s.io", "customresourcedefinitions", false),
    ("rbac.authorization.k8s.io", "clusterroles", false),
    ("rbac.authorization.k8s.io", "clusterrolebindings", false),
    ("rbac.authorization.k8s.io", "roles", true),
    ("rbac.authorization.k8s.io", "rolebindings", true),
    ("apps", "deployments", true),
    ("", "serviceaccounts", true),
    ("", "services", true),
    ("networking.k8s.io", "networkpolicies", true),
    ("policy", "poddisruptionbudgets", true),
    ("coordination.k8s.io", "leases", true),
];
/// Further permissions that are needed.
const FURTHER: [Right; 8] = [
    Right("get", "", "secrets", true),
    Right("list", "", "secrets", true),
    Right("create", "", "secrets", true),
    Right("update", "", "secrets", true),
    Right("delete", "", "secrets", true),
    Right("watch", "apps", "deployments", true),
    // Controllers are looked for everywhere: two that do the same must not be at work.
    Right("list", "apps", "deployments", false),
    Right("list", "apiextensions.k8s.io", "customresourcedefinitions", false),
];
/// No one may give rights away that he does not have, but with these.
const GRANTS: [Right; 2] = [
    Right("escalate", "rbac.authorization.k8s.io", "clusterroles", false),
    Right("bind", "rbac.authorization.k8s.io", "clusterroles", false),
];
const EVERYTHING: Right = Right("*", "*", "*", false);
const AT_ONCE: usize = 8;

/// Permissions that a takeover and a give-back need beside those of an installation: in all namespaces.
fn of_moving() -> Vec<Right> {
    let kinds = kind::ALL.iter();
    let of_kinds = kinds.flat_map(|kind| {
        let right = |verb| Right(verb, kind.group, kind.plural, false);
        ["get", "list", "watch", "patch"].map(right)
    });
    let further = [
        Right("list", "", "pods", false),
        Right("patch", "apps", "deployments/scale", false),
    ];
    of_kinds.chain(further).collect()
}

/// Returns what whoever asks lacks to install, upgrade and uninstall.
pub(crate) async fn lacking(client: &Client, namespace: &str) -> Result<Vec<String>, Failure> {
    lacking_of(client, namespace, Vec::new()).await
}

async fn lacking_of(client: &Client, namespace: &str, more: Vec<Right>) -> Result<Vec<String>, Failure> {
    if is_allowed(client, EVERYTHING, namespace).await? {
        return Ok(Vec::new());
    }
    let of_kinds = KINDS.iter().flat_map(|(group, resource, namespaced)| {
        APPLIED
            .iter()
            .filter(|verb| **verb != "delete" || *resource != "namespaces")
            .map(|verb| Right(verb, group, resource, *namespaced))
    });
    let needed: Vec<Right> = of_kinds.chain(FURTHER).chain(GRANTS).chain(more).collect();
    let asked = stream::iter(needed.iter().map(|right| is_allowed(client, *right, namespace)));
    let allowed: Vec<bool> = asked.buffered(AT_ONCE).try_collect().await?;
    let missing = needed.iter().zip(allowed).filter(|(_, allowed)| !allowed);
    Ok(lines_of_missing(missing.map(|(right, _)| *right), namespace))
}

/// Refuses whoever may not.
pub(crate) async fn check(client: &Client, namespace: &str, what: &str) -> Result<(), Failure> {
    refuse(lacking(client, namespace).await?, what)
}

/// Refuses whoever may not, for what changes Flux's own objects too.
pub(crate) async fn check_moving(client: &Client, namespace: &str, what: &str) -> Result<(), Failure> {
    refuse(lacking_of(client, namespace, of_moving()).await?, what)
}

fn refuse(missing: Vec<String>, what: &str) -> Result<(), Failure> {
    if missing.is_empty() {
        return Ok(());
    }
    Err(Failure::Forbidden {
        what: what.to_owned(),
        why: format!(
            "the credentials of the kubeconfig do not allow to {}; somebody with the rights of cluster-admin has to do it",
            missing.join("; ")
        ),
    })
}

/// One line for each resource.
fn lines_of_missing(missing: impl Iterator<Item = Right>, namespace: &str) -> Vec<String> {
    let mut lines: Vec<(Vec<&str>, String)> = Vec::new();
    for Right(verb, group, resource, namespaced) in missing {
        let dotted = if group.is_empty() { "" } else { "." };
        let place = if namespaced {
            format!(" in {namespace}")
        } else {
            String::new()
        };
        let what = format!("{resource}{dotted}{group}{place}");
        match lines.iter_mut().find(|(_, known)| *known == what) {
            Some((verbs, _)) => verbs.push(verb),
            None => lines.push((vec![verb], what)),
        }
    }
    lines
        .into_iter()
        .map(|(verbs, what)| format!("{} {what}", verbs.join(", ")))
        .collect()
}

async fn is_allowed(client: &Client, right: Right, namespace: &str) -> Result<bool, Failure> {
    let Right(verb, group, resource, namespaced) = right;
    let attributes = ResourceAttributes {
        verb: Some(verb.to_owned()),
        group: Some(group.to_owned()),
        resource: Some(resource.to_owned()),
        namespace: namespaced.then(|| namespace.to_owned()),
        ..ResourceAttributes::default()
    };
    let review = SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(attributes),
            ..SelfSubjectAccessReviewSpec::default()
        },
        ..SelfSubjectAccessReview::default()
    };
    let reviews: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    let answer = reviews.create(&PostParams::default(), &review).await;
    let answer = answer.map_err(|error| Failure::request("ask what is allowed", error))?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn to_take_over_takes_rights_on_what_flux_has() {
        let told = lines_of_missing(of_moving().into_iter(), "flux-system");
        for line in [
            "get, list, watch, patch kustomizations.kustomize.toolkit.fluxcd.io",
            "list pods",
            "patch deployments/scale.apps",
        ] {
            assert!(told.iter().any(|one| one == line), "{line}: {told:?}");
        }
    }

    #[test]
    fn what_is_missing_is_told_once_for_each_resource() {
        let missing = [
            Right("create", "apps", "deployments", true),
            Right("patch", "apps", "deployments", true),
            Right("create", "", "namespaces", false),
        ];
        assert_eq!(
            lines_of_missing(missing.into_iter(), "flux-system"),
            [
                "create, patch deployments.apps in flux-system",
                "create namespaces"
            ]
        );
    }
}
