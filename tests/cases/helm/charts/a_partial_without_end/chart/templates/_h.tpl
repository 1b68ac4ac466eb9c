{{ define "x" }}
