//! In which order objects are installed and uninstalled: by kind, then as they were.

use std::cmp::Ordering;

/// An order of kinds. What it does not name comes last, sorted by the kinds' names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KindOrder {
    /// Order of installation: prerequisites first.
    Install,
    /// Order of uninstallation: prerequisites last.
    Uninstall,
    /// As [`KindOrder::Install`], as Helm 3 has it: it names no webhook configurations.
    InstallV3,
    /// As [`KindOrder::Uninstall`], as Helm 3 has it.
    UninstallV3,
}

impl KindOrder {
    /// Returns the order of installation of a version of Helm.
    pub fn install(helm: helm_chart::Helm) -> Self {
        match helm {
            helm_chart::Helm::V3 => Self::InstallV3,
            helm_chart::Helm::V4 => Self::Install,
        }
    }

    /// Returns the order of uninstallation of a version of Helm.
    pub fn uninstall(helm: helm_chart::Helm) -> Self {
        match helm {
            helm_chart::Helm::V3 => Self::UninstallV3,
            helm_chart::Helm::V4 => Self::Uninstall,
        }
    }

    /// Compares two kinds; those that are alike in rank are equal.
    pub fn compare(self, a: &str, b: &str) -> Ordering {
        match (self.rank(a), self.rank(b)) {
            (None, None) => a.cmp(b),
            (None, Some(_)) => Ordering::Greater,
            (Some(_), None) => Ordering::Less,
            (Some(a), Some(b)) => a.cmp(&b),
        }
    }

    fn rank(self, kind: &str) -> Option<usize> {
        let (kinds, webhooks) = match self {
            Self::Install => (&INSTALL[..], &INSTALL_WEBHOOKS[..]),
            Self::Uninstall => (&UNINSTALL[..], &UNINSTALL_WEBHOOKS[..]),
            Self::InstallV3 => (&INSTALL[..], &[][..]),
            Self::UninstallV3 => (&UNINSTALL[..], &[][..]),
        };
        let position = |list: &[&str]| list.iter().position(|known| *known == kind);
        match self {
            Self::Install | Self::InstallV3 => {
                position(kinds).or_else(|| position(webhooks).map(|rank| INSTALL.len() + rank))
            }
            Self::Uninstall | Self::UninstallV3 => {
                position(webhooks).or_else(|| position(kinds).map(|rank| UNINSTALL_WEBHOOKS.len() + rank))
            }
        }
    }
}

const INSTALL: [&str; 36] = [
    "PriorityClass",
    "Namespace",
    "NetworkPolicy",
    "ResourceQuota",
    "LimitRange",
    "PodSecurityPolicy",
    "PodDisruptionBudget",
    "ServiceAccount",
    "Secret",
    "SecretList",
    "ConfigMap",
    "StorageClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "CustomResourceDefinition",
    "ClusterRole",
    "ClusterRoleList",
    "ClusterRoleBinding",
    "ClusterRoleBindingList",
    "Role",
    "RoleList",
    "RoleBinding",
    "RoleBindingList",
    "Service",
    "DaemonSet",
    "Pod",
    "ReplicationController",
    "ReplicaSet",
    "Deployment",
    "HorizontalPodAutoscaler",
    "StatefulSet",
    "Job",
    "CronJob",
    "IngressClass",
    "Ingress",
    "APIService",
];

/// Kinds that only Helm 4 names, last.
const INSTALL_WEBHOOKS: [&str; 2] = ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"];

/// Kinds that only Helm 4 names, first: a webhook must not keep others from being removed.
const UNINSTALL_WEBHOOKS: [&str; 2] = ["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"];

/// Not the reverse of [`INSTALL`]: services go early, and lists before their members.
const UNINSTALL: [&str; 36] = [
    "APIService",
    "Ingress",
    "IngressClass",
    "Service",
    "CronJob",
    "Job",
    "StatefulSet",
    "HorizontalPodAutoscaler",
    "Deployment",
    "ReplicaSet",
    "ReplicationController",
    "Pod",
    "DaemonSet",
    "RoleBindingList",
    "RoleBinding",
    "RoleList",
    "Role",
    "ClusterRoleBindingList",
    "ClusterRoleBinding",
    "ClusterRoleList",
    "ClusterRole",
    "CustomResourceDefinition",
    "PersistentVolumeClaim",
    "PersistentVolume",
    "StorageClass",
    "ConfigMap",
    "SecretList",
    "Secret",
    "ServiceAccount",
    "PodDisruptionBudget",
    "PodSecurityPolicy",
    "LimitRange",
    "ResourceQuota",
    "NetworkPolicy",
    "Namespace",
    "PriorityClass",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(order: KindOrder, kinds: &[&str]) {
        let mut sorted = kinds.to_vec();
        sorted.reverse();
        sorted.sort_by(|a, b| order.compare(a, b));
        assert_eq!(sorted, kinds);
    }

    #[test]
    fn unknown_kinds_come_last_by_name() {
        let webhook = "MutatingWebhookConfiguration";
        check(
            KindOrder::Install,
            &["Namespace", "Service", "APIService", webhook, "", "Ape", "Zoo"],
        );
        check(
            KindOrder::InstallV3,
            &["Namespace", "Service", "APIService", "Ape", webhook, "Zoo"],
        );
        check(
            KindOrder::Uninstall,
            &[webhook, "APIService", "Service", "Namespace", "Ape", "Zoo"],
        );
        check(
            KindOrder::UninstallV3,
            &["APIService", "Namespace", "Ape", webhook],
        );
    }
}
