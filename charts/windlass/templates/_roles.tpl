{{/* Rules of ClusterRoles, one definition for each controller. With watch.allNamespaces false they are those of a Role. */}}

{{/* What every controller does: events of objects. */}}
{{- define "windlass.rules.common" -}}
- apiGroups: [""]
  resources: [events]
  verbs: [create, patch]
{{- end }}

{{/* What objects may name: values, credentials, identities. */}}
{{- define "windlass.rules.references" -}}
- apiGroups: [""]
  resources: [secrets, configmaps, serviceaccounts]
  verbs: [get, list, watch]
{{- end }}

{{/* Identity at cloud providers, Vault and other clusters: tokens of the service accounts that objects name. */}}
{{- define "windlass.rules.tokens" -}}
- apiGroups: [""]
  resources: [serviceaccounts/token]
  verbs: [create]
{{- end }}

{{- define "windlass.rules.source" -}}
{{ include "windlass.rules.common" . }}
{{ include "windlass.rules.references" . }}
{{ include "windlass.rules.tokens" . }}
- apiGroups: [source.toolkit.fluxcd.io, source.extensions.fluxcd.io]
  resources: ["*"]
  verbs: [get, list, watch, create, update, patch, delete]
# Where sources may be, and who must have signed them.
- apiGroups: [delivery.windlass.dev]
  resources: [verificationpolicies]
  verbs: [get, list, watch]
{{- end }}

{{- define "windlass.rules.apply" -}}
{{ include "windlass.rules.common" . }}
{{ include "windlass.rules.references" . }}
{{ include "windlass.rules.tokens" . }}
- apiGroups: [kustomize.toolkit.fluxcd.io]
  resources: ["*"]
  verbs: [get, list, watch, update, patch]
- apiGroups: [source.toolkit.fluxcd.io]
  resources: ["*"]
  verbs: [get, list, watch]
# When nothing new is delivered, and which images and sources are.
- apiGroups: [delivery.windlass.dev]
  resources: [freezes, verificationpolicies]
  verbs: [get, list, watch]
- apiGroups: [""]
  resources: [serviceaccounts]
  verbs: [impersonate]
{{- end }}

{{- define "windlass.rules.helm" -}}
{{ include "windlass.rules.common" . }}
{{ include "windlass.rules.references" . }}
{{ include "windlass.rules.tokens" . }}
- apiGroups: [helm.toolkit.fluxcd.io]
  resources: ["*"]
  verbs: [get, list, watch, update, patch]
- apiGroups: [source.toolkit.fluxcd.io]
  resources: ["*"]
  verbs: [get, list, watch]
# When nothing new is delivered, and which images and sources are.
- apiGroups: [delivery.windlass.dev]
  resources: [freezes, verificationpolicies]
  verbs: [get, list, watch]
# A HelmRelease with spec.chart has a HelmChart of its own.
- apiGroups: [source.toolkit.fluxcd.io]
  resources: [helmcharts]
  verbs: [create, update, patch, delete]
- apiGroups: [""]
  resources: [serviceaccounts]
  verbs: [impersonate]
{{- end }}

{{- define "windlass.rules.images" -}}
{{ include "windlass.rules.common" . }}
{{ include "windlass.rules.references" . }}
{{ include "windlass.rules.tokens" . }}
- apiGroups: [image.toolkit.fluxcd.io]
  resources: ["*"]
  verbs: [get, list, watch, update, patch]
- apiGroups: [delivery.windlass.dev]
  resources: [changepolicies]
  verbs: [get, list, watch]
# Their failures hold back what was pushed (windlass.dev/hold-failed).
- apiGroups: [kustomize.toolkit.fluxcd.io]
  resources: [kustomizations]
  verbs: [get, list, watch]
- apiGroups: [source.toolkit.fluxcd.io]
  resources: [gitrepositories]
  verbs: [get, list, watch]
{{- if .Values.watch.allNamespaces }}
# Their labels decide which policies may use an ImageRepository of another namespace (spec.accessFrom).
- apiGroups: [""]
  resources: [namespaces]
  verbs: [get]
{{- end }}
{{- end }}

{{- define "windlass.rules.pipelines" -}}
{{ include "windlass.rules.common" . }}
{{ include "windlass.rules.references" . }}
{{ include "windlass.rules.tokens" . }}
- apiGroups: [delivery.windlass.dev]
  resources: [pipelines, pipelines/status, previews, previews/status]
  verbs: [get, list, watch, update, patch]
# Finished ones are deleted.
- apiGroups: [delivery.windlass.dev]
  resources: [changerequests, changerequests/status]
  verbs: [get, list, watch, update, patch, delete]
# What is promoted; what an owner of a pipeline sees of it is asked for with system:auth-delegator.
- apiGroups: [helm.toolkit.fluxcd.io]
  resources: [helmreleases]
  verbs: [get, list, watch]
- apiGroups: [kustomize.toolkit.fluxcd.io]
  resources: [kustomizations]
  verbs: [get, list, watch]
# What is promoted, too, and where changes are pushed.
- apiGroups: [source.toolkit.fluxcd.io]
  resources: [gitrepositories, ocirepositories]
  verbs: [get, list, watch]
# Which webhooks start a pipeline.
- apiGroups: [notification.toolkit.fluxcd.io]
  resources: [receivers]
  verbs: [get, list, watch]
# How changes go in.
- apiGroups: [delivery.windlass.dev]
  resources: [changepolicies]
  verbs: [get]
# Objects of gates are read as the account of the pipeline; clusters are asked for previews as that of the Preview.
- apiGroups: [""]
  resources: [serviceaccounts]
  verbs: [impersonate]
{{- if .Values.pipelines.weave }}
- apiGroups: [pipelines.weave.works]
  resources: [pipelines, pipelines/status]
  verbs: [get, list, watch, update, patch]
- apiGroups: [gitops.weave.works]
  resources: [gitopsclusters]
  verbs: [get, list, watch]
# What is made of a Pipeline of Weave GitOps.
- apiGroups: [delivery.windlass.dev]
  resources: [pipelines]
  verbs: [create]
- apiGroups: [delivery.windlass.dev]
  resources: [changepolicies]
  verbs: [list, create, patch, delete]
- apiGroups: [source.toolkit.fluxcd.io]
  resources: [gitrepositories]
  verbs: [create, patch, delete]
{{- end }}
{{- end }}

{{- define "windlass.rules.resourceSets" -}}
{{ include "windlass.rules.common" . }}
{{ include "windlass.rules.references" . }}
{{ include "windlass.rules.tokens" . }}
- apiGroups: [fluxcd.controlplane.io]
  resources: ["*"]
  verbs: [get, list, watch, update, patch]
- apiGroups: [delivery.windlass.dev]
  resources: [environmentpolicies, environmentpolicies/status]
  verbs: [get, list, watch, update, patch]
# When nothing new is delivered, and which images and sources are.
- apiGroups: [delivery.windlass.dev]
  resources: [freezes, verificationpolicies]
  verbs: [get, list, watch]
# Inputs of the type ExternalArtifact.
- apiGroups: [source.toolkit.fluxcd.io]
  resources: [externalartifacts]
  verbs: [get, list, watch]
- apiGroups: [""]
  resources: [serviceaccounts]
  verbs: [impersonate]
{{- end }}

{{- define "windlass.rules.notification" -}}
- apiGroups: [""]
  resources: [events]
  verbs: [get, list, watch, create, patch]
{{ include "windlass.rules.references" . }}
{{- /* Without the gate no Provider can name an account. */}}
{{- if contains "ObjectLevelWorkloadIdentity=true" (join " " .Values.notification.extraArgs) }}
{{ include "windlass.rules.tokens" . }}
{{- end }}
{{- if .Values.watch.allNamespaces }}
# Which of the kinds that Alerts and Receivers name are there.
- apiGroups: [apiextensions.k8s.io]
  resources: [customresourcedefinitions]
  verbs: [get, list, watch]
{{- end }}
- apiGroups: [notification.toolkit.fluxcd.io]
  resources: ["*"]
  verbs: [get, list, watch, update, patch]
# Their status tells what no event did; a Receiver asks for a reconciliation by an annotation.
- apiGroups:
    - source.toolkit.fluxcd.io
    - source.extensions.fluxcd.io
    - kustomize.toolkit.fluxcd.io
    - helm.toolkit.fluxcd.io
    - image.toolkit.fluxcd.io
  resources: ["*"]
  verbs: [get, list, watch, patch]
{{- if .Values.pipelines.enabled }}
- apiGroups: [delivery.windlass.dev]
  resources: [changerequests, pipelines, previews]
  verbs: [get, list, watch, patch]
{{- end }}
{{- if .Values.resourceSets.enabled }}
- apiGroups: [fluxcd.controlplane.io]
  resources: [resourcesets, resourcesetinputproviders]
  verbs: [get, list, watch, patch]
- apiGroups: [delivery.windlass.dev]
  resources: [environmentpolicies]
  verbs: [get, list, watch, patch]
{{- end }}
{{- end }}

{{/* What is shown is watched; what a caller sees of it is asked for with system:auth-delegator. */}}
{{- define "windlass.rules.console" -}}
- apiGroups:
    - source.toolkit.fluxcd.io
    - source.extensions.fluxcd.io
    - kustomize.toolkit.fluxcd.io
    - helm.toolkit.fluxcd.io
    - notification.toolkit.fluxcd.io
    - image.toolkit.fluxcd.io
    - delivery.windlass.dev
  resources: ["*"]
  verbs: [list, watch]
# Which images run where.
- apiGroups: [""]
  resources: [pods]
  verbs: [list, watch]
{{- if ne .Values.console.actions "none" }}
{{ include "windlass.rules.common" . }}
{{- end }}
{{- if eq .Values.console.actions "fine-grained" }}
# For whoever has the verb. It writes spec.suspend and annotations; RBAC cannot say so.
{{- range $group, $resources := include "windlass.kinds" . | fromYaml }}
- apiGroups: [{{ $group }}]
  resources: {{ $resources | toJson }}
  verbs: [patch]
{{- end }}
- apiGroups: [apps]
  resources: [deployments, statefulsets, daemonsets]
  verbs: [patch]
{{- else if eq .Values.console.actions "impersonated" }}
- apiGroups: [""]
  resources: [users, groups, serviceaccounts]
  verbs: [impersonate]
{{- end }}
{{- end }}

{{/* The kinds that people write, by group. Named one by one: "*" would be their statuses, too, which only the controllers write. */}}
{{- define "windlass.kinds" -}}
source.toolkit.fluxcd.io: [buckets, externalartifacts, gitrepositories, helmcharts, helmrepositories, ocirepositories]
source.extensions.fluxcd.io: [artifactgenerators]
kustomize.toolkit.fluxcd.io: [kustomizations]
helm.toolkit.fluxcd.io: [helmreleases]
notification.toolkit.fluxcd.io: [alerts, providers, receivers]
image.toolkit.fluxcd.io: [imagepolicies, imagerepositories, imageupdateautomations]
delivery.windlass.dev: [changepolicies, changerequests, environmentpolicies, freezes, pipelines, previews, verificationpolicies]
{{- if .Values.resourceSets.enabled }}
fluxcd.controlplane.io: [resourcesetinputproviders, resourcesets]
{{- end }}
{{- end }}
