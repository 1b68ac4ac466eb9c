{{ .Template.Name }} {{ .Template.BasePath }}
