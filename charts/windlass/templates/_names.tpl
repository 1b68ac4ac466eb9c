{{/* The controllers that a set has: key, and what the chart knows of it. */}}
{{- define "windlass.controllers" -}}
source: {component: source-controller, image: source-controller}
apply: {component: kustomize-controller, image: kustomize-controller}
helm: {component: helm-controller, image: helm-controller}
notification: {component: notification-controller, image: notification-controller}
images: {component: image-reflector-controller, image: image-controller}
pipelines: {component: pipeline-controller, image: pipeline-controller}
resourceSets: {component: resource-set-controller, image: resource-set-controller}
console: {component: console, image: console}
{{- end }}

{{/* Labels of every object. part-of is what the flux command looks for. */}}
{{- define "windlass.labels" -}}
app.kubernetes.io/part-of: flux
app.kubernetes.io/name: windlass
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{/* Name of a cluster-wide object: namespaces of one cluster may each have a release. */}}
{{- define "windlass.clusterName" -}}
{{ printf "%s-%s-%s" .root.Release.Namespace .root.Release.Name .name | trunc 253 | trimSuffix "-" }}
{{- end }}

{{/* Whether the API server guards exceptions from Freezes; without that they do not count. */}}
{{- define "windlass.guardsExceptions" -}}
{{- if and .Values.freezes.admissionPolicy .Values.rbac.create .Values.watch.allNamespaces }}true{{ end }}
{{- end }}

{{/* The image of a controller. */}}
{{- define "windlass.image" -}}
{{- $image := .root.Values.image -}}
{{- $tag := default .root.Chart.AppVersion $image.tag -}}
{{- $path := printf "%s/%s:%s" $image.repository .image $tag -}}
{{- if $image.registry }}{{ printf "%s/%s" (trimSuffix "/" $image.registry) $path }}{{ else }}{{ $path }}{{ end -}}
{{- end }}

{{/* Where events go; empty for nowhere. */}}
{{- define "windlass.eventsAddress" -}}
{{- if .Values.eventsAddress -}}
{{ .Values.eventsAddress }}
{{- else if and .Values.notification.enabled .Values.singlePod.enabled -}}
http://localhost:9090/
{{- else if .Values.notification.enabled -}}
http://{{ .Values.notification.name }}.{{ .Release.Namespace }}.svc.cluster.local./
{{- end -}}
{{- end }}

{{/* The sets of controllers: the first one has no shard. */}}
{{- define "windlass.labelSelector" -}}
{{- if .shard -}}
sharding.fluxcd.io/key={{ .shard }}
{{- else if .root.Values.watch.labelSelector -}}
{{ .root.Values.watch.labelSelector }}
{{- else if .root.Values.sharding.shards -}}
!sharding.fluxcd.io/key
{{- end -}}
{{- end }}

{{/* Whether a controller runs in the Pod of all. In: root, key. */}}
{{- define "windlass.together" -}}
{{- if and .root.Values.singlePod.enabled (ne .key "console") }}true{{ end }}
{{- end }}

{{/* The service account of a controller. In: root, key, settings. */}}
{{- define "windlass.account" -}}
{{- if include "windlass.together" . }}{{ .root.Values.singlePod.name }}{{ else }}{{ .settings.name }}{{ end }}
{{- end }}

{{/* The label by which the Pods of a controller are selected. In: root, key, settings, shard. */}}
{{- define "windlass.app" -}}
{{- if include "windlass.together" . }}{{ .root.Values.singlePod.name }}{{ else }}{{ include "windlass.name" . }}{{ end }}
{{- end }}

{{/* The name of a controller of a set. */}}
{{- define "windlass.name" -}}
{{ .settings.name }}{{ if .shard }}-{{ .shard }}{{ end }}
{{- end }}
