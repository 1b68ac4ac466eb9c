{{- define "web.name" -}}
{{ .Values.fullnameOverride | default .Release.Name }}
{{- end }}
{{- define "web.labels" -}}
app.kubernetes.io/name: {{ include "web.name" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}
