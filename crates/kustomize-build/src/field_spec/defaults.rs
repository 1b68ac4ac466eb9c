//! The fields that kustomize's transformers change when no one says otherwise
//! (facts from kustomize's `builtinpluginconsts`, 5.8).

use std::sync::{Arc, OnceLock};

use manifest::GroupVersionKind;

use super::{FieldSpec, NameReference, TransformerConfig};

impl TransformerConfig {
    /// Returns kustomize's default configuration.
    pub(crate) fn built_in() -> &'static Arc<Self> {
        static CONFIG: OnceLock<Arc<TransformerConfig>> = OnceLock::new();
        CONFIG.get_or_init(|| {
            let mut config = make();
            config.sort();
            Arc::new(config)
        })
    }
}

/// A type as `group/version/kind`, with parts left empty that may be anything.
fn selector(text: &str) -> GroupVersionKind {
    let mut parts = text.rsplitn(3, '/');
    let kind = parts.next().unwrap_or_default().to_owned();
    let version = parts.next().unwrap_or_default().to_owned();
    let group = parts.next().unwrap_or_default().to_owned();
    GroupVersionKind { group, version, kind }
}

fn spec(of: &str, path: &str, create: bool) -> FieldSpec {
    FieldSpec {
        selector: selector(of),
        path: path.to_owned(),
        create,
    }
}

fn specs(create: bool, list: &[(&str, &str)]) -> Vec<FieldSpec> {
    list.iter().map(|(of, path)| spec(of, path, create)).collect()
}

fn make() -> TransformerConfig {
    TransformerConfig {
        name_prefix: specs(false, &[("", "metadata/name")]),
        name_suffix: specs(false, &[("", "metadata/name")]),
        namespace: namespace(),
        common_labels: [selectors(), metadata_labels(), volume_claim_template_labels()].concat(),
        labels: Vec::new(),
        template_labels: metadata_labels(),
        volume_claim_template_labels: volume_claim_template_labels(),
        common_annotations: common_annotations(),
        name_reference: name_references(),
        var_reference: var_references(),
        images: images(),
        replicas: specs(
            true,
            &[
                ("Deployment", "spec/replicas"),
                ("ReplicationController", "spec/replicas"),
                ("ReplicaSet", "spec/replicas"),
                ("StatefulSet", "spec/replicas"),
            ],
        ),
    }
}

fn namespace() -> Vec<FieldSpec> {
    vec![
        spec("Namespace", "metadata/name", true),
        spec(
            "apiregistration.k8s.io//APIService",
            "spec/service/namespace",
            true,
        ),
        spec(
            "apiextensions.k8s.io//CustomResourceDefinition",
            "spec/conversion/webhook/clientConfig/service/namespace",
            false,
        ),
    ]
}

fn metadata_labels() -> Vec<FieldSpec> {
    specs(
        true,
        &[
            ("", "metadata/labels"),
            ("v1/ReplicationController", "spec/template/metadata/labels"),
            ("Deployment", "spec/template/metadata/labels"),
            ("ReplicaSet", "spec/template/metadata/labels"),
            ("DaemonSet", "spec/template/metadata/labels"),
            ("apps//StatefulSet", "spec/template/metadata/labels"),
            ("batch//Job", "spec/template/metadata/labels"),
            ("batch//CronJob", "spec/jobTemplate/metadata/labels"),
            ("batch//CronJob", "spec/jobTemplate/spec/template/metadata/labels"),
        ],
    )
}

fn volume_claim_template_labels() -> Vec<FieldSpec> {
    specs(
        true,
        &[("apps//StatefulSet", "spec/volumeClaimTemplates[]/metadata/labels")],
    )
}

fn common_annotations() -> Vec<FieldSpec> {
    specs(
        true,
        &[
            ("", "metadata/annotations"),
            ("v1/ReplicationController", "spec/template/metadata/annotations"),
            ("Deployment", "spec/template/metadata/annotations"),
            ("ReplicaSet", "spec/template/metadata/annotations"),
            ("DaemonSet", "spec/template/metadata/annotations"),
            ("StatefulSet", "spec/template/metadata/annotations"),
            ("batch//Job", "spec/template/metadata/annotations"),
            ("batch//CronJob", "spec/jobTemplate/metadata/annotations"),
            (
                "batch//CronJob",
                "spec/jobTemplate/spec/template/metadata/annotations",
            ),
        ],
    )
}

fn images() -> Vec<FieldSpec> {
    specs(
        true,
        &[
            ("", "spec/containers[]/image"),
            ("", "spec/initContainers[]/image"),
            ("", "spec/volumes[]/image/reference"),
            ("", "spec/template/spec/containers[]/image"),
            ("", "spec/template/spec/initContainers[]/image"),
            ("", "spec/template/spec/volumes[]/image/reference"),
            (
                "",
                "spec/jobTemplate/spec/template/spec/volumes[]/image/reference",
            ),
        ],
    )
}

fn selectors() -> Vec<FieldSpec> {
    let mut all = specs(
        true,
        &[
            ("v1/Service", "spec/selector"),
            ("v1/ReplicationController", "spec/selector"),
            ("Deployment", "spec/selector/matchLabels"),
            ("ReplicaSet", "spec/selector/matchLabels"),
            ("DaemonSet", "spec/selector/matchLabels"),
            ("apps//StatefulSet", "spec/selector/matchLabels"),
        ],
    );
    for kind in ["apps//Deployment", "apps//StatefulSet"] {
        for side in ["podAffinity", "podAntiAffinity"] {
            let affinity = format!("spec/template/spec/affinity/{side}");
            let preferred = "preferredDuringSchedulingIgnoredDuringExecution/podAffinityTerm";
            let required = "requiredDuringSchedulingIgnoredDuringExecution";
            for term in [preferred, required] {
                all.push(spec(
                    kind,
                    &format!("{affinity}/{term}/labelSelector/matchLabels"),
                    false,
                ));
            }
        }
        all.push(spec(
            kind,
            "spec/template/spec/topologySpreadConstraints/labelSelector/matchLabels",
            false,
        ));
    }
    all.extend(specs(
        false,
        &[
            ("batch//Job", "spec/selector/matchLabels"),
            ("batch//CronJob", "spec/jobTemplate/spec/selector/matchLabels"),
            ("policy//PodDisruptionBudget", "spec/selector/matchLabels"),
            ("networking.k8s.io//NetworkPolicy", "spec/podSelector/matchLabels"),
            (
                "networking.k8s.io//NetworkPolicy",
                "spec/ingress/from/podSelector/matchLabels",
            ),
            (
                "networking.k8s.io//NetworkPolicy",
                "spec/egress/to/podSelector/matchLabels",
            ),
        ],
    ));
    all
}

/// Where the pod specification of each kind is.
const POD_SPECS: [(&str, &str); 8] = [
    ("v1/Pod", "spec"),
    ("PodTemplate", "template/spec"),
    ("Deployment", "spec/template/spec"),
    ("ReplicaSet", "spec/template/spec"),
    ("DaemonSet", "spec/template/spec"),
    ("StatefulSet", "spec/template/spec"),
    ("Job", "spec/template/spec"),
    ("CronJob", "spec/jobTemplate/spec/template/spec"),
];

/// The kinds whose pods' accounts, claims and priority classes kustomize follows.
const WORKLOADS: [(&str, &str); 7] = [
    ("Pod", "spec"),
    ("StatefulSet", "spec/template/spec"),
    ("Deployment", "spec/template/spec"),
    ("ReplicationController", "spec/template/spec"),
    ("CronJob", "spec/jobTemplate/spec/template/spec"),
    ("Job", "spec/template/spec"),
    ("DaemonSet", "spec/template/spec"),
];

fn in_pods(pods: &[(&str, &str)], fields: &[&str]) -> Vec<FieldSpec> {
    let mut all = Vec::new();
    for (of, pod) in pods {
        for field in fields {
            all.push(FieldSpec {
                selector: selector(of),
                path: [*pod, *field].join("/"),
                create: false,
            });
        }
    }
    all
}

fn reference(target: &str, referrers: Vec<FieldSpec>) -> NameReference {
    NameReference {
        target: selector(target),
        referrers,
    }
}

fn name_references() -> Vec<NameReference> {
    let scaled = || specs(false, &[("HorizontalPodAutoscaler", "spec/scaleTargetRef/name")]);
    vec![
        reference("Deployment", scaled()),
        reference("ReplicationController", scaled()),
        reference("ReplicaSet", scaled()),
        reference("StatefulSet", scaled()),
        reference("v1/ConfigMap", to_config_maps()),
        reference("v1/Secret", to_secrets()),
        reference("v1/Service", to_services()),
        reference(
            "rbac.authorization.k8s.io//Role",
            specs(false, &[(BINDING, "roleRef/name")]),
        ),
        reference(
            "rbac.authorization.k8s.io//ClusterRole",
            specs(
                false,
                &[(BINDING, "roleRef/name"), (CLUSTER_BINDING, "roleRef/name")],
            ),
        ),
        reference("v1/ServiceAccount", to_service_accounts()),
        reference(
            "v1/PersistentVolumeClaim",
            in_pods(&WORKLOADS, &["volumes/persistentVolumeClaim/claimName"]),
        ),
        reference(
            "v1/PersistentVolume",
            specs(
                false,
                &[
                    ("PersistentVolumeClaim", "spec/volumeName"),
                    ("ClusterRole", "rules/resourceNames"),
                ],
            ),
        ),
        reference(
            "storage.k8s.io/v1/StorageClass",
            specs(
                false,
                &[
                    ("PersistentVolume", "spec/storageClassName"),
                    ("PersistentVolumeClaim", "spec/storageClassName"),
                    ("StatefulSet", "spec/volumeClaimTemplates/spec/storageClassName"),
                ],
            ),
        ),
        reference(
            "scheduling.k8s.io/v1/PriorityClass",
            in_pods(&WORKLOADS, &["priorityClassName"]),
        ),
        to_ingress_classes(),
        reference(
            "admissionregistration.k8s.io//ValidatingAdmissionPolicy",
            specs(
                false,
                &[(
                    "admissionregistration.k8s.io//ValidatingAdmissionPolicyBinding",
                    "spec/policyName",
                )],
            ),
        ),
    ]
}

const BINDING: &str = "rbac.authorization.k8s.io//RoleBinding";
const CLUSTER_BINDING: &str = "rbac.authorization.k8s.io//ClusterRoleBinding";

/// kustomize's own table gives a version inside the group, so that this reference never matches; kept, as users'
/// results depend on it.
fn to_ingress_classes() -> NameReference {
    let target = GroupVersionKind {
        group: "networking.k8s.io/v1".to_owned(),
        version: "v1".to_owned(),
        kind: "IngressClass".to_owned(),
    };
    NameReference {
        target,
        referrers: specs(false, &[("Ingress", "spec/ingressClassName")]),
    }
}

fn to_config_maps() -> Vec<FieldSpec> {
    let mut all = in_pods(
        &POD_SPECS,
        &[
            "volumes/configMap/name",
            "containers/env/valueFrom/configMapKeyRef/name",
            "initContainers/env/valueFrom/configMapKeyRef/name",
            "containers/envFrom/configMapRef/name",
            "initContainers/envFrom/configMapRef/name",
            "volumes/projected/sources/configMap/name",
        ],
    );
    all.extend(specs(
        false,
        &[
            ("Node", "spec/configSource/configMap"),
            ("Role", "rules/resourceNames"),
            ("ClusterRole", "rules/resourceNames"),
            (
                "Ingress",
                r"metadata/annotations/nginx.ingress.kubernetes.io\/fastcgi-params-configmap",
            ),
        ],
    ));
    all
}

fn to_secrets() -> Vec<FieldSpec> {
    let mut all = in_pods(
        &POD_SPECS,
        &[
            "volumes/secret/secretName",
            "containers/env/valueFrom/secretKeyRef/name",
            "initContainers/env/valueFrom/secretKeyRef/name",
            "containers/envFrom/secretRef/name",
            "initContainers/envFrom/secretRef/name",
            "imagePullSecrets/name",
            "volumes/projected/sources/secret/name",
        ],
    );
    all.extend(specs(
        false,
        &[
            ("Ingress", "spec/tls/secretName"),
            (
                "Ingress",
                r"metadata/annotations/ingress.kubernetes.io\/auth-secret",
            ),
            (
                "Ingress",
                r"metadata/annotations/nginx.ingress.kubernetes.io\/auth-secret",
            ),
            (
                "Ingress",
                r"metadata/annotations/nginx.ingress.kubernetes.io\/auth-tls-secret",
            ),
            ("ServiceAccount", "imagePullSecrets/name"),
            ("StorageClass", "parameters/secretName"),
            ("StorageClass", "parameters/adminSecretName"),
            ("StorageClass", "parameters/userSecretName"),
            ("StorageClass", "parameters/secretRef"),
            ("Role", "rules/resourceNames"),
            ("ClusterRole", "rules/resourceNames"),
            (
                "serving.knative.dev/v1/Service",
                "spec/template/spec/containers/env/valueFrom/secretKeyRef/name",
            ),
            ("PersistentVolume", "spec/azureFile/secretName"),
        ],
    ));
    all
}

fn to_services() -> Vec<FieldSpec> {
    specs(
        false,
        &[
            ("apps//StatefulSet", "spec/serviceName"),
            ("Ingress", "spec/rules/http/paths/backend/serviceName"),
            ("Ingress", "spec/backend/serviceName"),
            ("Ingress", "spec/rules/http/paths/backend/service/name"),
            ("Ingress", "spec/defaultBackend/service/name"),
            ("apiregistration.k8s.io//APIService", "spec/service/name"),
            (
                "admissionregistration.k8s.io//ValidatingWebhookConfiguration",
                "webhooks/clientConfig/service",
            ),
            (
                "admissionregistration.k8s.io//MutatingWebhookConfiguration",
                "webhooks/clientConfig/service",
            ),
        ],
    )
}

fn to_service_accounts() -> Vec<FieldSpec> {
    let mut all = specs(false, &[(BINDING, "subjects"), (CLUSTER_BINDING, "subjects")]);
    all.extend(in_pods(&WORKLOADS, &["serviceAccountName"]));
    all
}

fn var_references() -> Vec<FieldSpec> {
    let kinds = [
        ("CronJob", "spec/jobTemplate/spec/template/spec"),
        ("DaemonSet", "spec/template/spec"),
        ("Deployment", "spec/template/spec"),
        ("Job", "spec/template/spec"),
        ("Pod", "spec"),
        ("ReplicaSet", "spec/template/spec"),
        ("StatefulSet", "spec/template/spec"),
    ];
    let mut all = Vec::new();
    for containers in ["containers", "initContainers"] {
        for field in ["args", "command", "env/value", "volumeMounts/mountPath"] {
            all.extend(in_pods(&kinds, &[&format!("{containers}/{field}")]));
        }
    }
    all.extend(specs(
        false,
        &[
            ("CronJob", "spec/jobTemplate/spec/template/volumes/nfs/server"),
            ("DaemonSet", "spec/template/spec/volumes/nfs/server"),
            ("Deployment", "spec/template/spec/volumes/nfs/server"),
            ("Deployment", "spec/template/metadata/annotations"),
            ("Ingress", "spec/rules/host"),
            ("Ingress", "spec/tls/hosts"),
            ("Ingress", "spec/tls/secretName"),
            ("Job", "spec/template/spec/volumes/nfs/server"),
            ("Pod", "spec/volumes/nfs/server"),
            ("ReplicaSet", "spec/template/spec/volumes/nfs/server"),
            ("Service", "spec/ports/port"),
            ("Service", "spec/ports/targetPort"),
            ("StatefulSet", "spec/volumeClaimTemplates/spec/nfs/server"),
            ("PersistentVolume", "spec/nfs/server"),
            ("", "metadata/labels"),
            ("", "metadata/annotations"),
        ],
    ));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_configuration_merged_into_itself_stays_as_it_is() {
        let built_in = TransformerConfig::built_in();
        let mut merged = TransformerConfig::clone(built_in);
        merged.merge(built_in).unwrap();
        assert_eq!(merged, **built_in);
    }
}
