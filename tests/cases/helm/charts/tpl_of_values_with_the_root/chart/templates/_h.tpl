{{- define "shop.chart" -}}{{ .Chart.Name }}-{{ .Chart.Version }}{{- end -}}
