//! Fields, merge keys and scopes of the built-in types. Made by `make generate-schema`; do not edit.
//!
//! From:
//! - `sigs.k8s.io/kustomize/kyaml@v0.21.3/openapi/kubernetesapi/data/kubernetes-openapi-union-v1.21.2.bundle-v1.json`
//!   sha256:cfd64db610b4edbd7b8e34f9bee81d03091c355a70acbb50cc8f84579414826e
//! - `sigs.k8s.io/kustomize/kyaml@v0.21.3/openapi/kustomizationapi/swagger.json`
//!   sha256:65c5ffdbaa33a1a6db954c0e9524d5ae3ec5ef5af9d2ca17da0577868d887531
//! - `sigs.k8s.io/kustomize/kyaml@v0.21.3/openapi/openapi.go`
//!   sha256:3d10d48566a13759fec4aa3b5ae093c04d99f3865f1be7e6401f52cd8bb083dc
//! - `k8s.io/kubernetes@v1.36.1/api/openapi-spec/swagger.json`
//!   sha256:dcede2063da1d7ad62ecb5af8adb6d7fabd0b52385a7fa0048afb491dac90450

use super::built_in::Scope::{Cluster, Namespaced, Unknown};
use super::built_in::{Definition, NONE, Type, fields, list, mapping, of};

/// Every mapping that the types have, with the fields in which a merge goes on. Comments name one that is like this.
#[rustfmt::skip]
pub(super) static DEFINITIONS: &[Definition] = &[
    // 0: api.admissionregistration.v1.MatchCondition, and 283 more
    fields(&[]),
    // 1: api.admissionregistration.v1.MatchResources, and 2 more
    fields(&[mapping("namespaceSelector", 233), mapping("objectSelector", 233)]),
    // 2: api.admissionregistration.v1.MutatingAdmissionPolicy, and 2 more
    fields(&[mapping("metadata", 235), mapping("spec", 6)]),
    // 3: api.admissionregistration.v1.MutatingAdmissionPolicyBinding, and 3 more
    fields(&[mapping("metadata", 235), mapping("spec", 5)]),
    // 4: api.admissionregistration.v1.MutatingAdmissionPolicyBindingList, and 87 more
    fields(&[mapping("metadata", 234)]),
    // 5: api.admissionregistration.v1.MutatingAdmissionPolicyBindingSpec, and 3 more
    fields(&[mapping("matchResources", 1), mapping("paramRef", 12)]),
    // 6: api.admissionregistration.v1.MutatingAdmissionPolicySpec, and 2 more
    fields(&[list("matchConditions", Some(0), &["name"]), mapping("matchConstraints", 1), mapping("paramKind", 0)]),
    // 7: api.admissionregistration.v1.MutatingWebhook, and 3 more
    fields(&[mapping("clientConfig", 16), mapping("namespaceSelector", 233), mapping("objectSelector", 233)]),
    // 8: api.admissionregistration.v1.MutatingWebhook, and 1 more
    fields(&[mapping("clientConfig", 16), list("matchConditions", Some(0), &["name"]), mapping("namespaceSelector", 233), mapping("objectSelector", 233)]),
    // 9: api.admissionregistration.v1.MutatingWebhookConfiguration, and 3 more
    fields(&[mapping("metadata", 235), list("webhooks", Some(7), &["name"])]),
    // 10: api.admissionregistration.v1.MutatingWebhookConfiguration, and 1 more
    fields(&[mapping("metadata", 235), list("webhooks", Some(8), &["name"])]),
    // 11: api.admissionregistration.v1.MutatingWebhookConfigurationList, and 74 more
    fields(&[mapping("metadata", 0)]),
    // 12: api.admissionregistration.v1.ParamRef, and 4 more
    fields(&[mapping("selector", 233)]),
    // 13: api.admissionregistration.v1.ValidatingAdmissionPolicy
    fields(&[mapping("metadata", 235), mapping("spec", 14), mapping("status", 15)]),
    // 14: api.admissionregistration.v1.ValidatingAdmissionPolicySpec
    fields(&[list("matchConditions", Some(0), &["name"]), mapping("matchConstraints", 1), mapping("paramKind", 0), list("variables", Some(0), &["name"])]),
    // 15: api.admissionregistration.v1.ValidatingAdmissionPolicyStatus
    fields(&[mapping("typeChecking", 0)]),
    // 16: api.admissionregistration.v1.WebhookClientConfig, and 5 more
    fields(&[mapping("service", 0)]),
    // 17: api.apiserverinternal.v1alpha1.StorageVersion, and 3 more
    fields(&[mapping("metadata", 235), mapping("spec", 0), mapping("status", 0)]),
    // 18: api.apps.v1.ConfigMapArgs, and 1 more
    fields(&[mapping("GeneratorArgs", 30)]),
    // 19: api.apps.v1.ControllerRevision
    fields(&[mapping("data", 0), mapping("metadata", 235)]),
    // 20: api.apps.v1.DaemonSet, and 1 more
    fields(&[mapping("metadata", 235), mapping("spec", 22), mapping("status", 24)]),
    // 21: api.apps.v1.DaemonSet
    fields(&[mapping("metadata", 235), mapping("spec", 23), mapping("status", 24)]),
    // 22: api.apps.v1.DaemonSetSpec, and 1 more
    fields(&[mapping("selector", 233), mapping("template", 130), mapping("updateStrategy", 25)]),
    // 23: api.apps.v1.DaemonSetSpec
    fields(&[mapping("selector", 233), mapping("template", 131), mapping("updateStrategy", 25)]),
    // 24: api.apps.v1.DaemonSetStatus, and 18 more
    fields(&[list("conditions", Some(0), &["type"])]),
    // 25: api.apps.v1.DaemonSetUpdateStrategy, and 2 more
    fields(&[mapping("rollingUpdate", 0)]),
    // 26: api.apps.v1.Deployment
    fields(&[mapping("metadata", 235), mapping("spec", 28), mapping("status", 24)]),
    // 27: api.apps.v1.Deployment
    fields(&[mapping("metadata", 235), mapping("spec", 29), mapping("status", 24)]),
    // 28: api.apps.v1.DeploymentSpec
    fields(&[mapping("selector", 233), mapping("strategy", 25), mapping("template", 130)]),
    // 29: api.apps.v1.DeploymentSpec
    fields(&[mapping("selector", 233), mapping("strategy", 25), mapping("template", 131)]),
    // 30: api.apps.v1.GeneratorArgs
    fields(&[mapping("KvPairSources", 0)]),
    // 31: api.apps.v1.Kustomization
    fields(&[list("configMapGenerator", Some(18), &["name"]), list("secretGenerator", Some(18), &["name"])]),
    // 32: api.apps.v1.ReplicaSet, and 1 more
    fields(&[mapping("metadata", 235), mapping("spec", 34), mapping("status", 24)]),
    // 33: api.apps.v1.ReplicaSet
    fields(&[mapping("metadata", 235), mapping("spec", 35), mapping("status", 24)]),
    // 34: api.apps.v1.ReplicaSetSpec, and 1 more
    fields(&[mapping("selector", 233), mapping("template", 130)]),
    // 35: api.apps.v1.ReplicaSetSpec
    fields(&[mapping("selector", 233), mapping("template", 131)]),
    // 36: api.apps.v1.StatefulSet
    fields(&[mapping("metadata", 235), mapping("spec", 37), mapping("status", 24)]),
    // 37: api.apps.v1.StatefulSetSpec
    fields(&[mapping("ordinals", 0), mapping("persistentVolumeClaimRetentionPolicy", 0), mapping("selector", 233), mapping("template", 131), mapping("updateStrategy", 25)]),
    // 38: api.authentication.v1.SelfSubjectReview
    fields(&[mapping("metadata", 235), mapping("status", 39)]),
    // 39: api.authentication.v1.SelfSubjectReviewStatus
    fields(&[mapping("userInfo", 44)]),
    // 40: api.authentication.v1.TokenRequest
    fields(&[mapping("metadata", 235), mapping("spec", 41), mapping("status", 0)]),
    // 41: api.authentication.v1.TokenRequestSpec
    fields(&[mapping("boundObjectRef", 0)]),
    // 42: api.authentication.v1.TokenReview, and 1 more
    fields(&[mapping("metadata", 235), mapping("spec", 0), mapping("status", 43)]),
    // 43: api.authentication.v1.TokenReviewStatus, and 1 more
    fields(&[mapping("user", 44)]),
    // 44: api.authentication.v1.UserInfo, and 3 more
    fields(&[mapping("extra", 0)]),
    // 45: api.authorization.v1.LocalSubjectAccessReview, and 3 more
    fields(&[mapping("metadata", 235), mapping("spec", 52), mapping("status", 0)]),
    // 46: api.authorization.v1.LocalSubjectAccessReview, and 1 more
    fields(&[mapping("metadata", 235), mapping("spec", 53), mapping("status", 0)]),
    // 47: api.authorization.v1.ResourceAttributes
    fields(&[mapping("fieldSelector", 0), mapping("labelSelector", 0)]),
    // 48: api.authorization.v1.SelfSubjectAccessReview, and 1 more
    fields(&[mapping("metadata", 235), mapping("spec", 50), mapping("status", 0)]),
    // 49: api.authorization.v1.SelfSubjectAccessReview
    fields(&[mapping("metadata", 235), mapping("spec", 51), mapping("status", 0)]),
    // 50: api.authorization.v1.SelfSubjectAccessReviewSpec, and 1 more
    fields(&[mapping("nonResourceAttributes", 0), mapping("resourceAttributes", 0)]),
    // 51: api.authorization.v1.SelfSubjectAccessReviewSpec
    fields(&[mapping("nonResourceAttributes", 0), mapping("resourceAttributes", 47)]),
    // 52: api.authorization.v1.SubjectAccessReviewSpec, and 1 more
    fields(&[mapping("extra", 0), mapping("nonResourceAttributes", 0), mapping("resourceAttributes", 0)]),
    // 53: api.authorization.v1.SubjectAccessReviewSpec
    fields(&[mapping("extra", 0), mapping("nonResourceAttributes", 0), mapping("resourceAttributes", 47)]),
    // 54: api.autoscaling.v1.HorizontalPodAutoscaler, and 1 more
    fields(&[mapping("metadata", 235), mapping("spec", 55), mapping("status", 0)]),
    // 55: api.autoscaling.v1.HorizontalPodAutoscalerSpec, and 1 more
    fields(&[mapping("scaleTargetRef", 0)]),
    // 56: api.autoscaling.v2.HorizontalPodAutoscaler
    fields(&[mapping("metadata", 235), mapping("spec", 58), mapping("status", 24)]),
    // 57: api.autoscaling.v2.HorizontalPodAutoscalerBehavior, and 1 more
    fields(&[mapping("scaleDown", 0), mapping("scaleUp", 0)]),
    // 58: api.autoscaling.v2.HorizontalPodAutoscalerSpec, and 1 more
    fields(&[mapping("behavior", 57), mapping("scaleTargetRef", 0)]),
    // 59: api.autoscaling.v2beta2.HorizontalPodAutoscaler
    fields(&[mapping("metadata", 235), mapping("spec", 58), mapping("status", 0)]),
    // 60: api.batch.v1.CronJob, and 1 more
    fields(&[mapping("metadata", 235), mapping("spec", 62), mapping("status", 0)]),
    // 61: api.batch.v1.CronJob
    fields(&[mapping("metadata", 235), mapping("spec", 63), mapping("status", 0)]),
    // 62: api.batch.v1.CronJobSpec, and 1 more
    fields(&[mapping("jobTemplate", 67)]),
    // 63: api.batch.v1.CronJobSpec
    fields(&[mapping("jobTemplate", 68)]),
    // 64: api.batch.v1.Job
    fields(&[mapping("metadata", 235), mapping("spec", 65), mapping("status", 66)]),
    // 65: api.batch.v1.JobSpec
    fields(&[mapping("podFailurePolicy", 0), mapping("selector", 233), mapping("successPolicy", 0), mapping("template", 131)]),
    // 66: api.batch.v1.JobStatus
    fields(&[list("conditions", Some(0), &["type"]), mapping("uncountedTerminatedPods", 0)]),
    // 67: api.batch.v1.JobTemplateSpec, and 1 more
    fields(&[mapping("metadata", 235), mapping("spec", 34)]),
    // 68: api.batch.v1.JobTemplateSpec
    fields(&[mapping("metadata", 235), mapping("spec", 65)]),
    // 69: api.certificates.v1.CertificateSigningRequest, and 1 more
    fields(&[mapping("metadata", 235), mapping("spec", 44), mapping("status", 0)]),
    // 70: api.certificates.v1alpha1.ClusterTrustBundle, and 11 more
    fields(&[mapping("metadata", 235), mapping("spec", 0)]),
    // 71: api.certificates.v1beta1.PodCertificateRequest
    fields(&[mapping("metadata", 235), mapping("spec", 72), mapping("status", 24)]),
    // 72: api.certificates.v1beta1.PodCertificateRequestSpec
    fields(&[mapping("unverifiedUserAnnotations", 0)]),
    // 73: api.core.v1.Affinity
    fields(&[mapping("nodeAffinity", 100), mapping("podAffinity", 0), mapping("podAntiAffinity", 0)]),
    // 74: api.core.v1.Binding
    fields(&[mapping("metadata", 235), mapping("target", 0)]),
    // 75: api.core.v1.CSIPersistentVolumeSource
    fields(&[mapping("controllerExpandSecretRef", 0), mapping("controllerPublishSecretRef", 0), mapping("nodePublishSecretRef", 0), mapping("nodeStageSecretRef", 0), mapping("volumeAttributes", 0)]),
    // 76: api.core.v1.CSIPersistentVolumeSource
    fields(&[mapping("controllerExpandSecretRef", 0), mapping("controllerPublishSecretRef", 0), mapping("nodeExpandSecretRef", 0), mapping("nodePublishSecretRef", 0), mapping("nodeStageSecretRef", 0), mapping("volumeAttributes", 0)]),
    // 77: api.core.v1.CSIVolumeSource
    fields(&[mapping("nodePublishSecretRef", 0), mapping("volumeAttributes", 0)]),
    // 78: api.core.v1.CephFSPersistentVolumeSource, and 11 more
    fields(&[mapping("secretRef", 0)]),
    // 79: api.core.v1.ComponentStatus
    fields(&[list("conditions", Some(0), &["type"]), mapping("metadata", 235)]),
    // 80: api.core.v1.ConfigMap
    fields(&[mapping("binaryData", 0), mapping("data", 0), mapping("metadata", 235)]),
    // 81: api.core.v1.Container
    fields(&[list("env", Some(84), &["name"]), mapping("lifecycle", 94), mapping("livenessProbe", 93), list("ports", Some(0), &["containerPort", "protocol"]), mapping("readinessProbe", 93), mapping("resources", 140), mapping("securityContext", 142), mapping("startupProbe", 93), list("volumeDevices", Some(0), &["devicePath"]), list("volumeMounts", Some(0), &["mountPath"])]),
    // 82: api.core.v1.Container, and 1 more
    fields(&[list("env", Some(85), &["name"]), mapping("lifecycle", 95), mapping("livenessProbe", 132), list("ports", Some(0), &["containerPort", "protocol"]), mapping("readinessProbe", 132), mapping("resources", 140), mapping("securityContext", 143), mapping("startupProbe", 132), list("volumeDevices", Some(0), &["devicePath"]), list("volumeMounts", Some(0), &["mountPath"])]),
    // 83: api.core.v1.Endpoints, and 6 more
    fields(&[mapping("metadata", 235)]),
    // 84: api.core.v1.EnvVar
    fields(&[mapping("valueFrom", 86)]),
    // 85: api.core.v1.EnvVar
    fields(&[mapping("valueFrom", 87)]),
    // 86: api.core.v1.EnvVarSource
    fields(&[mapping("configMapKeyRef", 0), mapping("fieldRef", 0), mapping("resourceFieldRef", 0), mapping("secretKeyRef", 0)]),
    // 87: api.core.v1.EnvVarSource
    fields(&[mapping("configMapKeyRef", 0), mapping("fieldRef", 0), mapping("fileKeyRef", 0), mapping("resourceFieldRef", 0), mapping("secretKeyRef", 0)]),
    // 88: api.core.v1.EphemeralContainer
    fields(&[list("env", Some(84), &["name"]), mapping("lifecycle", 94), mapping("livenessProbe", 93), mapping("readinessProbe", 93), mapping("resources", 140), mapping("securityContext", 142), mapping("startupProbe", 93), list("volumeDevices", Some(0), &["devicePath"]), list("volumeMounts", Some(0), &["mountPath"])]),
    // 89: api.core.v1.EphemeralVolumeSource
    fields(&[mapping("volumeClaimTemplate", 116)]),
    // 90: api.core.v1.EphemeralVolumeSource
    fields(&[mapping("volumeClaimTemplate", 117)]),
    // 91: api.core.v1.Event
    fields(&[mapping("involvedObject", 0), mapping("metadata", 235), mapping("related", 0), mapping("series", 0), mapping("source", 0)]),
    // 92: api.core.v1.FlexPersistentVolumeSource, and 1 more
    fields(&[mapping("options", 0), mapping("secretRef", 0)]),
    // 93: api.core.v1.Handler, and 1 more
    fields(&[mapping("exec", 0), mapping("httpGet", 0), mapping("tcpSocket", 0)]),
    // 94: api.core.v1.Lifecycle
    fields(&[mapping("postStart", 93), mapping("preStop", 93)]),
    // 95: api.core.v1.Lifecycle
    fields(&[mapping("postStart", 96), mapping("preStop", 96)]),
    // 96: api.core.v1.LifecycleHandler
    fields(&[mapping("exec", 0), mapping("httpGet", 0), mapping("sleep", 0), mapping("tcpSocket", 0)]),
    // 97: api.core.v1.Namespace, and 3 more
    fields(&[mapping("metadata", 235), mapping("spec", 0), mapping("status", 24)]),
    // 98: api.core.v1.Node
    fields(&[mapping("metadata", 235), mapping("spec", 104), mapping("status", 105)]),
    // 99: api.core.v1.Node
    fields(&[mapping("metadata", 235), mapping("spec", 104), mapping("status", 106)]),
    // 100: api.core.v1.NodeAffinity
    fields(&[mapping("requiredDuringSchedulingIgnoredDuringExecution", 0)]),
    // 101: api.core.v1.NodeConfigSource
    fields(&[mapping("configMap", 0)]),
    // 102: api.core.v1.NodeConfigStatus
    fields(&[mapping("active", 101), mapping("assigned", 101), mapping("lastKnownGood", 101)]),
    // 103: api.core.v1.NodeDaemonEndpoints
    fields(&[mapping("kubeletEndpoint", 0)]),
    // 104: api.core.v1.NodeSpec
    fields(&[mapping("configSource", 101), list("podCIDRs", None, &[])]),
    // 105: api.core.v1.NodeStatus
    fields(&[list("addresses", Some(0), &["type"]), mapping("allocatable", 0), mapping("capacity", 0), list("conditions", Some(0), &["type"]), mapping("config", 102), mapping("daemonEndpoints", 103), mapping("nodeInfo", 0)]),
    // 106: api.core.v1.NodeStatus
    fields(&[list("addresses", Some(0), &["type"]), mapping("allocatable", 0), mapping("capacity", 0), list("conditions", Some(0), &["type"]), mapping("config", 102), mapping("daemonEndpoints", 103), mapping("features", 0), mapping("nodeInfo", 107)]),
    // 107: api.core.v1.NodeSystemInfo
    fields(&[mapping("swap", 0)]),
    // 108: api.core.v1.PersistentVolume
    fields(&[mapping("metadata", 235), mapping("spec", 118), mapping("status", 0)]),
    // 109: api.core.v1.PersistentVolume
    fields(&[mapping("metadata", 235), mapping("spec", 119), mapping("status", 0)]),
    // 110: api.core.v1.PersistentVolumeClaim
    fields(&[mapping("metadata", 235), mapping("spec", 112), mapping("status", 114)]),
    // 111: api.core.v1.PersistentVolumeClaim
    fields(&[mapping("metadata", 235), mapping("spec", 113), mapping("status", 115)]),
    // 112: api.core.v1.PersistentVolumeClaimSpec
    fields(&[mapping("dataSource", 0), mapping("resources", 140), mapping("selector", 233)]),
    // 113: api.core.v1.PersistentVolumeClaimSpec
    fields(&[mapping("dataSource", 0), mapping("dataSourceRef", 0), mapping("resources", 140), mapping("selector", 233)]),
    // 114: api.core.v1.PersistentVolumeClaimStatus
    fields(&[mapping("capacity", 0), list("conditions", Some(0), &["type"])]),
    // 115: api.core.v1.PersistentVolumeClaimStatus
    fields(&[mapping("allocatedResourceStatuses", 0), mapping("allocatedResources", 0), mapping("capacity", 0), list("conditions", Some(0), &["type"]), mapping("modifyVolumeStatus", 0)]),
    // 116: api.core.v1.PersistentVolumeClaimTemplate
    fields(&[mapping("metadata", 235), mapping("spec", 112)]),
    // 117: api.core.v1.PersistentVolumeClaimTemplate
    fields(&[mapping("metadata", 235), mapping("spec", 113)]),
    // 118: api.core.v1.PersistentVolumeSpec
    fields(&[mapping("awsElasticBlockStore", 0), mapping("azureDisk", 0), mapping("azureFile", 0), mapping("capacity", 0), mapping("cephfs", 78), mapping("cinder", 78), mapping("claimRef", 0), mapping("csi", 75), mapping("fc", 0), mapping("flexVolume", 92), mapping("flocker", 0), mapping("gcePersistentDisk", 0), mapping("glusterfs", 0), mapping("hostPath", 0), mapping("iscsi", 78), mapping("local", 0), mapping("nfs", 0), mapping("nodeAffinity", 152), mapping("photonPersistentDisk", 0), mapping("portworxVolume", 0), mapping("quobyte", 0), mapping("rbd", 78), mapping("scaleIO", 78), mapping("storageos", 78), mapping("vsphereVolume", 0)]),
    // 119: api.core.v1.PersistentVolumeSpec
    fields(&[mapping("awsElasticBlockStore", 0), mapping("azureDisk", 0), mapping("azureFile", 0), mapping("capacity", 0), mapping("cephfs", 78), mapping("cinder", 78), mapping("claimRef", 0), mapping("csi", 76), mapping("fc", 0), mapping("flexVolume", 92), mapping("flocker", 0), mapping("gcePersistentDisk", 0), mapping("glusterfs", 0), mapping("hostPath", 0), mapping("iscsi", 78), mapping("local", 0), mapping("nfs", 0), mapping("nodeAffinity", 152), mapping("photonPersistentDisk", 0), mapping("portworxVolume", 0), mapping("quobyte", 0), mapping("rbd", 78), mapping("scaleIO", 78), mapping("storageos", 78), mapping("vsphereVolume", 0)]),
    // 120: api.core.v1.Pod
    fields(&[mapping("metadata", 235), mapping("spec", 124), mapping("status", 126)]),
    // 121: api.core.v1.Pod
    fields(&[mapping("metadata", 235), mapping("spec", 125), mapping("status", 127)]),
    // 122: api.core.v1.PodSecurityContext
    fields(&[mapping("seLinuxOptions", 0), mapping("seccompProfile", 0), mapping("windowsOptions", 0)]),
    // 123: api.core.v1.PodSecurityContext
    fields(&[mapping("appArmorProfile", 0), mapping("seLinuxOptions", 0), mapping("seccompProfile", 0), mapping("windowsOptions", 0)]),
    // 124: api.core.v1.PodSpec
    fields(&[mapping("affinity", 73), list("containers", Some(81), &["name"]), mapping("dnsConfig", 0), list("ephemeralContainers", Some(88), &["name"]), list("hostAliases", Some(0), &["ip"]), list("imagePullSecrets", Some(0), &["name"]), list("initContainers", Some(81), &["name"]), mapping("nodeSelector", 0), mapping("overhead", 0), mapping("securityContext", 122), list("topologySpreadConstraints", Some(149), &["topologyKey", "whenUnsatisfiable"]), list("volumes", Some(150), &["name"])]),
    // 125: api.core.v1.PodSpec
    fields(&[mapping("affinity", 73), list("containers", Some(82), &["name"]), mapping("dnsConfig", 0), list("ephemeralContainers", Some(82), &["name"]), list("hostAliases", Some(0), &["ip"]), list("imagePullSecrets", Some(0), &["name"]), list("initContainers", Some(82), &["name"]), mapping("nodeSelector", 0), mapping("os", 0), mapping("overhead", 0), list("resourceClaims", Some(0), &["name"]), mapping("resources", 140), list("schedulingGates", Some(0), &["name"]), mapping("schedulingGroup", 0), mapping("securityContext", 123), list("topologySpreadConstraints", Some(149), &["topologyKey", "whenUnsatisfiable"]), list("volumes", Some(151), &["name"])]),
    // 126: api.core.v1.PodStatus
    fields(&[list("conditions", Some(0), &["type"]), list("podIPs", Some(0), &["ip"])]),
    // 127: api.core.v1.PodStatus
    fields(&[mapping("allocatedResources", 0), list("conditions", Some(0), &["type"]), mapping("extendedResourceClaimStatus", 0), list("hostIPs", Some(0), &["ip"]), list("podIPs", Some(0), &["ip"]), list("resourceClaimStatuses", Some(0), &["name"]), mapping("resources", 140)]),
    // 128: api.core.v1.PodTemplate
    fields(&[mapping("metadata", 235), mapping("template", 130)]),
    // 129: api.core.v1.PodTemplate
    fields(&[mapping("metadata", 235), mapping("template", 131)]),
    // 130: api.core.v1.PodTemplateSpec
    fields(&[mapping("metadata", 235), mapping("spec", 124)]),
    // 131: api.core.v1.PodTemplateSpec
    fields(&[mapping("metadata", 235), mapping("spec", 125)]),
    // 132: api.core.v1.Probe
    fields(&[mapping("exec", 0), mapping("grpc", 0), mapping("httpGet", 0), mapping("tcpSocket", 0)]),
    // 133: api.core.v1.ReplicationController
    fields(&[mapping("metadata", 235), mapping("spec", 135), mapping("status", 24)]),
    // 134: api.core.v1.ReplicationController
    fields(&[mapping("metadata", 235), mapping("spec", 136), mapping("status", 24)]),
    // 135: api.core.v1.ReplicationControllerSpec
    fields(&[mapping("selector", 0), mapping("template", 130)]),
    // 136: api.core.v1.ReplicationControllerSpec
    fields(&[mapping("selector", 0), mapping("template", 131)]),
    // 137: api.core.v1.ResourceQuota
    fields(&[mapping("metadata", 235), mapping("spec", 138), mapping("status", 139)]),
    // 138: api.core.v1.ResourceQuotaSpec
    fields(&[mapping("hard", 0), mapping("scopeSelector", 0)]),
    // 139: api.core.v1.ResourceQuotaStatus
    fields(&[mapping("hard", 0), mapping("used", 0)]),
    // 140: api.core.v1.ResourceRequirements, and 1 more
    fields(&[mapping("limits", 0), mapping("requests", 0)]),
    // 141: api.core.v1.Secret
    fields(&[mapping("data", 0), mapping("metadata", 235), mapping("stringData", 0)]),
    // 142: api.core.v1.SecurityContext
    fields(&[mapping("capabilities", 0), mapping("seLinuxOptions", 0), mapping("seccompProfile", 0), mapping("windowsOptions", 0)]),
    // 143: api.core.v1.SecurityContext
    fields(&[mapping("appArmorProfile", 0), mapping("capabilities", 0), mapping("seLinuxOptions", 0), mapping("seccompProfile", 0), mapping("windowsOptions", 0)]),
    // 144: api.core.v1.Service
    fields(&[mapping("metadata", 235), mapping("spec", 146), mapping("status", 147)]),
    // 145: api.core.v1.ServiceAccount
    fields(&[mapping("metadata", 235), list("secrets", Some(0), &["name"])]),
    // 146: api.core.v1.ServiceSpec
    fields(&[list("ports", Some(0), &["port", "protocol"]), mapping("selector", 0), mapping("sessionAffinityConfig", 148)]),
    // 147: api.core.v1.ServiceStatus
    fields(&[list("conditions", Some(0), &["type"]), mapping("loadBalancer", 0)]),
    // 148: api.core.v1.SessionAffinityConfig
    fields(&[mapping("clientIP", 0)]),
    // 149: api.core.v1.TopologySpreadConstraint
    fields(&[mapping("labelSelector", 233)]),
    // 150: api.core.v1.Volume
    fields(&[mapping("awsElasticBlockStore", 0), mapping("azureDisk", 0), mapping("azureFile", 0), mapping("cephfs", 78), mapping("cinder", 78), mapping("configMap", 0), mapping("csi", 77), mapping("downwardAPI", 0), mapping("emptyDir", 0), mapping("ephemeral", 89), mapping("fc", 0), mapping("flexVolume", 92), mapping("flocker", 0), mapping("gcePersistentDisk", 0), mapping("gitRepo", 0), mapping("glusterfs", 0), mapping("hostPath", 0), mapping("iscsi", 78), mapping("nfs", 0), mapping("persistentVolumeClaim", 0), mapping("photonPersistentDisk", 0), mapping("portworxVolume", 0), mapping("projected", 0), mapping("quobyte", 0), mapping("rbd", 78), mapping("scaleIO", 78), mapping("secret", 0), mapping("storageos", 78), mapping("vsphereVolume", 0)]),
    // 151: api.core.v1.Volume
    fields(&[mapping("awsElasticBlockStore", 0), mapping("azureDisk", 0), mapping("azureFile", 0), mapping("cephfs", 78), mapping("cinder", 78), mapping("configMap", 0), mapping("csi", 77), mapping("downwardAPI", 0), mapping("emptyDir", 0), mapping("ephemeral", 90), mapping("fc", 0), mapping("flexVolume", 92), mapping("flocker", 0), mapping("gcePersistentDisk", 0), mapping("gitRepo", 0), mapping("glusterfs", 0), mapping("hostPath", 0), mapping("image", 0), mapping("iscsi", 78), mapping("nfs", 0), mapping("persistentVolumeClaim", 0), mapping("photonPersistentDisk", 0), mapping("portworxVolume", 0), mapping("projected", 0), mapping("quobyte", 0), mapping("rbd", 78), mapping("scaleIO", 78), mapping("secret", 0), mapping("storageos", 78), mapping("vsphereVolume", 0)]),
    // 152: api.core.v1.VolumeNodeAffinity
    fields(&[mapping("required", 0)]),
    // 153: api.events.v1.Event, and 1 more
    fields(&[mapping("deprecatedSource", 0), mapping("metadata", 235), mapping("regarding", 0), mapping("related", 0), mapping("series", 0)]),
    // 154: api.extensions.v1beta1.Ingress, and 1 more
    fields(&[mapping("metadata", 235), mapping("spec", 156), mapping("status", 157)]),
    // 155: api.extensions.v1beta1.IngressBackend, and 2 more
    fields(&[mapping("resource", 0)]),
    // 156: api.extensions.v1beta1.IngressSpec, and 1 more
    fields(&[mapping("backend", 155)]),
    // 157: api.extensions.v1beta1.IngressStatus, and 2 more
    fields(&[mapping("loadBalancer", 0)]),
    // 158: api.flowcontrol.v1.FlowSchema
    fields(&[mapping("metadata", 235), mapping("spec", 159), mapping("status", 24)]),
    // 159: api.flowcontrol.v1.FlowSchemaSpec, and 1 more
    fields(&[mapping("distinguisherMethod", 0), mapping("priorityLevelConfiguration", 0)]),
    // 160: api.flowcontrol.v1.LimitResponse, and 1 more
    fields(&[mapping("queuing", 0)]),
    // 161: api.flowcontrol.v1.LimitedPriorityLevelConfiguration, and 1 more
    fields(&[mapping("limitResponse", 160)]),
    // 162: api.flowcontrol.v1.PriorityLevelConfiguration
    fields(&[mapping("metadata", 235), mapping("spec", 163), mapping("status", 24)]),
    // 163: api.flowcontrol.v1.PriorityLevelConfigurationSpec
    fields(&[mapping("exempt", 0), mapping("limited", 161)]),
    // 164: api.flowcontrol.v1beta1.FlowSchema
    fields(&[mapping("metadata", 235), mapping("spec", 159), mapping("status", 0)]),
    // 165: api.flowcontrol.v1beta1.PriorityLevelConfiguration
    fields(&[mapping("metadata", 235), mapping("spec", 166), mapping("status", 0)]),
    // 166: api.flowcontrol.v1beta1.PriorityLevelConfigurationSpec
    fields(&[mapping("limited", 161)]),
    // 167: api.networking.v1.IPAddress, and 1 more
    fields(&[mapping("metadata", 235), mapping("spec", 168)]),
    // 168: api.networking.v1.IPAddressSpec, and 1 more
    fields(&[mapping("parentRef", 0)]),
    // 169: api.networking.v1.Ingress
    fields(&[mapping("metadata", 235), mapping("spec", 174), mapping("status", 157)]),
    // 170: api.networking.v1.IngressBackend
    fields(&[mapping("resource", 0), mapping("service", 173)]),
    // 171: api.networking.v1.IngressClass, and 1 more
    fields(&[mapping("metadata", 235), mapping("spec", 172)]),
    // 172: api.networking.v1.IngressClassSpec, and 1 more
    fields(&[mapping("parameters", 0)]),
    // 173: api.networking.v1.IngressServiceBackend
    fields(&[mapping("port", 0)]),
    // 174: api.networking.v1.IngressSpec
    fields(&[mapping("defaultBackend", 170)]),
    // 175: api.networking.v1.NetworkPolicy
    fields(&[mapping("metadata", 235), mapping("spec", 176)]),
    // 176: api.networking.v1.NetworkPolicySpec
    fields(&[mapping("podSelector", 233)]),
    // 177: api.node.v1.Overhead, and 1 more
    fields(&[mapping("podFixed", 0)]),
    // 178: api.node.v1.RuntimeClass, and 1 more
    fields(&[mapping("metadata", 235), mapping("overhead", 177), mapping("scheduling", 179)]),
    // 179: api.node.v1.Scheduling, and 1 more
    fields(&[mapping("nodeSelector", 0)]),
    // 180: api.policy.v1.Eviction, and 1 more
    fields(&[mapping("deleteOptions", 232), mapping("metadata", 235)]),
    // 181: api.policy.v1.PodDisruptionBudget, and 1 more
    fields(&[mapping("metadata", 235), mapping("spec", 12), mapping("status", 182)]),
    // 182: api.policy.v1.PodDisruptionBudgetStatus, and 1 more
    fields(&[list("conditions", Some(0), &["type"]), mapping("disruptedPods", 0)]),
    // 183: api.policy.v1beta1.PodSecurityPolicy
    fields(&[mapping("metadata", 235), mapping("spec", 184)]),
    // 184: api.policy.v1beta1.PodSecurityPolicySpec
    fields(&[mapping("fsGroup", 0), mapping("runAsGroup", 0), mapping("runAsUser", 0), mapping("runtimeClass", 0), mapping("seLinux", 185), mapping("supplementalGroups", 0)]),
    // 185: api.policy.v1beta1.SELinuxStrategyOptions
    fields(&[mapping("seLinuxOptions", 0)]),
    // 186: api.rbac.v1.ClusterRole, and 1 more
    fields(&[mapping("aggregationRule", 0), mapping("metadata", 235)]),
    // 187: api.rbac.v1.ClusterRoleBinding, and 3 more
    fields(&[mapping("metadata", 235), mapping("roleRef", 0)]),
    // 188: api.resource.v1.AllocationResult, and 2 more
    fields(&[mapping("devices", 0), mapping("nodeSelector", 0)]),
    // 189: api.resource.v1.ResourceClaim, and 2 more
    fields(&[mapping("metadata", 235), mapping("spec", 190), mapping("status", 191)]),
    // 190: api.resource.v1.ResourceClaimSpec, and 2 more
    fields(&[mapping("devices", 0)]),
    // 191: api.resource.v1.ResourceClaimStatus, and 2 more
    fields(&[mapping("allocation", 188), list("reservedFor", Some(0), &["uid"])]),
    // 192: api.resource.v1.ResourceClaimTemplate, and 2 more
    fields(&[mapping("metadata", 235), mapping("spec", 193)]),
    // 193: api.resource.v1.ResourceClaimTemplateSpec, and 2 more
    fields(&[mapping("metadata", 235), mapping("spec", 190)]),
    // 194: api.resource.v1.ResourceSlice, and 2 more
    fields(&[mapping("metadata", 235), mapping("spec", 195)]),
    // 195: api.resource.v1.ResourceSliceSpec, and 2 more
    fields(&[mapping("nodeSelector", 0), mapping("pool", 0)]),
    // 196: api.resource.v1alpha3.DeviceTaintRule, and 1 more
    fields(&[mapping("metadata", 235), mapping("spec", 197), mapping("status", 24)]),
    // 197: api.resource.v1alpha3.DeviceTaintRuleSpec, and 1 more
    fields(&[mapping("deviceSelector", 0), mapping("taint", 0)]),
    // 198: api.scheduling.v1alpha2.PodGroup
    fields(&[mapping("metadata", 235), mapping("spec", 200), mapping("status", 201)]),
    // 199: api.scheduling.v1alpha2.PodGroupSchedulingPolicy
    fields(&[mapping("basic", 0), mapping("gang", 0)]),
    // 200: api.scheduling.v1alpha2.PodGroupSpec
    fields(&[mapping("podGroupTemplateRef", 202), list("resourceClaims", Some(0), &["name"]), mapping("schedulingConstraints", 0), mapping("schedulingPolicy", 199)]),
    // 201: api.scheduling.v1alpha2.PodGroupStatus
    fields(&[list("conditions", Some(0), &["type"]), list("resourceClaimStatuses", Some(0), &["name"])]),
    // 202: api.scheduling.v1alpha2.PodGroupTemplateReference
    fields(&[mapping("workload", 0)]),
    // 203: api.scheduling.v1alpha2.Workload
    fields(&[mapping("metadata", 235), mapping("spec", 204)]),
    // 204: api.scheduling.v1alpha2.WorkloadSpec
    fields(&[mapping("controllerRef", 0)]),
    // 205: api.storage.v1.CSINode, and 1 more
    fields(&[mapping("metadata", 235), mapping("spec", 207)]),
    // 206: api.storage.v1.CSINodeDriver, and 1 more
    fields(&[mapping("allocatable", 0)]),
    // 207: api.storage.v1.CSINodeSpec, and 1 more
    fields(&[list("drivers", Some(206), &["name"])]),
    // 208: api.storage.v1.CSIStorageCapacity, and 1 more
    fields(&[mapping("metadata", 235), mapping("nodeTopology", 233)]),
    // 209: api.storage.v1.StorageClass, and 3 more
    fields(&[mapping("metadata", 235), mapping("parameters", 0)]),
    // 210: api.storage.v1.VolumeAttachment, and 1 more
    fields(&[mapping("metadata", 235), mapping("spec", 214), mapping("status", 216)]),
    // 211: api.storage.v1.VolumeAttachment
    fields(&[mapping("metadata", 235), mapping("spec", 215), mapping("status", 216)]),
    // 212: api.storage.v1.VolumeAttachmentSource, and 1 more
    fields(&[mapping("inlineVolumeSpec", 118)]),
    // 213: api.storage.v1.VolumeAttachmentSource
    fields(&[mapping("inlineVolumeSpec", 119)]),
    // 214: api.storage.v1.VolumeAttachmentSpec, and 1 more
    fields(&[mapping("source", 212)]),
    // 215: api.storage.v1.VolumeAttachmentSpec
    fields(&[mapping("source", 213)]),
    // 216: api.storage.v1.VolumeAttachmentStatus, and 1 more
    fields(&[mapping("attachError", 0), mapping("attachmentMetadata", 0), mapping("detachError", 0)]),
    // 217: api.storagemigration.v1beta1.StorageVersionMigration
    fields(&[mapping("metadata", 235), mapping("spec", 155), mapping("status", 24)]),
    // 218: apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceConversion
    fields(&[mapping("webhook", 222)]),
    // 219: apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition
    fields(&[mapping("metadata", 235), mapping("spec", 220), mapping("status", 221)]),
    // 220: apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionSpec
    fields(&[mapping("conversion", 218), mapping("names", 0)]),
    // 221: apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionStatus, and 1 more
    fields(&[mapping("acceptedNames", 0)]),
    // 222: apiextensions-apiserver.pkg.apis.apiextensions.v1.WebhookConversion
    fields(&[mapping("clientConfig", 16)]),
    // 223: apiextensions-apiserver.pkg.apis.apiextensions.v1beta1.CustomResourceConversion
    fields(&[mapping("webhookClientConfig", 16)]),
    // 224: apiextensions-apiserver.pkg.apis.apiextensions.v1beta1.CustomResourceDefinition
    fields(&[mapping("metadata", 235), mapping("spec", 225), mapping("status", 221)]),
    // 225: apiextensions-apiserver.pkg.apis.apiextensions.v1beta1.CustomResourceDefinitionSpec
    fields(&[mapping("conversion", 223), mapping("names", 0), mapping("subresources", 226), mapping("validation", 227)]),
    // 226: apiextensions-apiserver.pkg.apis.apiextensions.v1beta1.CustomResourceSubresources
    fields(&[mapping("scale", 0), mapping("status", 0)]),
    // 227: apiextensions-apiserver.pkg.apis.apiextensions.v1beta1.CustomResourceValidation
    fields(&[mapping("openAPIV3Schema", 228)]),
    // 228: apiextensions-apiserver.pkg.apis.apiextensions.v1beta1.JSONSchemaProps
    fields(&[mapping("additionalItems", 0), mapping("additionalProperties", 0), mapping("default", 0), mapping("definitions", 229), mapping("dependencies", 230), mapping("example", 0), mapping("externalDocs", 0), mapping("items", 0), mapping("not", 228), mapping("patternProperties", 229), mapping("properties", 229)]),
    // 229: apiextensions-apiserver.pkg.apis.apiextensions.v1beta1.JSONSchemaProps.definitions, and 2 more
    fields(&[]).others(mapping("", 228)),
    // 230: apiextensions-apiserver.pkg.apis.apiextensions.v1beta1.JSONSchemaProps.dependencies
    fields(&[]).others(mapping("", 0)),
    // 231: apimachinery.pkg.apis.meta.v1.APIGroup
    fields(&[mapping("preferredVersion", 0)]),
    // 232: apimachinery.pkg.apis.meta.v1.DeleteOptions
    fields(&[mapping("preconditions", 0)]),
    // 233: apimachinery.pkg.apis.meta.v1.LabelSelector
    fields(&[mapping("matchLabels", 0)]),
    // 234: apimachinery.pkg.apis.meta.v1.ListMeta
    fields(&[mapping("shardInfo", 0)]),
    // 235: apimachinery.pkg.apis.meta.v1.ObjectMeta
    fields(&[mapping("annotations", 0), list("finalizers", None, &[]), mapping("labels", 0), list("ownerReferences", Some(0), &["uid"])]),
    // 236: apimachinery.pkg.apis.meta.v1.Status
    fields(&[mapping("details", 0), mapping("metadata", 0)]),
    // 237: apimachinery.pkg.apis.meta.v1.Status
    fields(&[mapping("details", 0), mapping("metadata", 234)]),
    // 238: apimachinery.pkg.apis.meta.v1.WatchEvent
    fields(&[mapping("object", 0)]),
    // 239: kube-aggregator.pkg.apis.apiregistration.v1.APIService, and 1 more
    fields(&[mapping("metadata", 235), mapping("spec", 16), mapping("status", 24)]),
];

/// The types, in order: definition and scope that kustomize knows, definition and scope in Kubernetes.
#[rustfmt::skip]
pub(super) static TYPES: &[Type] = &[
    of("admission.k8s.io/v1", "DeleteOptions", (232, Unknown), (232, Unknown)),
    of("admission.k8s.io/v1", "WatchEvent", (238, Unknown), (238, Unknown)),
    of("admission.k8s.io/v1beta1", "DeleteOptions", (232, Unknown), (232, Unknown)),
    of("admission.k8s.io/v1beta1", "WatchEvent", (238, Unknown), (238, Unknown)),
    of("admissionregistration.k8s.io/v1", "DeleteOptions", (232, Unknown), (232, Unknown)),
    of("admissionregistration.k8s.io/v1", "MutatingAdmissionPolicy", (NONE, Unknown), (2, Cluster)),
    of("admissionregistration.k8s.io/v1", "MutatingAdmissionPolicyBinding", (NONE, Unknown), (3, Cluster)),
    of("admissionregistration.k8s.io/v1", "MutatingAdmissionPolicyBindingList", (NONE, Unknown), (4, Unknown)),
    of("admissionregistration.k8s.io/v1", "MutatingAdmissionPolicyList", (NONE, Unknown), (4, Unknown)),
    of("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", (9, Cluster), (10, Cluster)),
    of("admissionregistration.k8s.io/v1", "MutatingWebhookConfigurationList", (11, Unknown), (4, Unknown)),
    of("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", (NONE, Cluster), (13, Cluster)),
    of("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding", (NONE, Cluster), (3, Cluster)),
    of("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBindingList", (NONE, Unknown), (4, Unknown)),
    of("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyList", (NONE, Unknown), (4, Unknown)),
    of("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", (9, Cluster), (10, Cluster)),
    of("admissionregistration.k8s.io/v1", "ValidatingWebhookConfigurationList", (11, Unknown), (4, Unknown)),
    of("admissionregistration.k8s.io/v1", "WatchEvent", (238, Unknown), (238, Unknown)),
    of("admissionregistration.k8s.io/v1alpha1", "DeleteOptions", (NONE, Unknown), (232, Unknown)),
    of("admissionregistration.k8s.io/v1alpha1", "MutatingAdmissionPolicy", (NONE, Unknown), (2, Cluster)),
    of("admissionregistration.k8s.io/v1alpha1", "MutatingAdmissionPolicyBinding", (NONE, Unknown), (3, Cluster)),
    of("admissionregistration.k8s.io/v1alpha1", "MutatingAdmissionPolicyBindingList", (NONE, Unknown), (4, Unknown)),
    of("admissionregistration.k8s.io/v1alpha1", "MutatingAdmissionPolicyList", (NONE, Unknown), (4, Unknown)),
    of("admissionregistration.k8s.io/v1alpha1", "WatchEvent", (NONE, Unknown), (238, Unknown)),
    of("admissionregistration.k8s.io/v1beta1", "DeleteOptions", (232, Unknown), (232, Unknown)),
    of("admissionregistration.k8s.io/v1beta1", "MutatingAdmissionPolicy", (NONE, Unknown), (2, Cluster)),
    of("admissionregistration.k8s.io/v1beta1", "MutatingAdmissionPolicyBinding", (NONE, Unknown), (3, Cluster)),
    of("admissionregistration.k8s.io/v1beta1", "MutatingAdmissionPolicyBindingList", (NONE, Unknown), (4, Unknown)),
    of("admissionregistration.k8s.io/v1beta1", "MutatingAdmissionPolicyList", (NONE, Unknown), (4, Unknown)),
    of("admissionregistration.k8s.io/v1beta1", "MutatingWebhookConfiguration", (9, Cluster), (NONE, Unknown)),
    of("admissionregistration.k8s.io/v1beta1", "MutatingWebhookConfigurationList", (11, Unknown), (NONE, Unknown)),
    of("admissionregistration.k8s.io/v1beta1", "ValidatingWebhookConfiguration", (9, Cluster), (NONE, Unknown)),
    of("admissionregistration.k8s.io/v1beta1", "ValidatingWebhookConfigurationList", (11, Unknown), (NONE, Unknown)),
    of("admissionregistration.k8s.io/v1beta1", "WatchEvent", (238, Unknown), (238, Unknown)),
    of("apiextensions.k8s.io/v1", "CustomResourceDefinition", (219, Cluster), (219, Cluster)),
    of("apiextensions.k8s.io/v1", "CustomResourceDefinitionList", (11, Unknown), (4, Unknown)),
    of("apiextensions.k8s.io/v1", "DeleteOptions", (232, Unknown), (232, Unknown)),
    of("apiextensions.k8s.io/v1", "WatchEvent", (238, Unknown), (238, Unknown)),
    of("apiextensions.k8s.io/v1beta1", "CustomResourceDefinition", (224, Cluster), (NONE, Unknown)),
    of("apiextensions.k8s.io/v1beta1", "CustomResourceDefinitionList", (11, Unknown), (NONE, Unknown)),
    of("apiextensions.k8s.io/v1beta1", "DeleteOptions", (232, Unknown), (232, Unknown)),
    of("apiextensions.k8s.io/v1beta1", "WatchEvent", (238, Unknown), (238, Unknown)),
    of("apiregistration.k8s.io/v1", "APIService", (239, Cluster), (239, Cluster)),
    of("apiregistration.k8s.io/v1", "APIServiceList", (11, Unknown), (4, Unknown)),
    of("apiregistration.k8s.io/v1", "DeleteOptions", (232, Unknown), (232, Unknown)),
    of("apiregistration.k8s.io/v1", "WatchEvent", (238, Unknown), (238, Unknown)),
    of("apiregistration.k8s.io/v1beta1", "APIService", (239, Cluster), (NONE, Unknown)),
    of("apiregistration.k8s.io/v1beta1", "APIServiceList", (11, Unknown), (NONE, Unknown)),
    of("apiregistration.k8s.io/v1beta1", "DeleteOptions", (232, Unknown), (232, Unknown)),
    of("apiregistration.k8s.io/v1beta1", "WatchEvent", (238, Unknown), (238, Unknown)),
    of("apps/v1", "ControllerRevision", (19, Namespaced), (19, Namespaced)),
    of("apps/v1", "ControllerRevisionList", (11, Unknown), (4, Unknown)),
    of("apps/v1", "DaemonSet", (20, Namespaced), (21, Namespaced)),
    of("apps/v1", "DaemonSetList", (11, Unknown), (4, Unknown)),
    of("apps/v1", "DeleteOptions", (232, Unknown), (232, Unknown)),
    of("apps/v1", "Deployment", (26, Namespaced), (27, Namespaced)),
    of("apps/v1", "DeploymentList", (11, Unknown), (4, Unknown)),
    of("apps/v1", "ReplicaSet", (32, Namespaced), (33, Namespaced)),
    of("apps/v1", "ReplicaSetList", (11, Unknown), (4, Unknown)),
    of("apps/v1", "StatefulSet", (20, Namespaced), (36, Namespaced)),
    of("apps/v1", "StatefulSetList", (11, Unknown), (4, Unknown)),
    of("apps/v1", "WatchEvent", (238, Unknown), (238, Unknown)),
    of("apps/v1beta1", "DeleteOptions", (232, Unknown), (232, Unknown)),
    of("apps/v1beta1", "WatchEvent", (238, Unknown), (238, Unknown)),
    of("apps/v1beta2", "DeleteOptions", (232, Unknown), (232, Unknown)),
    of("apps/v1beta2", "WatchEvent", (238, Unknown), (238, Unknown)),
    of("authentication.k8s.io/v1", "DeleteOptions", (232, Unknown), (232, Unknown)),
    of("authentication.k8s.io/v1", "SelfSubjectReview", (NONE, Unknown), (38, Unknown)),
    of("authentication.k8s.io/v1", "TokenRequest", (40, Unknown), (40, Unknown)),
    of("authentication.k8s.io/v1", "TokenReview", (42, Unknown), (42, Unknown)),
    of("authentication.k8s.io/v1", "WatchEvent", (238, Unknown), (238, Unknown)),
    of("authentication.k8s.io/v1alpha1", "DeleteOptions", (NONE, Unknown), (232, Unknown)),
    of("authentication.k8s.io/v1alpha1", "WatchEvent", (NONE, Unknown), (238, Unknown)),
    of("authentication.k8s.io/v1beta1", "DeleteOptions", (232, Unknown), (232, Unknown)),
    of("authentication.k8s.io/v1beta1", "TokenReview", (42, Unknown), (NONE, Unknown)),
    of("authentication.k8s.io/v1beta1", "WatchEvent", (238, Unknown), (238, Unknown)),
    of("authorization.k8s.io/v1", "DeleteOptions", (232, Unknown), (232, Unknown)),
    of("authorization.k8s.io/v1", "LocalSubjectAccessReview", (45, Unknown), (46, Unknown)),
    of("authorization.k8s.io/v1", "SelfSubjectAccessReview", (48, Unknown), (49, Unknown)),
    of("authorization.k8s.io/v1", "SelfSubjectRulesReview", (17, Unknown), (17, Unknown)),
    of("authorization.k8s.io/v1", "SubjectAccessReview", (45, Unknown), (46, Unknown)),
    of("authorization.k8s.io/v1", "WatchEvent", (238, Unknown), (238, Unknown)),
    of("authorization.k8s.io/v1beta1", "DeleteOptions", (232, Unknown), (232, Unknown)),
    of("authorization.k8s.io/v1beta1", "LocalSubjectAccessReview", (45, Unknown), (NONE, Unknown)),
    of("authorization.k8s.io/v1beta1", "SelfSubjectAccessReview", (48, Unknown), (NONE, Unknown)),
    of("authorization.k8s.io/v1beta1", "SelfSubjectRulesReview", (17, Unknown), (NONE, Unknown)),
    of("authorization.k8s.io/v1beta1", "SubjectAccessReview", (45, Unknown), (NONE, Unknown)),
    of("authorization.k8s.io/v1beta1", "WatchEvent", (238, Unknown), (238, Unknown)),
    of("autoscaling/v1", "DeleteOptions", (232, Unknown), (232, Unknown)),
    of("autoscaling/v1", "HorizontalPodAutoscaler", (54, Namespaced), (54, Namespaced)),
    of("autoscaling/v1", "HorizontalPodAutoscalerList", (11, Unknown), (4, Unknown)),
    of("autoscaling/v1", "Scale", (17, Namespaced), (17, Namespaced)),
    of("autoscaling/v1", "WatchEvent", (238, Unknown), (238, Unknown)),
    of("autoscaling/v2", "DeleteOptions", (NONE, Unknown), (232, Unknown)),
    of("autoscaling/v2", "HorizontalPodAutoscaler", (NONE, Unknown), (56, Namespaced)),
    of("autoscaling/v2", "HorizontalPodAutoscalerList", (NONE, Unknown), (4, Unknown)),
    of("autoscaling/v2", "WatchEvent", (NONE, Unknown), (238, Unknown)),
    of("autoscaling/v2beta1", "DeleteOptions", (232, Unknown), (NONE, Unknown)),
    of("autoscaling/v2beta1", "HorizontalPodAutoscaler", (54, Namespaced), (NONE, Unknown)),
    of("autoscaling/v2beta1", "HorizontalPodAutoscalerList", (11, Unknown), (NONE, Unknown)),
    of("autoscaling/v2beta1", "WatchEvent", (238, Unknown), (NONE, Unknown)),
    of("autoscaling/v2beta2", "DeleteOptions", (232, Unknown), (NONE, Unknown)),
    of("autoscaling/v2beta2", "HorizontalPodAutoscaler", (59, Namespaced), (NONE, Unknown)),
    of("autoscaling/v2beta2", "HorizontalPodAutoscalerList", (11, Unknown), (NONE, Unknown)),
    of("autoscaling/v2beta2", "WatchEvent", (238, Unknown), (NONE, Unknown)),
    of("batch/v1", "CronJob", (60, Namespaced), (61, Namespaced)),
    of("batch/v1", "CronJobList", (11, Unknown), (4, Unknown)),
    of("batch/v1", "DeleteOptions", (232, Unknown), (232, Unknown)),
    of("batch/v1", "Job", (32, Namespaced), (64, Namespaced)),
    of("batch/v1", "JobList", (11, Unknown), (4, Unknown)),
    of("batch/v1", "WatchEvent", (238, Unknown), (238, Unknown)),
    of("batch/v1beta1", "CronJob", (60, Namespaced), (NONE, Unknown)),
    of("batch/v1beta1", "CronJobList", (11, Unknown), (NONE, Unknown)),
    of("batch/v1beta1", "DeleteOptions", (232, Unknown), (232, Unknown)),
    of("batch/v1beta1", "WatchEvent", (238, Unknown), (238, Unknown)),
    of("certificates.k8s.io/v1", "CertificateSigningRequest", (69, Cluster), (69, Cluster)),
    of("certificates.k8s.io/v1", "CertificateSigningRequestList", (11, Unknown), (4, Unknown)),
    of("certificates.k8s.io/v1", "DeleteOptions", (232, Unknown), (232, Unknown)),
    of("certificates.k8s.io/v1", "WatchEvent", (238, Unknown), (238, Unknown)),
    of("certificates.k8s.io/v1alpha1", "ClusterTrustBundle", (NONE, Unknown), (70, Cluster)),
    of("certificates.k8s.io/v1alpha1", "ClusterTrustBundleList", (NONE, Unknown), (4, Unknown)),
    of("certificates.k8s.io/v1alpha1", "DeleteOptions", (NONE, Unknown), (232, Unknown)),
    of("certificates.k8s.io/v1alpha1", "WatchEvent", (NONE, Unknown), (238, Unknown)),
    of("certificates.k8s.io/v1beta1", "CertificateSigningRequest", (69, Cluster), (NONE, Unknown)),
    of("certificates.k8s.io/v1beta1", "CertificateSigningRequestList", (11, Unknown), (NONE, Unknown)),
    of("certificates.k8s.io/v1beta1", "ClusterTrustBundle", (NONE, Unknown), (70, Cluster)),
    of("certificates.k8s.io/v1beta1", "ClusterTrustBundleList", (NONE, Unknown), (4, Unknown)),
    of("certificates.k8s.io/v1beta1", "DeleteOptions", (232, Unknown), (232, Unknown)),
    of("certificates.k8s.io/v1beta1", "PodCertificateRequest", (NONE, Unknown), (71, Namespaced)),
    of("certificates.k8s.io/v1beta1", "PodCertificateRequestList", (NONE, Unknown), (4, Unknown)),
    of("certificates.k8s.io/v1beta1", "WatchEvent", (238, Unknown), (238, Unknown)),
    of("coordination.k8s.io/v1", "DeleteOptions", (232, Unknown), (232, Unknown)),
    of("coordination.k8s.io/v1", "Lease", (70, Namespaced), (70, Namespaced)),
    of("coordination.k8s.io/v1", "LeaseList", (11, Unknown), (4, Unknown)),
    of("coordination.k8s.io/v1", "WatchEvent", (238, Unknown), (238, Unknown)),
    of("coordination.k8s.io/v1alpha2", "DeleteOptions", (NONE, Unknown), (232, Unknown)),
    of("coordination.k8s.io/v1alpha2", "LeaseCandidate", (NONE, Unknown), (70, Namespaced)),
    of("coordination.k8s.io/v1alpha2", "LeaseCandidateList", (NONE, Unknown), (4, Unknown)),
    of("coordination.k8s.io/v1alpha2", "WatchEvent", (NONE, Unknown), (238, Unknown)),
    of("coordination.k8s.io/v1beta1", "DeleteOptions", (232, Unknown), (232, Unknown)),
    of("coordination.k8s.io/v1beta1", "Lease", (70, Namespaced), (NONE, Unknown)),
    of("coordination.k8s.io/v1beta1", "LeaseCandidate", (NONE, Unknown), (70, Namespaced)),
    of("coordination.k8s.io/v1beta1", "LeaseCandidateList", (NONE, Unknown), (4, Unknown)),
    of("coordination.k8s.io/v1beta1", "LeaseList", (11, Unknown), (NONE, Unknown)),
    of("coordination.k8s.io/v1beta1", "WatchEvent", (238, Unknown), (238, Unknown)),
    of("discovery.k8s.io/v1", "DeleteOptions", (232, Unknown), (232, Unknown)),
    of("discovery.k8s.io/v1", "EndpointSlice", (83, Namespaced), (83, Namespaced)),
    of("discovery.k8s.io/v1", "EndpointSliceList", (11, Unknown), (4, Unknown)),
    of("discovery.k8s.io/v1", "WatchEvent", (238, Unknown), (238, Unknown)),
    of("discovery.k8s.io/v1beta1", "DeleteOptions", (232, Unknown), (232, Unknown)),
    of("discovery.k8s.io/v1beta1", "EndpointSlice", (83, Namespaced), (NONE, Unknown)),
    of("discovery.k8s.io/v1beta1", "EndpointSliceList", (11, Unknown), (NONE, Unknown)),
    of("discovery.k8s.io/v1beta1", "WatchEvent", (238, Unknown), (238, Unknown)),
    of("events.k8s.io/v1", "DeleteOptions", (232, Unknown), (232, Unknown)),
    of("events.k8s.io/v1", "Event", (153, Namespaced), (153, Namespaced)),
    of("events.k8s.io/v1", "EventList", (11, Unknown), (4, Unknown)),
    of("events.k8s.io/v1", "WatchEvent", (238, Unknown), (238, Unknown)),
    of("events.k8s.io/v1beta1", "DeleteOptions", (232, Unknown), (232, Unknown)),
    of("events.k8s.io/v1beta1", "Event", (153, Namespaced), (NONE, Unknown)),
    of("events.k8s.io/v1beta1", "EventList", (11, Unknown), (NONE, Unknown)),
    of("events.k8s.io/v1beta1", "WatchEvent", (238, Unknown), (238, Unknown)),
    of("extensions/v1beta1", "DeleteOptions", (232, Unknown), (232, Unknown)),
    of("extensions/v1beta1", "Ingress", (154, Namespaced), (NONE, Unknown)),
    of("extensions/v1beta1", "IngressList", (11, Unknown), (NONE, Unknown)),
    of("extensions/v1beta1", "WatchEvent", (238, Unknown), (238, Unknown)),
    of("flowcontrol.apiserver.k8s.io/v1", "DeleteOptions", (NONE, Unknown), (232, Unknown)),
    of("flowcontrol.apiserver.k8s.io/v1", "FlowSchema", (NONE, Unknown), (158, Cluster)),
    of("flowcontrol.apiserver.k8s.io/v1", "FlowSchemaList", (NONE, Unknown), (4, Unknown)),
    of("flowcontrol.apiserver.k8s.io/v1", "PriorityLevelConfiguration", (NONE, Unknown), (162, Cluster)),
    of("flowcontrol.apiserver.k8s.io/v1", "PriorityLevelConfigurationList", (NONE, Unknown), (4, Unknown)),
    of("flowcontrol.apiserver.k8s.io/v1", "WatchEvent", (NONE, Unknown), (238, Unknown)),
    of("flowcontrol.apiserver.k8s.io/v1alpha1", "DeleteOptions", (232, Unknown), (NONE, Unknown)),
    of("flowcontrol.apiserver.k8s.io/v1alpha1", "WatchEvent", (238, Unknown), (NONE, Unknown)),
    of("flowcontrol.apiserver.k8s.io/v1beta1", "DeleteOptions", (232, Unknown), (232, Unknown)),
    of("flowcontrol.apiserver.k8s.io/v1beta1", "FlowSchema", (164, Cluster), (NONE, Unknown)),
    of("flowcontrol.apiserver.k8s.io/v1beta1", "FlowSchemaList", (11, Unknown), (NONE, Unknown)),
    of("flowcontrol.apiserver.k8s.io/v1beta1", "PriorityLevelConfiguration", (165, Cluster), (NONE, Unknown)),
    of("flowcontrol.apiserver.k8s.io/v1beta1", "PriorityLevelConfigurationList", (11, Unknown), (NONE, Unknown)),
    of("flowcontrol.apiserver.k8s.io/v1beta1", "WatchEvent", (238, Unknown), (238, Unknown)),
    of("flowcontrol.apiserver.k8s.io/v1beta2", "DeleteOptions", (NONE, Unknown), (232, Unknown)),
    of("flowcontrol.apiserver.k8s.io/v1beta2", "WatchEvent", (NONE, Unknown), (238, Unknown)),
    of("flowcontrol.apiserver.k8s.io/v1beta3", "DeleteOptions", (NONE, Unknown), (232, Unknown)),
    of("flowcontrol.apiserver.k8s.io/v1beta3", "WatchEvent", (NONE, Unknown), (238, Unknown)),
    of("imagepolicy.k8s.io/v1alpha1", "DeleteOptions", (232, Unknown), (232, Unknown)),
    of("imagepolicy.k8s.io/v1alpha1", "WatchEvent", (238, Unknown), (238, Unknown)),
    of("internal.apiserver.k8s.io/v1alpha1", "DeleteOptions", (232, Unknown), (232, Unknown)),
    of("internal.apiserver.k8s.io/v1alpha1", "StorageVersion", (NONE, Unknown), (17, Cluster)),
    of("internal.apiserver.k8s.io/v1alpha1", "StorageVersionList", (NONE, Unknown), (4, Unknown)),
    of("internal.apiserver.k8s.io/v1alpha1", "WatchEvent", (238, Unknown), (238, Unknown)),
    of("kustomize.config.k8s.io/v1beta1", "ConfigMapArgs", (18, Unknown), (NONE, Unknown)),
    of("kustomize.config.k8s.io/v1beta1", "GeneratorArgs", (30, Unknown), (NONE, Unknown)),
    of("kustomize.config.k8s.io/v1beta1", "Kustomization", (31, Unknown), (NONE, Unknown)),
    of("kustomize.config.k8s.io/v1beta1", "KvPairSources", (0, Unknown), (NONE, Unknown)),
    of("kustomize.config.k8s.io/v1beta1", "SecretArgs", (18, Unknown), (NONE, Unknown)),
    of("networking.k8s.io/v1", "DeleteOptions", (232, Unknown), (232, Unknown)),
    of("networking.k8s.io/v1", "IPAddress", (NONE, Unknown), (167, Cluster)),
    of("networking.k8s.io/v1", "IPAddressList", (NONE, Unknown), (4, Unknown)),
    of("networking.k8s.io/v1", "Ingress", (169, Namespaced), (169, Namespaced)),
    of("networking.k8s.io/v1", "IngressClass", (171, Cluster), (171, Cluster)),
    of("networking.k8s.io/v1", "IngressClassList", (11, Unknown), (4, Unknown)),
    of("networking.k8s.io/v1", "IngressList", (11, Unknown), (4, Unknown)),
    of("networking.k8s.io/v1", "NetworkPolicy", (175, Namespaced), (175, Namespaced)),
    of("networking.k8s.io/v1", "NetworkPolicyList", (11, Unknown), (4, Unknown)),
    of("networking.k8s.io/v1", "ServiceCIDR", (NONE, Unknown), (97, Cluster)),
    of("networking.k8s.io/v1", "ServiceCIDRList", (NONE, Unknown), (4, Unknown)),
    of("networking.k8s.io/v1", "WatchEvent", (238, Unknown), (238, Unknown)),
    of("networking.k8s.io/v1beta1", "DeleteOptions", (232, Unknown), (232, Unknown)),
    of("networking.k8s.io/v1beta1", "IPAddress", (NONE, Unknown), (167, Cluster)),
    of("networking.k8s.io/v1beta1", "IPAddressList", (NONE, Unknown), (4, Unknown)),
    of("networking.k8s.io/v1beta1", "Ingress", (154, Namespaced), (NONE, Unknown)),
    of("networking.k8s.io/v1beta1", "IngressClass", (171, Cluster), (NONE, Unknown)),
    of("networking.k8s.io/v1beta1", "IngressClassList", (11, Unknown), (NONE, Unknown)),
    of("networking.k8s.io/v1beta1", "IngressList", (11, Unknown), (NONE, Unknown)),
    of("networking.k8s.io/v1beta1", "ServiceCIDR", (NONE, Unknown), (97, Cluster)),
    of("networking.k8s.io/v1beta1", "ServiceCIDRList", (NONE, Unknown), (4, Unknown)),
    of("networking.k8s.io/v1beta1", "WatchEvent", (238, Unknown), (238, Unknown)),
    of("node.k8s.io/v1", "DeleteOptions", (232, Unknown), (232, Unknown)),
    of("node.k8s.io/v1", "RuntimeClass", (178, Cluster), (178, Cluster)),
    of("node.k8s.io/v1", "RuntimeClassList", (11, Unknown), (4, Unknown)),
    of("node.k8s.io/v1", "WatchEvent", (238, Unknown), (238, Unknown)),
    of("node.k8s.io/v1alpha1", "DeleteOptions", (232, Unknown), (232, Unknown)),
    of("node.k8s.io/v1alpha1", "WatchEvent", (238, Unknown), (238, Unknown)),
    of("node.k8s.io/v1beta1", "DeleteOptions", (232, Unknown), (232, Unknown)),
    of("node.k8s.io/v1beta1", "RuntimeClass", (178, Cluster), (NONE, Unknown)),
    of("node.k8s.io/v1beta1", "RuntimeClassList", (11, Unknown), (NONE, Unknown)),
    of("node.k8s.io/v1beta1", "WatchEvent", (238, Unknown), (238, Unknown)),
    of("policy/v1", "DeleteOptions", (232, Unknown), (232, Unknown)),
    of("policy/v1", "Eviction", (NONE, Unknown), (180, Unknown)),
    of("policy/v1", "PodDisruptionBudget", (181, Namespaced), (181, Namespaced)),
    of("policy/v1", "PodDisruptionBudgetList", (11, Unknown), (4, Unknown)),
    of("policy/v1", "WatchEvent", (238, Unknown), (238, Unknown)),
    of("policy/v1beta1", "DeleteOptions", (232, Unknown), (232, Unknown)),
    of("policy/v1beta1", "Eviction", (180, Unknown), (NONE, Unknown)),
    of("policy/v1beta1", "PodDisruptionBudget", (181, Namespaced), (NONE, Unknown)),
    of("policy/v1beta1", "PodDisruptionBudgetList", (11, Unknown), (NONE, Unknown)),
    of("policy/v1beta1", "PodSecurityPolicy", (183, Cluster), (NONE, Unknown)),
    of("policy/v1beta1", "PodSecurityPolicyList", (11, Unknown), (NONE, Unknown)),
    of("policy/v1beta1", "WatchEvent", (238, Unknown), (238, Unknown)),
    of("rbac.authorization.k8s.io/v1", "ClusterRole", (186, Cluster), (186, Cluster)),
    of("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", (187, Cluster), (187, Cluster)),
    of("rbac.authorization.k8s.io/v1", "ClusterRoleBindingList", (11, Unknown), (4, Unknown)),
    of("rbac.authorization.k8s.io/v1", "ClusterRoleList", (11, Unknown), (4, Unknown)),
    of("rbac.authorization.k8s.io/v1", "DeleteOptions", (232, Unknown), (232, Unknown)),
    of("rbac.authorization.k8s.io/v1", "Role", (83, Namespaced), (83, Namespaced)),
    of("rbac.authorization.k8s.io/v1", "RoleBinding", (187, Namespaced), (187, Namespaced)),
    of("rbac.authorization.k8s.io/v1", "RoleBindingList", (11, Unknown), (4, Unknown)),
    of("rbac.authorization.k8s.io/v1", "RoleList", (11, Unknown), (4, Unknown)),
    of("rbac.authorization.k8s.io/v1", "WatchEvent", (238, Unknown), (238, Unknown)),
    of("rbac.authorization.k8s.io/v1alpha1", "DeleteOptions", (232, Unknown), (232, Unknown)),
    of("rbac.authorization.k8s.io/v1alpha1", "WatchEvent", (238, Unknown), (238, Unknown)),
    of("rbac.authorization.k8s.io/v1beta1", "ClusterRole", (186, Cluster), (NONE, Unknown)),
    of("rbac.authorization.k8s.io/v1beta1", "ClusterRoleBinding", (187, Cluster), (NONE, Unknown)),
    of("rbac.authorization.k8s.io/v1beta1", "ClusterRoleBindingList", (11, Unknown), (NONE, Unknown)),
    of("rbac.authorization.k8s.io/v1beta1", "ClusterRoleList", (11, Unknown), (NONE, Unknown)),
    of("rbac.authorization.k8s.io/v1beta1", "DeleteOptions", (232, Unknown), (232, Unknown)),
    of("rbac.authorization.k8s.io/v1beta1", "Role", (83, Namespaced), (NONE, Unknown)),
    of("rbac.authorization.k8s.io/v1beta1", "RoleBinding", (187, Namespaced), (NONE, Unknown)),
    of("rbac.authorization.k8s.io/v1beta1", "RoleBindingList", (11, Unknown), (NONE, Unknown)),
    of("rbac.authorization.k8s.io/v1beta1", "RoleList", (11, Unknown), (NONE, Unknown)),
    of("rbac.authorization.k8s.io/v1beta1", "WatchEvent", (238, Unknown), (238, Unknown)),
    of("resource.k8s.io/v1", "DeleteOptions", (NONE, Unknown), (232, Unknown)),
    of("resource.k8s.io/v1", "DeviceClass", (NONE, Unknown), (70, Cluster)),
    of("resource.k8s.io/v1", "DeviceClassList", (NONE, Unknown), (4, Unknown)),
    of("resource.k8s.io/v1", "ResourceClaim", (NONE, Unknown), (189, Namespaced)),
    of("resource.k8s.io/v1", "ResourceClaimList", (NONE, Unknown), (4, Unknown)),
    of("resource.k8s.io/v1", "ResourceClaimTemplate", (NONE, Unknown), (192, Namespaced)),
    of("resource.k8s.io/v1", "ResourceClaimTemplateList", (NONE, Unknown), (4, Unknown)),
    of("resource.k8s.io/v1", "ResourceSlice", (NONE, Unknown), (194, Cluster)),
    of("resource.k8s.io/v1", "ResourceSliceList", (NONE, Unknown), (4, Unknown)),
    of("resource.k8s.io/v1", "WatchEvent", (NONE, Unknown), (238, Unknown)),
    of("resource.k8s.io/v1alpha3", "DeleteOptions", (NONE, Unknown), (232, Unknown)),
    of("resource.k8s.io/v1alpha3", "DeviceTaintRule", (NONE, Unknown), (196, Cluster)),
    of("resource.k8s.io/v1alpha3", "DeviceTaintRuleList", (NONE, Unknown), (4, Unknown)),
    of("resource.k8s.io/v1alpha3", "ResourcePoolStatusRequest", (NONE, Unknown), (97, Cluster)),
    of("resource.k8s.io/v1alpha3", "ResourcePoolStatusRequestList", (NONE, Unknown), (4, Unknown)),
    of("resource.k8s.io/v1alpha3", "WatchEvent", (NONE, Unknown), (238, Unknown)),
    of("resource.k8s.io/v1beta1", "DeleteOptions", (NONE, Unknown), (232, Unknown)),
    of("resource.k8s.io/v1beta1", "DeviceClass", (NONE, Unknown), (70, Cluster)),
    of("resource.k8s.io/v1beta1", "DeviceClassList", (NONE, Unknown), (4, Unknown)),
    of("resource.k8s.io/v1beta1", "ResourceClaim", (NONE, Unknown), (189, Namespaced)),
    of("resource.k8s.io/v1beta1", "ResourceClaimList", (NONE, Unknown), (4, Unknown)),
    of("resource.k8s.io/v1beta1", "ResourceClaimTemplate", (NONE, Unknown), (192, Namespaced)),
    of("resource.k8s.io/v1beta1", "ResourceClaimTemplateList", (NONE, Unknown), (4, Unknown)),
    of("resource.k8s.io/v1beta1", "ResourceSlice", (NONE, Unknown), (194, Cluster)),
    of("resource.k8s.io/v1beta1", "ResourceSliceList", (NONE, Unknown), (4, Unknown)),
    of("resource.k8s.io/v1beta1", "WatchEvent", (NONE, Unknown), (238, Unknown)),
    of("resource.k8s.io/v1beta2", "DeleteOptions", (NONE, Unknown), (232, Unknown)),
    of("resource.k8s.io/v1beta2", "DeviceClass", (NONE, Unknown), (70, Cluster)),
    of("resource.k8s.io/v1beta2", "DeviceClassList", (NONE, Unknown), (4, Unknown)),
    of("resource.k8s.io/v1beta2", "DeviceTaintRule", (NONE, Unknown), (196, Cluster)),
    of("resource.k8s.io/v1beta2", "DeviceTaintRuleList", (NONE, Unknown), (4, Unknown)),
    of("resource.k8s.io/v1beta2", "ResourceClaim", (NONE, Unknown), (189, Namespaced)),
    of("resource.k8s.io/v1beta2", "ResourceClaimList", (NONE, Unknown), (4, Unknown)),
    of("resource.k8s.io/v1beta2", "ResourceClaimTemplate", (NONE, Unknown), (192, Namespaced)),
    of("resource.k8s.io/v1beta2", "ResourceClaimTemplateList", (NONE, Unknown), (4, Unknown)),
    of("resource.k8s.io/v1beta2", "ResourceSlice", (NONE, Unknown), (194, Cluster)),
    of("resource.k8s.io/v1beta2", "ResourceSliceList", (NONE, Unknown), (4, Unknown)),
    of("resource.k8s.io/v1beta2", "WatchEvent", (NONE, Unknown), (238, Unknown)),
    of("scheduling.k8s.io/v1", "DeleteOptions", (232, Unknown), (232, Unknown)),
    of("scheduling.k8s.io/v1", "PriorityClass", (83, Cluster), (83, Cluster)),
    of("scheduling.k8s.io/v1", "PriorityClassList", (11, Unknown), (4, Unknown)),
    of("scheduling.k8s.io/v1", "WatchEvent", (238, Unknown), (238, Unknown)),
    of("scheduling.k8s.io/v1alpha1", "DeleteOptions", (232, Unknown), (NONE, Unknown)),
    of("scheduling.k8s.io/v1alpha1", "WatchEvent", (238, Unknown), (NONE, Unknown)),
    of("scheduling.k8s.io/v1alpha2", "DeleteOptions", (NONE, Unknown), (232, Unknown)),
    of("scheduling.k8s.io/v1alpha2", "PodGroup", (NONE, Unknown), (198, Namespaced)),
    of("scheduling.k8s.io/v1alpha2", "PodGroupList", (NONE, Unknown), (4, Unknown)),
    of("scheduling.k8s.io/v1alpha2", "WatchEvent", (NONE, Unknown), (238, Unknown)),
    of("scheduling.k8s.io/v1alpha2", "Workload", (NONE, Unknown), (203, Namespaced)),
    of("scheduling.k8s.io/v1alpha2", "WorkloadList", (NONE, Unknown), (4, Unknown)),
    of("scheduling.k8s.io/v1beta1", "DeleteOptions", (232, Unknown), (232, Unknown)),
    of("scheduling.k8s.io/v1beta1", "PriorityClass", (83, Cluster), (NONE, Unknown)),
    of("scheduling.k8s.io/v1beta1", "PriorityClassList", (11, Unknown), (NONE, Unknown)),
    of("scheduling.k8s.io/v1beta1", "WatchEvent", (238, Unknown), (238, Unknown)),
    of("storage.k8s.io/v1", "CSIDriver", (70, Cluster), (70, Cluster)),
    of("storage.k8s.io/v1", "CSIDriverList", (11, Unknown), (4, Unknown)),
    of("storage.k8s.io/v1", "CSINode", (205, Cluster), (205, Cluster)),
    of("storage.k8s.io/v1", "CSINodeList", (11, Unknown), (4, Unknown)),
    of("storage.k8s.io/v1", "CSIStorageCapacity", (NONE, Unknown), (208, Namespaced)),
    of("storage.k8s.io/v1", "CSIStorageCapacityList", (NONE, Unknown), (4, Unknown)),
    of("storage.k8s.io/v1", "DeleteOptions", (232, Unknown), (232, Unknown)),
    of("storage.k8s.io/v1", "StorageClass", (209, Cluster), (209, Cluster)),
    of("storage.k8s.io/v1", "StorageClassList", (11, Unknown), (4, Unknown)),
    of("storage.k8s.io/v1", "VolumeAttachment", (210, Cluster), (211, Cluster)),
    of("storage.k8s.io/v1", "VolumeAttachmentList", (11, Unknown), (4, Unknown)),
    of("storage.k8s.io/v1", "VolumeAttributesClass", (NONE, Unknown), (209, Cluster)),
    of("storage.k8s.io/v1", "VolumeAttributesClassList", (NONE, Unknown), (4, Unknown)),
    of("storage.k8s.io/v1", "WatchEvent", (238, Unknown), (238, Unknown)),
    of("storage.k8s.io/v1alpha1", "DeleteOptions", (232, Unknown), (232, Unknown)),
    of("storage.k8s.io/v1alpha1", "WatchEvent", (238, Unknown), (238, Unknown)),
    of("storage.k8s.io/v1beta1", "CSIDriver", (70, Cluster), (NONE, Unknown)),
    of("storage.k8s.io/v1beta1", "CSIDriverList", (11, Unknown), (NONE, Unknown)),
    of("storage.k8s.io/v1beta1", "CSINode", (205, Cluster), (NONE, Unknown)),
    of("storage.k8s.io/v1beta1", "CSINodeList", (11, Unknown), (NONE, Unknown)),
    of("storage.k8s.io/v1beta1", "CSIStorageCapacity", (208, Namespaced), (NONE, Unknown)),
    of("storage.k8s.io/v1beta1", "CSIStorageCapacityList", (11, Unknown), (NONE, Unknown)),
    of("storage.k8s.io/v1beta1", "DeleteOptions", (232, Unknown), (232, Unknown)),
    of("storage.k8s.io/v1beta1", "StorageClass", (209, Cluster), (NONE, Unknown)),
    of("storage.k8s.io/v1beta1", "StorageClassList", (11, Unknown), (NONE, Unknown)),
    of("storage.k8s.io/v1beta1", "VolumeAttachment", (210, Cluster), (NONE, Unknown)),
    of("storage.k8s.io/v1beta1", "VolumeAttachmentList", (11, Unknown), (NONE, Unknown)),
    of("storage.k8s.io/v1beta1", "VolumeAttributesClass", (NONE, Unknown), (209, Cluster)),
    of("storage.k8s.io/v1beta1", "VolumeAttributesClassList", (NONE, Unknown), (4, Unknown)),
    of("storage.k8s.io/v1beta1", "WatchEvent", (238, Unknown), (238, Unknown)),
    of("storagemigration.k8s.io/v1beta1", "DeleteOptions", (NONE, Unknown), (232, Unknown)),
    of("storagemigration.k8s.io/v1beta1", "StorageVersionMigration", (NONE, Unknown), (217, Cluster)),
    of("storagemigration.k8s.io/v1beta1", "StorageVersionMigrationList", (NONE, Unknown), (4, Unknown)),
    of("storagemigration.k8s.io/v1beta1", "WatchEvent", (NONE, Unknown), (238, Unknown)),
    of("v1", "APIGroup", (231, Unknown), (231, Unknown)),
    of("v1", "APIGroupList", (0, Unknown), (0, Unknown)),
    of("v1", "APIResourceList", (0, Unknown), (0, Unknown)),
    of("v1", "APIVersions", (0, Unknown), (0, Unknown)),
    of("v1", "Binding", (74, Unknown), (74, Unknown)),
    of("v1", "ComponentStatus", (79, Cluster), (79, Cluster)),
    of("v1", "ComponentStatusList", (11, Unknown), (4, Unknown)),
    of("v1", "ConfigMap", (80, Namespaced), (80, Namespaced)),
    of("v1", "ConfigMapList", (11, Unknown), (4, Unknown)),
    of("v1", "DeleteOptions", (232, Unknown), (232, Unknown)),
    of("v1", "Endpoints", (83, Namespaced), (83, Namespaced)),
    of("v1", "EndpointsList", (11, Unknown), (4, Unknown)),
    of("v1", "Event", (91, Namespaced), (91, Namespaced)),
    of("v1", "EventList", (11, Unknown), (4, Unknown)),
    of("v1", "LimitRange", (70, Namespaced), (70, Namespaced)),
    of("v1", "LimitRangeList", (11, Unknown), (4, Unknown)),
    of("v1", "Namespace", (97, Cluster), (97, Cluster)),
    of("v1", "NamespaceList", (11, Unknown), (4, Unknown)),
    of("v1", "Node", (98, Cluster), (99, Cluster)),
    of("v1", "NodeList", (11, Unknown), (4, Unknown)),
    of("v1", "NodeProxyOptions", (NONE, Cluster), (NONE, Cluster)),
    of("v1", "PersistentVolume", (108, Cluster), (109, Cluster)),
    of("v1", "PersistentVolumeClaim", (110, Namespaced), (111, Namespaced)),
    of("v1", "PersistentVolumeClaimList", (11, Unknown), (4, Unknown)),
    of("v1", "PersistentVolumeList", (11, Unknown), (4, Unknown)),
    of("v1", "Pod", (120, Namespaced), (121, Namespaced)),
    of("v1", "PodAttachOptions", (NONE, Namespaced), (NONE, Namespaced)),
    of("v1", "PodExecOptions", (NONE, Namespaced), (NONE, Namespaced)),
    of("v1", "PodList", (11, Unknown), (4, Unknown)),
    of("v1", "PodPortForwardOptions", (NONE, Namespaced), (NONE, Namespaced)),
    of("v1", "PodProxyOptions", (NONE, Namespaced), (NONE, Namespaced)),
    of("v1", "PodTemplate", (128, Namespaced), (129, Namespaced)),
    of("v1", "PodTemplateList", (11, Unknown), (4, Unknown)),
    of("v1", "ReplicationController", (133, Namespaced), (134, Namespaced)),
    of("v1", "ReplicationControllerList", (11, Unknown), (4, Unknown)),
    of("v1", "ResourceQuota", (137, Namespaced), (137, Namespaced)),
    of("v1", "ResourceQuotaList", (11, Unknown), (4, Unknown)),
    of("v1", "Secret", (141, Namespaced), (141, Namespaced)),
    of("v1", "SecretList", (11, Unknown), (4, Unknown)),
    of("v1", "Service", (144, Namespaced), (144, Namespaced)),
    of("v1", "ServiceAccount", (145, Namespaced), (145, Namespaced)),
    of("v1", "ServiceAccountList", (11, Unknown), (4, Unknown)),
    of("v1", "ServiceList", (11, Unknown), (4, Unknown)),
    of("v1", "ServiceProxyOptions", (NONE, Namespaced), (NONE, Namespaced)),
    of("v1", "Status", (236, Unknown), (237, Unknown)),
    of("v1", "WatchEvent", (238, Unknown), (238, Unknown)),
];
