{{ define "sub.h" }}
{{ .Values.list.first }}{{ end }}
