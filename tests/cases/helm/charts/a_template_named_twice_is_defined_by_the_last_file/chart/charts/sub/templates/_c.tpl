{{ define "x" }}c{{ end }}
