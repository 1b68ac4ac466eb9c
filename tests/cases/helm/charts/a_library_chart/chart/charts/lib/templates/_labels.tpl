{{ define "lib.labels" }}app: {{ .Chart.Name }}
values: {{ .Values | toJson | squote }}{{ end }}
