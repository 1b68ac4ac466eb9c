{{ define "label" }}parent {{ .Chart.Name }}{{ end }}
