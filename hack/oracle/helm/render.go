package main

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template"
	_ "unsafe" // for the names of the engines' functions

	action3 "helm.sh/helm/v3/pkg/action"
	loader3 "helm.sh/helm/v3/pkg/chart/loader"
	chartutil3 "helm.sh/helm/v3/pkg/chartutil"
	_ "helm.sh/helm/v3/pkg/engine"
	action4 "helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	archive4 "helm.sh/helm/v4/pkg/chart/loader/archive"
	loader4 "helm.sh/helm/v4/pkg/chart/v2/loader"
	_ "helm.sh/helm/v4/pkg/engine"
	release4 "helm.sh/helm/v4/pkg/release/v1"
)

const (
	chartFile = `apiVersion: v2
name: vec
version: 0.1.0
appVersion: "1.0"
description: vector chart
home: https://example.com/vec
keywords: [k1, k2]
maintainers: [{name: ann, email: ann@example.com}]
annotations: {note: "n"}
`
	// How the output gets out with every byte as it is: the engine takes "<no value>" out of whole files only.
	outFile = `out: {{ include "vec/templates/_t.tpl" . | replace "<no value>" "" | b64enc }}
`
	kubeVersion = "1.34.0"
	namespace   = "demo-ns"
)

// render gives what the template makes as a partial of a chart, or the error that it has as one of the chart's files.
func (q question) render() (string, error) {
	manifest, err := q.manifest(map[string]string{"templates/_t.tpl": q.Template, "templates/out.yaml": outFile})
	if err != nil {
		if _, direct := q.manifest(map[string]string{"templates/t.yaml": q.Template}); direct != nil {
			return "", direct
		}
		return "", fmt.Errorf("only as a partial: %w", err)
	}
	_, encoded, _ := strings.Cut(manifest, "\nout: ")
	text, err := base64.StdEncoding.DecodeString(strings.Trim(strings.TrimSpace(encoded), `"`))
	return string(text), err
}

// manifest gives what `helm template` makes of a chart of these files and some that are always there.
func (q question) manifest(files map[string]string) (string, error) {
	files["Chart.yaml"] = chartFile
	files["values.yaml"] = q.Values
	files["data/a.txt"] = "alpha\n"
	files["templates/_other.tpl"] = "other {{ .Values.name }}\n"
	name := q.Name
	if name == "" {
		name = "demo"
	}
	if q.Helm == "v3" {
		return manifest3(name, files)
	}
	return manifest4(name, files)
}

func manifest4(name string, files map[string]string) (string, error) {
	var content []*archive4.BufferedFile
	for _, path := range slices.Sorted(maps.Keys(files)) {
		content = append(content, &archive4.BufferedFile{Name: path, Data: []byte(files[path])})
	}
	chart, err := loader4.LoadFiles(content)
	if err != nil {
		return "", err
	}
	install := action4.NewInstall(action4.NewConfiguration())
	install.DryRunStrategy = action4.DryRunClient
	install.Replace = true
	install.ReleaseName, install.Namespace = name, namespace
	if install.KubeVersion, err = common.ParseKubeVersion(kubeVersion); err != nil {
		return "", err
	}
	release, err := install.Run(chart, map[string]any{})
	if err != nil {
		return "", err
	}
	return release.(*release4.Release).Manifest, nil
}

func manifest3(name string, files map[string]string) (string, error) {
	var content []*loader3.BufferedFile
	for _, path := range slices.Sorted(maps.Keys(files)) {
		content = append(content, &loader3.BufferedFile{Name: path, Data: []byte(files[path])})
	}
	chart, err := loader3.LoadFiles(content)
	if err != nil {
		return "", err
	}
	install := action3.NewInstall(&action3.Configuration{Log: func(string, ...any) {}})
	install.DryRun, install.ClientOnly, install.Replace = true, true, true
	install.ReleaseName, install.Namespace = name, namespace
	if install.KubeVersion, err = chartutil3.ParseKubeVersion(kubeVersion); err != nil {
		return "", err
	}
	release, err := install.Run(chart, map[string]any{})
	if err != nil {
		return "", err
	}
	return release.Manifest, nil
}

//go:linkname functions3 helm.sh/helm/v3/pkg/engine.funcMap
func functions3() template.FuncMap

//go:linkname functions4 helm.sh/helm/v4/pkg/engine.funcMap
func functions4() template.FuncMap

// functions lists what templates can call besides Go's own functions.
func functions(helm string) []string {
	if helm == "v3" {
		return slices.Sorted(maps.Keys(functions3()))
	}
	return slices.Sorted(maps.Keys(functions4()))
}
