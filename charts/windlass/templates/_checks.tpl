{{/* What no schema can say. */}}
{{- define "windlass.checks" -}}
{{- range $key := list "apply" "helm" }}
{{- $settings := index $.Values $key }}
{{- if and $settings.enabled (not $settings.clusterAdmin) (not $.Values.tenancy.defaultServiceAccount) }}
{{- fail (printf "%s.clusterAdmin is false: set tenancy.defaultServiceAccount, since %s has no rights of its own to apply anything with" $key $settings.name) }}
{{- end }}
{{- end }}
{{- if and .Values.source.storage.size .Values.source.storage.existingClaim }}
{{- fail "source.storage.size and source.storage.existingClaim exclude each other" }}
{{- end }}
{{- if and .Values.monitoring.podMonitor.create .Values.monitoring.serviceMonitor.create }}
{{- fail "monitoring.podMonitor and monitoring.serviceMonitor would both scrape every controller, which counts everything twice: create one of them" }}
{{- end }}
{{- if and .Values.source.storage.existingClaim .Values.sharding.shards }}
{{- fail "source.storage.existingClaim cannot be shared by shards: set source.storage.size, which makes a claim for each" }}
{{- end }}
{{- end }}
