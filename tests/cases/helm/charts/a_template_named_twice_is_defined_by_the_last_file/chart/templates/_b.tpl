{{ define "x" }}b{{ end }}
