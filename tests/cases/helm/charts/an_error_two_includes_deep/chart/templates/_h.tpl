{{- define "one" -}}
{{ include "two" . }}
{{- end -}}
{{- define "two" -}}
{{- range .Values.items }}
{{ .name.first }}
{{- end }}
{{- end -}}
