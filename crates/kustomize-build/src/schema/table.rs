//! Merge keys of the built-in kinds. Generated from the OpenAPI description of Kubernetes 1.21 (the one that kustomize 5.8
//! has built in), reduced to the fields below which some list is merged by key; do not edit.

use super::{Definition, Field, Target};

const fn map(name: &'static str, definition: u16) -> Field {
    Field {
        name,
        target: Target::Map(definition),
    }
}

const fn list(name: &'static str, definition: u16) -> Field {
    Field {
        name,
        target: Target::List {
            definition: Some(definition),
        },
    }
}

const fn merge(name: &'static str, definition: Option<u16>, keys: &'static [&'static str]) -> Field {
    Field {
        name,
        target: Target::Merge { definition, keys },
    }
}

/// The definitions; fields refer to them by index.
pub(super) static DEFINITIONS: &[Definition] = &[
    // 0: api.admissionregistration.v1.MutatingWebhookConfiguration
    &[map("metadata", 195), merge("webhooks", None, &["name"])],
    // 1: api.admissionregistration.v1.MutatingWebhookConfigurationList
    &[list("items", 0)],
    // 2: api.admissionregistration.v1.ValidatingWebhookConfiguration
    &[map("metadata", 195), merge("webhooks", None, &["name"])],
    // 3: api.admissionregistration.v1.ValidatingWebhookConfigurationList
    &[list("items", 2)],
    // 4: api.admissionregistration.v1beta1.MutatingWebhookConfiguration
    &[map("metadata", 195), merge("webhooks", None, &["name"])],
    // 5: api.admissionregistration.v1beta1.MutatingWebhookConfigurationList
    &[list("items", 4)],
    // 6: api.admissionregistration.v1beta1.ValidatingWebhookConfiguration
    &[map("metadata", 195), merge("webhooks", None, &["name"])],
    // 7: api.admissionregistration.v1beta1.ValidatingWebhookConfigurationList
    &[list("items", 6)],
    // 8: api.apps.v1.ControllerRevision
    &[map("metadata", 195)],
    // 9: api.apps.v1.ControllerRevisionList
    &[list("items", 8)],
    // 10: api.apps.v1.DaemonSet
    &[map("metadata", 195), map("spec", 12), map("status", 13)],
    // 11: api.apps.v1.DaemonSetList
    &[list("items", 10)],
    // 12: api.apps.v1.DaemonSetSpec
    &[map("template", 98)],
    // 13: api.apps.v1.DaemonSetStatus
    &[merge("conditions", None, &["type"])],
    // 14: api.apps.v1.Deployment
    &[map("metadata", 195), map("spec", 16), map("status", 17)],
    // 15: api.apps.v1.DeploymentList
    &[list("items", 14)],
    // 16: api.apps.v1.DeploymentSpec
    &[map("template", 98)],
    // 17: api.apps.v1.DeploymentStatus
    &[merge("conditions", None, &["type"])],
    // 18: api.apps.v1.Kustomization
    &[
        merge("configMapGenerator", None, &["name"]),
        merge("secretGenerator", None, &["name"]),
    ],
    // 19: api.apps.v1.ReplicaSet
    &[map("metadata", 195), map("spec", 21), map("status", 22)],
    // 20: api.apps.v1.ReplicaSetList
    &[list("items", 19)],
    // 21: api.apps.v1.ReplicaSetSpec
    &[map("template", 98)],
    // 22: api.apps.v1.ReplicaSetStatus
    &[merge("conditions", None, &["type"])],
    // 23: api.apps.v1.StatefulSet
    &[map("metadata", 195), map("spec", 25), map("status", 26)],
    // 24: api.apps.v1.StatefulSetList
    &[list("items", 23)],
    // 25: api.apps.v1.StatefulSetSpec
    &[map("template", 98), list("volumeClaimTemplates", 87)],
    // 26: api.apps.v1.StatefulSetStatus
    &[merge("conditions", None, &["type"])],
    // 27: api.authentication.v1.TokenRequest
    &[map("metadata", 195)],
    // 28: api.authentication.v1.TokenReview
    &[map("metadata", 195)],
    // 29: api.authentication.v1beta1.TokenReview
    &[map("metadata", 195)],
    // 30: api.authorization.v1.LocalSubjectAccessReview
    &[map("metadata", 195)],
    // 31: api.authorization.v1.SelfSubjectAccessReview
    &[map("metadata", 195)],
    // 32: api.authorization.v1.SelfSubjectRulesReview
    &[map("metadata", 195)],
    // 33: api.authorization.v1.SubjectAccessReview
    &[map("metadata", 195)],
    // 34: api.authorization.v1beta1.LocalSubjectAccessReview
    &[map("metadata", 195)],
    // 35: api.authorization.v1beta1.SelfSubjectAccessReview
    &[map("metadata", 195)],
    // 36: api.authorization.v1beta1.SelfSubjectRulesReview
    &[map("metadata", 195)],
    // 37: api.authorization.v1beta1.SubjectAccessReview
    &[map("metadata", 195)],
    // 38: api.autoscaling.v1.HorizontalPodAutoscaler
    &[map("metadata", 195)],
    // 39: api.autoscaling.v1.HorizontalPodAutoscalerList
    &[list("items", 38)],
    // 40: api.autoscaling.v1.Scale
    &[map("metadata", 195)],
    // 41: api.autoscaling.v2beta1.HorizontalPodAutoscaler
    &[map("metadata", 195)],
    // 42: api.autoscaling.v2beta1.HorizontalPodAutoscalerList
    &[list("items", 41)],
    // 43: api.autoscaling.v2beta2.HorizontalPodAutoscaler
    &[map("metadata", 195)],
    // 44: api.autoscaling.v2beta2.HorizontalPodAutoscalerList
    &[list("items", 43)],
    // 45: api.batch.v1.CronJob
    &[map("metadata", 195), map("spec", 47)],
    // 46: api.batch.v1.CronJobList
    &[list("items", 45)],
    // 47: api.batch.v1.CronJobSpec
    &[map("jobTemplate", 52)],
    // 48: api.batch.v1.Job
    &[map("metadata", 195), map("spec", 50), map("status", 51)],
    // 49: api.batch.v1.JobList
    &[list("items", 48)],
    // 50: api.batch.v1.JobSpec
    &[map("template", 98)],
    // 51: api.batch.v1.JobStatus
    &[merge("conditions", None, &["type"])],
    // 52: api.batch.v1.JobTemplateSpec
    &[map("metadata", 195), map("spec", 50)],
    // 53: api.batch.v1beta1.CronJob
    &[map("metadata", 195), map("spec", 55)],
    // 54: api.batch.v1beta1.CronJobList
    &[list("items", 53)],
    // 55: api.batch.v1beta1.CronJobSpec
    &[map("jobTemplate", 56)],
    // 56: api.batch.v1beta1.JobTemplateSpec
    &[map("metadata", 195), map("spec", 50)],
    // 57: api.certificates.v1.CertificateSigningRequest
    &[map("metadata", 195)],
    // 58: api.certificates.v1.CertificateSigningRequestList
    &[list("items", 57)],
    // 59: api.certificates.v1beta1.CertificateSigningRequest
    &[map("metadata", 195)],
    // 60: api.certificates.v1beta1.CertificateSigningRequestList
    &[list("items", 59)],
    // 61: api.coordination.v1.Lease
    &[map("metadata", 195)],
    // 62: api.coordination.v1.LeaseList
    &[list("items", 61)],
    // 63: api.coordination.v1beta1.Lease
    &[map("metadata", 195)],
    // 64: api.coordination.v1beta1.LeaseList
    &[list("items", 63)],
    // 65: api.core.v1.Binding
    &[map("metadata", 195)],
    // 66: api.core.v1.ComponentStatus
    &[merge("conditions", None, &["type"]), map("metadata", 195)],
    // 67: api.core.v1.ComponentStatusList
    &[list("items", 66)],
    // 68: api.core.v1.ConfigMap
    &[map("metadata", 195)],
    // 69: api.core.v1.ConfigMapList
    &[list("items", 68)],
    // 70: api.core.v1.Container
    &[
        merge("env", None, &["name"]),
        merge("ports", None, &["containerPort", "protocol"]),
        merge("volumeDevices", None, &["devicePath"]),
        merge("volumeMounts", None, &["mountPath"]),
    ],
    // 71: api.core.v1.Endpoints
    &[map("metadata", 195)],
    // 72: api.core.v1.EndpointsList
    &[list("items", 71)],
    // 73: api.core.v1.EphemeralContainer
    &[
        merge("env", None, &["name"]),
        merge("volumeDevices", None, &["devicePath"]),
        merge("volumeMounts", None, &["mountPath"]),
    ],
    // 74: api.core.v1.EphemeralVolumeSource
    &[map("volumeClaimTemplate", 90)],
    // 75: api.core.v1.Event
    &[map("metadata", 195)],
    // 76: api.core.v1.EventList
    &[list("items", 75)],
    // 77: api.core.v1.LimitRange
    &[map("metadata", 195)],
    // 78: api.core.v1.LimitRangeList
    &[list("items", 77)],
    // 79: api.core.v1.Namespace
    &[map("metadata", 195), map("status", 81)],
    // 80: api.core.v1.NamespaceList
    &[list("items", 79)],
    // 81: api.core.v1.NamespaceStatus
    &[merge("conditions", None, &["type"])],
    // 82: api.core.v1.Node
    &[map("metadata", 195), map("spec", 84), map("status", 85)],
    // 83: api.core.v1.NodeList
    &[list("items", 82)],
    // 84: api.core.v1.NodeSpec
    &[merge("podCIDRs", None, &[])],
    // 85: api.core.v1.NodeStatus
    &[
        merge("addresses", None, &["type"]),
        merge("conditions", None, &["type"]),
    ],
    // 86: api.core.v1.PersistentVolume
    &[map("metadata", 195)],
    // 87: api.core.v1.PersistentVolumeClaim
    &[map("metadata", 195), map("status", 89)],
    // 88: api.core.v1.PersistentVolumeClaimList
    &[list("items", 87)],
    // 89: api.core.v1.PersistentVolumeClaimStatus
    &[merge("conditions", None, &["type"])],
    // 90: api.core.v1.PersistentVolumeClaimTemplate
    &[map("metadata", 195)],
    // 91: api.core.v1.PersistentVolumeList
    &[list("items", 86)],
    // 92: api.core.v1.Pod
    &[map("metadata", 195), map("spec", 94), map("status", 95)],
    // 93: api.core.v1.PodList
    &[list("items", 92)],
    // 94: api.core.v1.PodSpec
    &[
        merge("containers", Some(70), &["name"]),
        merge("ephemeralContainers", Some(73), &["name"]),
        merge("hostAliases", None, &["ip"]),
        merge("imagePullSecrets", None, &["name"]),
        merge("initContainers", Some(70), &["name"]),
        merge(
            "topologySpreadConstraints",
            None,
            &["topologyKey", "whenUnsatisfiable"],
        ),
        merge("volumes", Some(113), &["name"]),
    ],
    // 95: api.core.v1.PodStatus
    &[
        merge("conditions", None, &["type"]),
        merge("podIPs", None, &["ip"]),
    ],
    // 96: api.core.v1.PodTemplate
    &[map("metadata", 195), map("template", 98)],
    // 97: api.core.v1.PodTemplateList
    &[list("items", 96)],
    // 98: api.core.v1.PodTemplateSpec
    &[map("metadata", 195), map("spec", 94)],
    // 99: api.core.v1.ReplicationController
    &[map("metadata", 195), map("spec", 101), map("status", 102)],
    // 100: api.core.v1.ReplicationControllerList
    &[list("items", 99)],
    // 101: api.core.v1.ReplicationControllerSpec
    &[map("template", 98)],
    // 102: api.core.v1.ReplicationControllerStatus
    &[merge("conditions", None, &["type"])],
    // 103: api.core.v1.ResourceQuota
    &[map("metadata", 195)],
    // 104: api.core.v1.ResourceQuotaList
    &[list("items", 103)],
    // 105: api.core.v1.Secret
    &[map("metadata", 195)],
    // 106: api.core.v1.SecretList
    &[list("items", 105)],
    // 107: api.core.v1.Service
    &[map("metadata", 195), map("spec", 111), map("status", 112)],
    // 108: api.core.v1.ServiceAccount
    &[map("metadata", 195), merge("secrets", None, &["name"])],
    // 109: api.core.v1.ServiceAccountList
    &[list("items", 108)],
    // 110: api.core.v1.ServiceList
    &[list("items", 107)],
    // 111: api.core.v1.ServiceSpec
    &[merge("ports", None, &["port", "protocol"])],
    // 112: api.core.v1.ServiceStatus
    &[merge("conditions", None, &["type"])],
    // 113: api.core.v1.Volume
    &[map("ephemeral", 74)],
    // 114: api.discovery.v1.EndpointSlice
    &[map("metadata", 195)],
    // 115: api.discovery.v1.EndpointSliceList
    &[list("items", 114)],
    // 116: api.discovery.v1beta1.EndpointSlice
    &[map("metadata", 195)],
    // 117: api.discovery.v1beta1.EndpointSliceList
    &[list("items", 116)],
    // 118: api.events.v1.Event
    &[map("metadata", 195)],
    // 119: api.events.v1.EventList
    &[list("items", 118)],
    // 120: api.events.v1beta1.Event
    &[map("metadata", 195)],
    // 121: api.events.v1beta1.EventList
    &[list("items", 120)],
    // 122: api.extensions.v1beta1.Ingress
    &[map("metadata", 195)],
    // 123: api.extensions.v1beta1.IngressList
    &[list("items", 122)],
    // 124: api.flowcontrol.v1beta1.FlowSchema
    &[map("metadata", 195)],
    // 125: api.flowcontrol.v1beta1.FlowSchemaList
    &[list("items", 124)],
    // 126: api.flowcontrol.v1beta1.PriorityLevelConfiguration
    &[map("metadata", 195)],
    // 127: api.flowcontrol.v1beta1.PriorityLevelConfigurationList
    &[list("items", 126)],
    // 128: api.networking.v1.Ingress
    &[map("metadata", 195)],
    // 129: api.networking.v1.IngressClass
    &[map("metadata", 195)],
    // 130: api.networking.v1.IngressClassList
    &[list("items", 129)],
    // 131: api.networking.v1.IngressList
    &[list("items", 128)],
    // 132: api.networking.v1.NetworkPolicy
    &[map("metadata", 195)],
    // 133: api.networking.v1.NetworkPolicyList
    &[list("items", 132)],
    // 134: api.networking.v1beta1.Ingress
    &[map("metadata", 195)],
    // 135: api.networking.v1beta1.IngressClass
    &[map("metadata", 195)],
    // 136: api.networking.v1beta1.IngressClassList
    &[list("items", 135)],
    // 137: api.networking.v1beta1.IngressList
    &[list("items", 134)],
    // 138: api.node.v1.RuntimeClass
    &[map("metadata", 195)],
    // 139: api.node.v1.RuntimeClassList
    &[list("items", 138)],
    // 140: api.node.v1beta1.RuntimeClass
    &[map("metadata", 195)],
    // 141: api.node.v1beta1.RuntimeClassList
    &[list("items", 140)],
    // 142: api.policy.v1.PodDisruptionBudget
    &[map("metadata", 195), map("status", 144)],
    // 143: api.policy.v1.PodDisruptionBudgetList
    &[list("items", 142)],
    // 144: api.policy.v1.PodDisruptionBudgetStatus
    &[merge("conditions", None, &["type"])],
    // 145: api.policy.v1beta1.Eviction
    &[map("metadata", 195)],
    // 146: api.policy.v1beta1.PodDisruptionBudget
    &[map("metadata", 195), map("status", 148)],
    // 147: api.policy.v1beta1.PodDisruptionBudgetList
    &[list("items", 146)],
    // 148: api.policy.v1beta1.PodDisruptionBudgetStatus
    &[merge("conditions", None, &["type"])],
    // 149: api.policy.v1beta1.PodSecurityPolicy
    &[map("metadata", 195)],
    // 150: api.policy.v1beta1.PodSecurityPolicyList
    &[list("items", 149)],
    // 151: api.rbac.v1.ClusterRole
    &[map("metadata", 195)],
    // 152: api.rbac.v1.ClusterRoleBinding
    &[map("metadata", 195)],
    // 153: api.rbac.v1.ClusterRoleBindingList
    &[list("items", 152)],
    // 154: api.rbac.v1.ClusterRoleList
    &[list("items", 151)],
    // 155: api.rbac.v1.Role
    &[map("metadata", 195)],
    // 156: api.rbac.v1.RoleBinding
    &[map("metadata", 195)],
    // 157: api.rbac.v1.RoleBindingList
    &[list("items", 156)],
    // 158: api.rbac.v1.RoleList
    &[list("items", 155)],
    // 159: api.rbac.v1beta1.ClusterRole
    &[map("metadata", 195)],
    // 160: api.rbac.v1beta1.ClusterRoleBinding
    &[map("metadata", 195)],
    // 161: api.rbac.v1beta1.ClusterRoleBindingList
    &[list("items", 160)],
    // 162: api.rbac.v1beta1.ClusterRoleList
    &[list("items", 159)],
    // 163: api.rbac.v1beta1.Role
    &[map("metadata", 195)],
    // 164: api.rbac.v1beta1.RoleBinding
    &[map("metadata", 195)],
    // 165: api.rbac.v1beta1.RoleBindingList
    &[list("items", 164)],
    // 166: api.rbac.v1beta1.RoleList
    &[list("items", 163)],
    // 167: api.scheduling.v1.PriorityClass
    &[map("metadata", 195)],
    // 168: api.scheduling.v1.PriorityClassList
    &[list("items", 167)],
    // 169: api.scheduling.v1beta1.PriorityClass
    &[map("metadata", 195)],
    // 170: api.scheduling.v1beta1.PriorityClassList
    &[list("items", 169)],
    // 171: api.storage.v1.CSIDriver
    &[map("metadata", 195)],
    // 172: api.storage.v1.CSIDriverList
    &[list("items", 171)],
    // 173: api.storage.v1.CSINode
    &[map("metadata", 195), map("spec", 175)],
    // 174: api.storage.v1.CSINodeList
    &[list("items", 173)],
    // 175: api.storage.v1.CSINodeSpec
    &[merge("drivers", None, &["name"])],
    // 176: api.storage.v1.StorageClass
    &[map("metadata", 195)],
    // 177: api.storage.v1.StorageClassList
    &[list("items", 176)],
    // 178: api.storage.v1.VolumeAttachment
    &[map("metadata", 195)],
    // 179: api.storage.v1.VolumeAttachmentList
    &[list("items", 178)],
    // 180: api.storage.v1beta1.CSIDriver
    &[map("metadata", 195)],
    // 181: api.storage.v1beta1.CSIDriverList
    &[list("items", 180)],
    // 182: api.storage.v1beta1.CSINode
    &[map("metadata", 195), map("spec", 184)],
    // 183: api.storage.v1beta1.CSINodeList
    &[list("items", 182)],
    // 184: api.storage.v1beta1.CSINodeSpec
    &[merge("drivers", None, &["name"])],
    // 185: api.storage.v1beta1.CSIStorageCapacity
    &[map("metadata", 195)],
    // 186: api.storage.v1beta1.CSIStorageCapacityList
    &[list("items", 185)],
    // 187: api.storage.v1beta1.StorageClass
    &[map("metadata", 195)],
    // 188: api.storage.v1beta1.StorageClassList
    &[list("items", 187)],
    // 189: api.storage.v1beta1.VolumeAttachment
    &[map("metadata", 195)],
    // 190: api.storage.v1beta1.VolumeAttachmentList
    &[list("items", 189)],
    // 191: apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition
    &[map("metadata", 195)],
    // 192: apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionList
    &[list("items", 191)],
    // 193: apiextensions-apiserver.pkg.apis.apiextensions.v1beta1.CustomResourceDefinition
    &[map("metadata", 195)],
    // 194: apiextensions-apiserver.pkg.apis.apiextensions.v1beta1.CustomResourceDefinitionList
    &[list("items", 193)],
    // 195: apimachinery.pkg.apis.meta.v1.ObjectMeta
    &[
        merge("finalizers", None, &[]),
        merge("ownerReferences", None, &["uid"]),
    ],
    // 196: kube-aggregator.pkg.apis.apiregistration.v1.APIService
    &[map("metadata", 195), map("status", 198)],
    // 197: kube-aggregator.pkg.apis.apiregistration.v1.APIServiceList
    &[list("items", 196)],
    // 198: kube-aggregator.pkg.apis.apiregistration.v1.APIServiceStatus
    &[merge("conditions", None, &["type"])],
    // 199: kube-aggregator.pkg.apis.apiregistration.v1beta1.APIService
    &[map("metadata", 195), map("status", 201)],
    // 200: kube-aggregator.pkg.apis.apiregistration.v1beta1.APIServiceList
    &[list("items", 199)],
    // 201: kube-aggregator.pkg.apis.apiregistration.v1beta1.APIServiceStatus
    &[merge("conditions", None, &["type"])],
];

/// API version and kind of each type, with its definition; sorted.
pub(super) static TYPES: &[(&str, &str, u16)] = &[
    (
        "admissionregistration.k8s.io/v1",
        "MutatingWebhookConfiguration",
        0,
    ),
    (
        "admissionregistration.k8s.io/v1",
        "MutatingWebhookConfigurationList",
        1,
    ),
    (
        "admissionregistration.k8s.io/v1",
        "ValidatingWebhookConfiguration",
        2,
    ),
    (
        "admissionregistration.k8s.io/v1",
        "ValidatingWebhookConfigurationList",
        3,
    ),
    (
        "admissionregistration.k8s.io/v1beta1",
        "MutatingWebhookConfiguration",
        4,
    ),
    (
        "admissionregistration.k8s.io/v1beta1",
        "MutatingWebhookConfigurationList",
        5,
    ),
    (
        "admissionregistration.k8s.io/v1beta1",
        "ValidatingWebhookConfiguration",
        6,
    ),
    (
        "admissionregistration.k8s.io/v1beta1",
        "ValidatingWebhookConfigurationList",
        7,
    ),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition", 191),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinitionList", 192),
    ("apiextensions.k8s.io/v1beta1", "CustomResourceDefinition", 193),
    (
        "apiextensions.k8s.io/v1beta1",
        "CustomResourceDefinitionList",
        194,
    ),
    ("apiregistration.k8s.io/v1", "APIService", 196),
    ("apiregistration.k8s.io/v1", "APIServiceList", 197),
    ("apiregistration.k8s.io/v1beta1", "APIService", 199),
    ("apiregistration.k8s.io/v1beta1", "APIServiceList", 200),
    ("apps/v1", "ControllerRevision", 8),
    ("apps/v1", "ControllerRevisionList", 9),
    ("apps/v1", "DaemonSet", 10),
    ("apps/v1", "DaemonSetList", 11),
    ("apps/v1", "Deployment", 14),
    ("apps/v1", "DeploymentList", 15),
    ("apps/v1", "ReplicaSet", 19),
    ("apps/v1", "ReplicaSetList", 20),
    ("apps/v1", "StatefulSet", 23),
    ("apps/v1", "StatefulSetList", 24),
    ("authentication.k8s.io/v1", "TokenRequest", 27),
    ("authentication.k8s.io/v1", "TokenReview", 28),
    ("authentication.k8s.io/v1beta1", "TokenReview", 29),
    ("authorization.k8s.io/v1", "LocalSubjectAccessReview", 30),
    ("authorization.k8s.io/v1", "SelfSubjectAccessReview", 31),
    ("authorization.k8s.io/v1", "SelfSubjectRulesReview", 32),
    ("authorization.k8s.io/v1", "SubjectAccessReview", 33),
    ("authorization.k8s.io/v1beta1", "LocalSubjectAccessReview", 34),
    ("authorization.k8s.io/v1beta1", "SelfSubjectAccessReview", 35),
    ("authorization.k8s.io/v1beta1", "SelfSubjectRulesReview", 36),
    ("authorization.k8s.io/v1beta1", "SubjectAccessReview", 37),
    ("autoscaling/v1", "HorizontalPodAutoscaler", 38),
    ("autoscaling/v1", "HorizontalPodAutoscalerList", 39),
    ("autoscaling/v1", "Scale", 40),
    ("autoscaling/v2beta1", "HorizontalPodAutoscaler", 41),
    ("autoscaling/v2beta1", "HorizontalPodAutoscalerList", 42),
    ("autoscaling/v2beta2", "HorizontalPodAutoscaler", 43),
    ("autoscaling/v2beta2", "HorizontalPodAutoscalerList", 44),
    ("batch/v1", "CronJob", 45),
    ("batch/v1", "CronJobList", 46),
    ("batch/v1", "Job", 48),
    ("batch/v1", "JobList", 49),
    ("batch/v1beta1", "CronJob", 53),
    ("batch/v1beta1", "CronJobList", 54),
    ("certificates.k8s.io/v1", "CertificateSigningRequest", 57),
    ("certificates.k8s.io/v1", "CertificateSigningRequestList", 58),
    ("certificates.k8s.io/v1beta1", "CertificateSigningRequest", 59),
    ("certificates.k8s.io/v1beta1", "CertificateSigningRequestList", 60),
    ("coordination.k8s.io/v1", "Lease", 61),
    ("coordination.k8s.io/v1", "LeaseList", 62),
    ("coordination.k8s.io/v1beta1", "Lease", 63),
    ("coordination.k8s.io/v1beta1", "LeaseList", 64),
    ("discovery.k8s.io/v1", "EndpointSlice", 114),
    ("discovery.k8s.io/v1", "EndpointSliceList", 115),
    ("discovery.k8s.io/v1beta1", "EndpointSlice", 116),
    ("discovery.k8s.io/v1beta1", "EndpointSliceList", 117),
    ("events.k8s.io/v1", "Event", 118),
    ("events.k8s.io/v1", "EventList", 119),
    ("events.k8s.io/v1beta1", "Event", 120),
    ("events.k8s.io/v1beta1", "EventList", 121),
    ("extensions/v1beta1", "Ingress", 122),
    ("extensions/v1beta1", "IngressList", 123),
    ("flowcontrol.apiserver.k8s.io/v1beta1", "FlowSchema", 124),
    ("flowcontrol.apiserver.k8s.io/v1beta1", "FlowSchemaList", 125),
    (
        "flowcontrol.apiserver.k8s.io/v1beta1",
        "PriorityLevelConfiguration",
        126,
    ),
    (
        "flowcontrol.apiserver.k8s.io/v1beta1",
        "PriorityLevelConfigurationList",
        127,
    ),
    ("kustomize.config.k8s.io/v1beta1", "Kustomization", 18),
    ("networking.k8s.io/v1", "Ingress", 128),
    ("networking.k8s.io/v1", "IngressClass", 129),
    ("networking.k8s.io/v1", "IngressClassList", 130),
    ("networking.k8s.io/v1", "IngressList", 131),
    ("networking.k8s.io/v1", "NetworkPolicy", 132),
    ("networking.k8s.io/v1", "NetworkPolicyList", 133),
    ("networking.k8s.io/v1beta1", "Ingress", 134),
    ("networking.k8s.io/v1beta1", "IngressClass", 135),
    ("networking.k8s.io/v1beta1", "IngressClassList", 136),
    ("networking.k8s.io/v1beta1", "IngressList", 137),
    ("node.k8s.io/v1", "RuntimeClass", 138),
    ("node.k8s.io/v1", "RuntimeClassList", 139),
    ("node.k8s.io/v1beta1", "RuntimeClass", 140),
    ("node.k8s.io/v1beta1", "RuntimeClassList", 141),
    ("policy/v1", "PodDisruptionBudget", 142),
    ("policy/v1", "PodDisruptionBudgetList", 143),
    ("policy/v1beta1", "Eviction", 145),
    ("policy/v1beta1", "PodDisruptionBudget", 146),
    ("policy/v1beta1", "PodDisruptionBudgetList", 147),
    ("policy/v1beta1", "PodSecurityPolicy", 149),
    ("policy/v1beta1", "PodSecurityPolicyList", 150),
    ("rbac.authorization.k8s.io/v1", "ClusterRole", 151),
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", 152),
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBindingList", 153),
    ("rbac.authorization.k8s.io/v1", "ClusterRoleList", 154),
    ("rbac.authorization.k8s.io/v1", "Role", 155),
    ("rbac.authorization.k8s.io/v1", "RoleBinding", 156),
    ("rbac.authorization.k8s.io/v1", "RoleBindingList", 157),
    ("rbac.authorization.k8s.io/v1", "RoleList", 158),
    ("rbac.authorization.k8s.io/v1beta1", "ClusterRole", 159),
    ("rbac.authorization.k8s.io/v1beta1", "ClusterRoleBinding", 160),
    ("rbac.authorization.k8s.io/v1beta1", "ClusterRoleBindingList", 161),
    ("rbac.authorization.k8s.io/v1beta1", "ClusterRoleList", 162),
    ("rbac.authorization.k8s.io/v1beta1", "Role", 163),
    ("rbac.authorization.k8s.io/v1beta1", "RoleBinding", 164),
    ("rbac.authorization.k8s.io/v1beta1", "RoleBindingList", 165),
    ("rbac.authorization.k8s.io/v1beta1", "RoleList", 166),
    ("scheduling.k8s.io/v1", "PriorityClass", 167),
    ("scheduling.k8s.io/v1", "PriorityClassList", 168),
    ("scheduling.k8s.io/v1beta1", "PriorityClass", 169),
    ("scheduling.k8s.io/v1beta1", "PriorityClassList", 170),
    ("storage.k8s.io/v1", "CSIDriver", 171),
    ("storage.k8s.io/v1", "CSIDriverList", 172),
    ("storage.k8s.io/v1", "CSINode", 173),
    ("storage.k8s.io/v1", "CSINodeList", 174),
    ("storage.k8s.io/v1", "StorageClass", 176),
    ("storage.k8s.io/v1", "StorageClassList", 177),
    ("storage.k8s.io/v1", "VolumeAttachment", 178),
    ("storage.k8s.io/v1", "VolumeAttachmentList", 179),
    ("storage.k8s.io/v1beta1", "CSIDriver", 180),
    ("storage.k8s.io/v1beta1", "CSIDriverList", 181),
    ("storage.k8s.io/v1beta1", "CSINode", 182),
    ("storage.k8s.io/v1beta1", "CSINodeList", 183),
    ("storage.k8s.io/v1beta1", "CSIStorageCapacity", 185),
    ("storage.k8s.io/v1beta1", "CSIStorageCapacityList", 186),
    ("storage.k8s.io/v1beta1", "StorageClass", 187),
    ("storage.k8s.io/v1beta1", "StorageClassList", 188),
    ("storage.k8s.io/v1beta1", "VolumeAttachment", 189),
    ("storage.k8s.io/v1beta1", "VolumeAttachmentList", 190),
    ("v1", "Binding", 65),
    ("v1", "ComponentStatus", 66),
    ("v1", "ComponentStatusList", 67),
    ("v1", "ConfigMap", 68),
    ("v1", "ConfigMapList", 69),
    ("v1", "Endpoints", 71),
    ("v1", "EndpointsList", 72),
    ("v1", "Event", 75),
    ("v1", "EventList", 76),
    ("v1", "LimitRange", 77),
    ("v1", "LimitRangeList", 78),
    ("v1", "Namespace", 79),
    ("v1", "NamespaceList", 80),
    ("v1", "Node", 82),
    ("v1", "NodeList", 83),
    ("v1", "PersistentVolume", 86),
    ("v1", "PersistentVolumeClaim", 87),
    ("v1", "PersistentVolumeClaimList", 88),
    ("v1", "PersistentVolumeList", 91),
    ("v1", "Pod", 92),
    ("v1", "PodList", 93),
    ("v1", "PodTemplate", 96),
    ("v1", "PodTemplateList", 97),
    ("v1", "ReplicationController", 99),
    ("v1", "ReplicationControllerList", 100),
    ("v1", "ResourceQuota", 103),
    ("v1", "ResourceQuotaList", 104),
    ("v1", "Secret", 105),
    ("v1", "SecretList", 106),
    ("v1", "Service", 107),
    ("v1", "ServiceAccount", 108),
    ("v1", "ServiceAccountList", 109),
    ("v1", "ServiceList", 110),
];

/// API version and kind of the types that are known to be of the cluster scope; sorted.
pub(super) static CLUSTER_SCOPED: &[(&str, &str)] = &[
    ("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration"),
    ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy"),
    (
        "admissionregistration.k8s.io/v1",
        "ValidatingAdmissionPolicyBinding",
    ),
    (
        "admissionregistration.k8s.io/v1",
        "ValidatingWebhookConfiguration",
    ),
    (
        "admissionregistration.k8s.io/v1beta1",
        "MutatingWebhookConfiguration",
    ),
    (
        "admissionregistration.k8s.io/v1beta1",
        "ValidatingWebhookConfiguration",
    ),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
    ("apiextensions.k8s.io/v1beta1", "CustomResourceDefinition"),
    ("apiregistration.k8s.io/v1", "APIService"),
    ("apiregistration.k8s.io/v1beta1", "APIService"),
    ("certificates.k8s.io/v1", "CertificateSigningRequest"),
    ("certificates.k8s.io/v1beta1", "CertificateSigningRequest"),
    ("flowcontrol.apiserver.k8s.io/v1beta1", "FlowSchema"),
    (
        "flowcontrol.apiserver.k8s.io/v1beta1",
        "PriorityLevelConfiguration",
    ),
    ("networking.k8s.io/v1", "IngressClass"),
    ("networking.k8s.io/v1beta1", "IngressClass"),
    ("node.k8s.io/v1", "RuntimeClass"),
    ("node.k8s.io/v1beta1", "RuntimeClass"),
    ("policy/v1beta1", "PodSecurityPolicy"),
    ("rbac.authorization.k8s.io/v1", "ClusterRole"),
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"),
    ("rbac.authorization.k8s.io/v1beta1", "ClusterRole"),
    ("rbac.authorization.k8s.io/v1beta1", "ClusterRoleBinding"),
    ("scheduling.k8s.io/v1", "PriorityClass"),
    ("scheduling.k8s.io/v1beta1", "PriorityClass"),
    ("storage.k8s.io/v1", "CSIDriver"),
    ("storage.k8s.io/v1", "CSINode"),
    ("storage.k8s.io/v1", "StorageClass"),
    ("storage.k8s.io/v1", "VolumeAttachment"),
    ("storage.k8s.io/v1beta1", "CSIDriver"),
    ("storage.k8s.io/v1beta1", "CSINode"),
    ("storage.k8s.io/v1beta1", "StorageClass"),
    ("storage.k8s.io/v1beta1", "VolumeAttachment"),
    ("v1", "ComponentStatus"),
    ("v1", "Namespace"),
    ("v1", "Node"),
    ("v1", "NodeProxyOptions"),
    ("v1", "PersistentVolume"),
];
