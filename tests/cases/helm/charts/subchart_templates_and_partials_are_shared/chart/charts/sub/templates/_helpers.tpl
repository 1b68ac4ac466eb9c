{{ define "label" }}sub {{ .Chart.Name }}{{ end }}{{ define "sub.own" }}own {{ .Chart.Name }} {{ .Chart.IsRoot }}{{ end }}
