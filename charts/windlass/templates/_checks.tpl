{{/* What no schema can say. */}}
{{- define "windlass.checks" -}}
{{- range $key := list "apply" "helm" "resourceSets" }}
{{- $settings := index $.Values $key }}
{{- if and $settings.enabled (not $settings.clusterAdmin) (not $.Values.tenancy.defaultServiceAccount) }}
{{- fail (printf "%s.clusterAdmin is false: set tenancy.defaultServiceAccount, since %s has no rights of its own to apply anything with" $key $settings.name) }}
{{- end }}
{{- end }}
{{- range $key := list "source" "images" }}
{{- $storage := (index $.Values $key).storage }}
{{- if and $storage.size $storage.existingClaim }}
{{- fail (printf "%[1]s.storage.size and %[1]s.storage.existingClaim exclude each other" $key) }}
{{- end }}
{{- end }}
{{- if .Values.singlePod.enabled }}
{{- if .Values.sharding.shards }}
{{- fail "singlePod.enabled and sharding.shards exclude each other: one process has all objects" }}
{{- end }}
{{- range $key := list "source" "apply" "helm" "notification" "images" "pipelines" "resourceSets" }}
{{- if gt (int (index $.Values $key).replicas) 1 }}
{{- fail (printf "singlePod.enabled: there is one Pod, so %s.replicas must be 1" $key) }}
{{- end }}
{{- end }}
{{- end }}
{{- $ledger := .Values.console.ledger }}
{{- if and $ledger.storage.size $ledger.storage.existingClaim }}
{{- fail "console.ledger.storage.size and console.ledger.storage.existingClaim exclude each other" }}
{{- end }}
{{- if and $ledger.urlSecret (or $ledger.storage.size $ledger.storage.existingClaim) }}
{{- fail "console.ledger.urlSecret and console.ledger.storage exclude each other: the ledger is in one place" }}
{{- end }}
{{- if .Values.console.enabled }}
{{- if and (gt (int .Values.console.replicas) 1) (or $ledger.storage.size $ledger.storage.existingClaim) }}
{{- fail "console.replicas: one console writes to SQLite; set console.ledger.urlSecret to share a PostgreSQL" }}
{{- end }}
{{- if not .Values.watch.allNamespaces }}
{{- fail "console.enabled needs watch.allNamespaces: it shows whole clusters" }}
{{- end }}
{{- end }}
{{- if and .Values.monitoring.podMonitor.create .Values.monitoring.serviceMonitor.create }}
{{- fail "monitoring.podMonitor and monitoring.serviceMonitor would both scrape every controller, which counts everything twice: create one of them" }}
{{- end }}
{{- $backup := .Values.source.backup }}
{{- if and $backup.bucket (not $backup.endpoint) (has $backup.provider (list "generic" "azure")) }}
{{- fail (printf "source.backup.bucket needs source.backup.endpoint for the provider %s" $backup.provider) }}
{{- end }}
{{- if and .Values.source.storage.existingClaim .Values.sharding.shards }}
{{- fail "source.storage.existingClaim cannot be shared by shards: set source.storage.size, which makes a claim for each" }}
{{- end }}
{{- end }}
