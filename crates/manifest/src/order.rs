//! In which order objects are applied or printed.
//!
//! Flux applies by kind so that what others need comes first; kustomize's legacy order prints by kind, then by group,
//! version, kind, namespace and name, all compared as text with placeholders for what is empty.

mod merge_sort;

use std::cmp::Ordering;

use crate::{GroupVersionKind, ObjectId};

/// Kinds that Flux reconciles before all others, in this order (fluxcd/pkg/ssa `ReconcileOrder`).
const FLUX_FIRST: [&str; 23] = [
    "CustomResourceDefinition",
    "Namespace",
    "ClusterRole",
    "ClusterClass",
    "RuntimeClass",
    "PriorityClass",
    "StorageClass",
    "VolumeSnapshotClass",
    "IngressClass",
    "GatewayClass",
    "ClusterRoleBinding",
    "ResourceQuota",
    "ServiceAccount",
    "Role",
    "RoleBinding",
    "ConfigMap",
    "Secret",
    "Service",
    "LimitRange",
    "Deployment",
    "StatefulSet",
    "CronJob",
    "PodDisruptionBudget",
];

/// Kinds that Flux reconciles, and kustomize prints, after all others.
const LAST: [&str; 2] = ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"];

/// Kinds that kustomize's legacy order prints before all others.
const LEGACY_FIRST: [&str; 22] = [
    "Namespace",
    "ResourceQuota",
    "StorageClass",
    "CustomResourceDefinition",
    "ServiceAccount",
    "PodSecurityPolicy",
    "Role",
    "ClusterRole",
    "RoleBinding",
    "ClusterRoleBinding",
    "ConfigMap",
    "Secret",
    "Endpoints",
    "Service",
    "LimitRange",
    "PriorityClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Deployment",
    "StatefulSet",
    "CronJob",
    "PodDisruptionBudget",
];

/// Position of a kind in Flux's order; kinds that the order does not name share one. Only the kind counts, as in Flux,
/// whatever its group.
pub fn rank_for_apply(kind: &str) -> i64 {
    rank(kind, &FLUX_FIRST, &LAST)
}

/// Compares two objects by the order in which Flux applies them: rank, group, kind, namespace, name.
pub fn compare_for_apply(a: &ObjectId, b: &ObjectId) -> Ordering {
    rank_for_apply(&a.kind)
        .cmp(&rank_for_apply(&b.kind))
        .then_with(|| a.group.cmp(&b.group))
        .then_with(|| a.kind.cmp(&b.kind))
        .then_with(|| a.namespace.cmp(&b.namespace))
        .then_with(|| a.name.cmp(&b.name))
}

/// An order by kind: some first, some last, the others between.
#[derive(Clone, Debug)]
pub struct LegacyOrder<S> {
    first: Vec<S>,
    last: Vec<S>,
}

impl Default for LegacyOrder<&'static str> {
    fn default() -> Self {
        Self {
            first: LEGACY_FIRST.to_vec(),
            last: LAST.to_vec(),
        }
    }
}

impl<S: AsRef<str>> LegacyOrder<S> {
    /// Makes an order of given kinds (`sortOptions.legacySortOptions`).
    pub fn new(first: Vec<S>, last: Vec<S>) -> Self {
        Self { first, last }
    }

    /// Sorts objects, which `id` gives as type, namespace and name.
    pub fn sort<T>(&self, objects: Vec<T>, id: impl Fn(&T) -> (&GroupVersionKind, &str, &str)) -> Vec<T> {
        let is_less = |a: usize, b: usize| self.compare(id(&objects[a]), id(&objects[b])).is_lt();
        let positions = merge_sort::sorted_positions(objects.len(), &is_less);
        let mut objects: Vec<Option<T>> = objects.into_iter().map(Some).collect();
        positions
            .into_iter()
            .filter_map(|at| objects[at].take())
            .collect()
    }

    /// Compares two types (`resid.Gvk.IsLessThan`).
    pub fn compare_types(&self, a: &GroupVersionKind, b: &GroupVersionKind) -> Ordering {
        let by_rank = if a.kind == b.kind {
            Ordering::Equal
        } else {
            self.rank(a).cmp(&self.rank(b))
        };
        by_rank.then_with(|| compare_joined(&legacy_type(a), &legacy_type(b)))
    }

    /// Compares two objects. No order for the standard library: see [`merge_sort`].
    fn compare(&self, a: (&GroupVersionKind, &str, &str), b: (&GroupVersionKind, &str, &str)) -> Ordering {
        if a.0 == b.0 {
            return compare_joined(&legacy_name(a.1, a.2), &legacy_name(b.1, b.2));
        }
        let by_type = self.compare_types(a.0, b.0);
        // The core Namespace precedes namespaces of other groups, against the order of the text.
        let is_namespace = |of: &GroupVersionKind| of.kind == "Namespace";
        let has_core = a.0.group.is_empty() || b.0.group.is_empty();
        if has_core && is_namespace(a.0) && is_namespace(b.0) {
            by_type.reverse()
        } else {
            by_type
        }
    }

    /// Sorts by type, as [`LegacyOrder::compare_types`] compares; what is of one type stays in its order.
    pub fn sort_by_type<T>(&self, list: &mut Vec<T>, of: impl Fn(&T) -> &GroupVersionKind) {
        let mut ranked: Vec<(i64, T)> = list.drain(..).map(|item| (self.rank(of(&item)), item)).collect();
        ranked.sort_by(|(a_rank, a), (b_rank, b)| {
            let by_text = || compare_joined(&legacy_type(of(a)), &legacy_type(of(b)));
            a_rank.cmp(b_rank).then_with(by_text)
        });
        list.extend(ranked.into_iter().map(|(_, item)| item));
    }

    fn rank(&self, of: &GroupVersionKind) -> i64 {
        rank(&of.kind, &self.first, &self.last)
    }
}

fn rank<S: AsRef<str>>(kind: &str, first: &[S], last: &[S]) -> i64 {
    let position = |kinds: &[S]| kinds.iter().rposition(|k| k.as_ref() == kind);
    let signed = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
    match (position(last), position(first)) {
        (Some(at), _) => signed(at) + 1,
        (None, Some(at)) => signed(at) - signed(first.len()),
        (None, None) => 0,
    }
}

/// A type as kustomize writes it to sort by it: `apps_v1_Deployment`, in parts.
fn legacy_type(gvk: &GroupVersionKind) -> [&str; 5] {
    let (group, version) = (or(&gvk.group, "~G"), or(&gvk.version, "~V"));
    [group, "_", version, "_", or(&gvk.kind, "~K")]
}

/// A name as kustomize writes it to sort by it: `namespace|name`, in parts.
fn legacy_name<'a>(namespace: &'a str, name: &'a str) -> [&'a str; 3] {
    [or(namespace, "~X"), "|", or(name, "~N")]
}

fn or<'a>(text: &'a str, placeholder: &'static str) -> &'a str {
    if text.is_empty() { placeholder } else { text }
}

/// Compares texts that are given in parts, without putting them together: sorts compare often.
fn compare_joined(a: &[&str], b: &[&str]) -> Ordering {
    let a = a.iter().flat_map(|part| part.bytes());
    a.cmp(b.iter().flat_map(|part| part.bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_ordered_by_kind_then_name() {
        let id = |group: &str, kind: &str, namespace: &str, name: &str| ObjectId {
            group: group.into(),
            kind: kind.into(),
            namespace: namespace.into(),
            name: name.into(),
        };
        let mut ids = [
            id(
                "admissionregistration.k8s.io",
                "ValidatingWebhookConfiguration",
                "",
                "w",
            ),
            id("example.com", "Widget", "a", "z"),
            id("", "ConfigMap", "b", "a"),
            id("apps", "Deployment", "a", "a"),
            id("", "ConfigMap", "a", "b"),
            id("apps", "DaemonSet", "a", "a"),
            id("", "Namespace", "", "a"),
        ];
        ids.sort_by(compare_for_apply);
        let names: Vec<_> = ids.iter().map(ToString::to_string).collect();
        assert_eq!(
            names,
            [
                "Namespace/a",
                "ConfigMap/a/b",
                "ConfigMap/b/a",
                "Deployment/a/a",
                "DaemonSet/a/a",
                "Widget/a/z",
                "ValidatingWebhookConfiguration/w"
            ]
        );
    }

    #[test]
    fn flux_applies_definitions_and_namespaces_first_and_webhooks_last() {
        let id = |group: &str, kind: &str, name: &str| ObjectId {
            group: group.into(),
            kind: kind.into(),
            namespace: String::new(),
            name: name.into(),
        };
        let mut ids = [
            id(
                "admissionregistration.k8s.io",
                "ValidatingWebhookConfiguration",
                "w",
            ),
            id("example.com", "Widget", "b"),
            id("", "Pod", "p"),
            id("apps", "Deployment", "d"),
            id("example.com", "Widget", "a"),
            id("", "Namespace", "n"),
            id("apiextensions.k8s.io", "CustomResourceDefinition", "c"),
        ];
        ids.sort_by(compare_for_apply);
        let names: Vec<&str> = ids.iter().map(|id| id.name.as_str()).collect();
        assert_eq!(names, ["c", "n", "d", "p", "a", "b", "w"]);
    }

    #[test]
    fn the_legacy_order_compares_types_as_text_with_placeholders() {
        let order = LegacyOrder::default();
        let gvk = GroupVersionKind::new;
        assert_eq!(
            order.compare_types(&gvk("v1", "Namespace"), &gvk("v1", "Pod")),
            Ordering::Less
        );
        // "~G" for the core group comes after any letter.
        assert_eq!(
            order.compare_types(&gvk("v1", "Pod"), &gvk("z.io/v1", "Z")),
            Ordering::Greater
        );
    }

    fn sorted<'t>(order: &LegacyOrder<&str>, objects: &[(&str, &str, &str, &'t str)]) -> Vec<&'t str> {
        let objects = objects.iter().map(|&(api_version, kind, namespace, name)| {
            (GroupVersionKind::new(api_version, kind), namespace, name)
        });
        let sorted = order.sort(objects.collect(), |(gvk, namespace, name)| (gvk, namespace, name));
        sorted.into_iter().map(|(_, _, name)| name).collect()
    }

    #[test]
    fn the_legacy_order_compares_names_with_placeholders() {
        let pods = [
            ("v1", "Pod", "", "a"),
            ("v1", "Pod", "b", "b"),
            ("v1", "Pod", "b", ""),
        ];
        assert_eq!(sorted(&LegacyOrder::default(), &pods), ["b", "", "a"]);
    }

    #[test]
    fn the_core_namespace_precedes_others_even_where_that_makes_a_circle() {
        let namespaces = [("z.io/v1", "Namespace", "", "z"), ("v1", "Namespace", "", "core")];
        assert_eq!(sorted(&LegacyOrder::default(), &namespaces), ["core", "z"]);
        // Recorded from kustomize: with the kind unlisted, apps < core < a.io < apps.
        let circle = [
            ("v1", "Namespace", "", "core"),
            ("apps/v1", "Deployment", "", "apps"),
            ("a.io/v1", "Namespace", "", "a"),
        ];
        assert_eq!(
            sorted(&LegacyOrder::new(vec![], vec![]), &circle),
            ["apps", "core", "a"]
        );
        let many = circle.repeat(100);
        assert_eq!(sorted(&LegacyOrder::new(vec![], vec![]), &many).len(), 300);
    }

    #[test]
    fn sorting_by_type_is_sorting_with_the_comparison_of_types() {
        let order = LegacyOrder::default();
        let types = [
            "v1 Pod",
            "z.io/v1 Namespace",
            "v1 Service",
            "v1 Namespace",
            "apps/v1 Deployment",
            "v1 Pod",
            "a/b C",
        ];
        let mut list: Vec<(GroupVersionKind, usize)> = (0..types.len())
            .map(|number| {
                let (version, kind) = types[number].split_once(' ').expect("two words");
                (GroupVersionKind::new(version, kind), number)
            })
            .collect();
        let mut expected = list.clone();
        expected.sort_by(|(a, _), (b, _)| order.compare_types(a, b));
        order.sort_by_type(&mut list, |(of, _)| of);
        assert_eq!(list, expected);
    }
}
