{{- define "app.name" -}}{{ .Chart.Name }}-{{ .Chart.Version }}{{- end -}}
