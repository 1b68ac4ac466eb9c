package main

import (
	"bytes"
	"context"
	"io"
	"log"
	"time"

	"github.com/opencontainers/go-digest"
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	kubefake "helm.sh/helm/v4/pkg/kube/fake"
	release "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/storage"
	"helm.sh/helm/v4/pkg/storage/driver"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	observed "github.com/fluxcd/helm-controller/internal/release"
)

// chartLine has the files of a chart and the record that Helm's install makes of it, or its upgrade where there is a record
// before that.
type chartLine struct {
	Name       string            `json:"name"`
	Files      []file            `json:"files"`
	Values     map[string]any    `json:"values"`
	PostRender string            `json:"postRender,omitempty"`
	Before     string            `json:"before,omitempty"`
	Data       string            `json:"data"`
	Labels     map[string]string `json:"labels"`
	Digest     string            `json:"digest"`
}

type file struct {
	Name string `json:"name"`
	Data []byte `json:"data"`
}

// unchanged is a post-renderer that leaves everything as it is: what becomes of it is Helm's doing.
type unchanged struct{}

func (unchanged) Run(rendered *bytes.Buffer) (*bytes.Buffer, error) { return rendered, nil }

// released installs charts, and upgrades some, on a cluster that says yes to everything.
func released() []chartLine {
	action.Timestamper = func() time.Time { return at("2026-11-22T09:00:00.1Z") }
	var lines []chartLine
	for _, c := range charts() {
		secrets := fake.NewSimpleClientset().CoreV1().Secrets("ns")
		cfg := action.NewConfiguration()
		cfg.KubeClient = &kubefake.PrintingKubeClient{Out: io.Discard, LogOutput: io.Discard}
		cfg.Capabilities = common.DefaultCapabilities.Copy()
		cfg.Releases = storage.Init(driver.NewSecrets(secrets))
		line := chartLine{Name: c.name, Files: c.files, Values: values(c.values), PostRender: string(c.strategy)}
		name := "sh.helm.release.v1.web.v1"
		if c.before != nil {
			install(cfg, c.before.load(), values(c.before.values), "")
			line.Before, _ = record(secrets.Get(context.Background(), name, metav1.GetOptions{}))
			name = "sh.helm.release.v1.web.v2"
			upgrade(cfg, c.load(), values(c.values))
		} else {
			install(cfg, c.load(), values(c.values), c.strategy)
		}
		stored, err := secrets.Get(context.Background(), name, metav1.GetOptions{})
		line.Data, line.Labels = record(stored, err)
		read, err := driver.NewSecrets(secrets).Get(name)
		if err != nil {
			log.Fatal(c.name, ": ", err)
		}
		line.Digest = observed.Digest(digest.SHA256, observed.ObserveRelease(read.(*release.Release))).String()
		lines = append(lines, line)
	}
	return lines
}

func install(cfg *action.Configuration, ch *chart.Chart, values map[string]any, strategy action.PostRenderStrategy) {
	run := action.NewInstall(cfg)
	run.ReleaseName, run.Namespace = "web", "apps"
	run.DisableHooks, run.SkipCRDs, run.ServerSideApply = true, true, true
	if strategy != "" {
		run.PostRenderer, run.PostRenderStrategy = unchanged{}, strategy
	}
	if _, err := run.Run(ch, values); err != nil {
		log.Fatal("install: ", err)
	}
}

func upgrade(cfg *action.Configuration, ch *chart.Chart, values map[string]any) {
	run := action.NewUpgrade(cfg)
	run.Namespace, run.DisableHooks, run.ReuseValues, run.ServerSideApply = "apps", true, true, "true"
	if _, err := run.Run("web", ch, values); err != nil {
		log.Fatal("upgrade: ", err)
	}
}

type givenChart struct {
	name, values string
	files        []file
	strategy     action.PostRenderStrategy
	before       *givenChart
}

func (c *givenChart) load() *chart.Chart {
	var files []*archive.BufferedFile
	for _, f := range c.files {
		files = append(files, &archive.BufferedFile{Name: f.Name, Data: f.Data})
	}
	loaded, err := loader.LoadFiles(files)
	if err != nil {
		log.Fatal(c.name, ": ", err)
	}
	return loaded
}

func texts(pairs ...string) []file {
	var files []file
	for i := 0; i < len(pairs); i += 2 {
		files = append(files, file{pairs[i], []byte(pairs[i+1])})
	}
	return files
}

const plainChart = "apiVersion: v2\nname: app\nversion: 1.0.0\n"

func charts() []givenChart {
	everything := texts(
		"Chart.yaml", `apiVersion: v2
name: app
version: 1.0.0+build.1
appVersion: 1.10
description: "<x> & y"
home: https://example.com/?a=b&c=d
icon: i
type: application
kubeVersion: ">=1.20.0-0"
deprecated: true
condition: c
tags: t
keywords: [b, a]
sources: [https://git.example.com]
annotations: {z: "1", a: "2"}
maintainers: [{name: A, email: a@example.com, url: u}, {}]
`,
		"values.yaml", "replicas: 1\nratio: 0.10\nbig: 12345678901234567890\nlist: [1, null, {b: 1, a: \"<\"}]\nempty: {}\nnothing: null\n",
		"values.schema.json", `{"type": "object"}`,
		"README.md", "", "files/data.bin", "\x00\xff\xfe<>", "crds/thing.yaml", "kind: CustomResourceDefinition\n",
		"templates/_helpers.tpl", `{{- define "name" }}{{ .Release.Name }}{{ end }}`,
		"templates/NOTES.txt", "Replicas: {{ .Values.replicas }} <&>\n",
		"templates/service.yaml", "apiVersion: v1\nkind: Service\nmetadata:\n  name: {{ include \"name\" . }}\n",
		// One document a file: where there are more, Helm 4.2 takes the line end from before a separator, and Helm 4.3, which
		// helm-render follows, does not.
		"templates/two.yaml", "kind: Deployment\napiVersion: apps/v1\nmetadata: {name: two}\n",
		"templates/one.yaml", `apiVersion: v1
kind: ConfigMap
metadata:
  name: one
data:
  text: |
    kind: Secret

`,
		"templates/later.yaml", `apiVersion: batch/v1
kind: Job
metadata:
  name: later
  annotations: {helm.sh/hook: "post-install, Pre-Upgrade", helm.sh/hook-weight: "-5", helm.sh/hook-delete-policy: "hook-succeeded,before-hook-creation", helm.sh/hook-output-log-policy: hook-failed}
`,
		"templates/try.yaml", `apiVersion: v1
kind: Pod
metadata:
  name: try
  annotations: {helm.sh/hook: test}
`,
		"templates/blank.yaml", "{{ if false }}x{{ end }}\n",
	)
	dependencies := texts(
		"Chart.yaml", plainChart+`dependencies:
- {name: db, version: ">=1", repository: "https://charts.example.com", condition: "db.enabled,global.db", alias: store, tags: [x]}
- {name: db, version: ">=1", repository: "", condition: other.enabled, alias: other}
- {name: lib, version: "*", repository: "oci://r.example.com/c", import-values: [data, {child: deep.er, parent: taken}]}
`,
		"Chart.lock", "generated: \"2026-01-02T03:04:05.500+01:00\"\ndigest: sha256:0\ndependencies:\n- {name: db, version: 1.0.0, repository: \"https://charts.example.com\"}\n",
		"values.yaml", "own: 1\nother: {enabled: false}\n",
		"templates/a.yaml", "kind: ConfigMap\ndata: {x: {{ .Values.x | quote }}, t: {{ .Values.taken.y | quote }}}\n",
		"charts/db/Chart.yaml", "apiVersion: v2\nname: db\nversion: 1.2.3\n",
		"charts/db/values.yaml", "size: 1\n",
		"charts/db/templates/db.yaml", "kind: StatefulSet\nspec: {size: {{ .Values.size }}}\n",
		"charts/lib/Chart.yaml", "apiVersion: v2\nname: lib\nversion: 0.1.0\n",
		"charts/lib/values.yaml", "exports: {data: {x: from-lib}}\ndeep: {er: {y: 2}}\n",
		"charts/extra/Chart.yaml", "apiVersion: v2\nname: extra\nversion: 0.1.0\n",
		"charts/extra/templates/e.yaml", "kind: Secret\n",
	)
	first := givenChart{files: texts("Chart.yaml", plainChart, "values.yaml", "a: 1\nb: {c: 1, d: 2}\n", "templates/a.yaml", "kind: A\n"), values: "b: {c: 3}\ngiven: x\na: null\n"}
	return []givenChart{
		{name: "everything", files: everything, values: "replicas: 3\nname: \"<a>\"\nnumber: 1e21\n"},
		{name: "post-rendered", files: everything, strategy: action.PostRenderStrategyCombined, values: "{}"},
		{name: "post-rendered apart", files: everything, strategy: action.PostRenderStrategySeparate, values: "{}"},
		{name: "post-rendered without hooks", files: everything, strategy: action.PostRenderStrategyNoHooks, values: "{}"},
		{name: "comments, and a document without metadata", values: "{}",
			files: texts("Chart.yaml", plainChart, "templates/a.yaml", "# first\nkind: A # here\n# last\n")},
		{name: "post-rendered without metadata", values: "{}", strategy: action.PostRenderStrategyCombined,
			files: texts("Chart.yaml", plainChart, "templates/a.yaml", "kind: A\nlist:\n- 1\n- a: 'x'\n  b: \"y\"\nmetadata:\n  annotations:\n")},
		{name: "dependencies", files: dependencies, values: "store: {size: 5}\n"},
		{name: "all dependencies disabled", files: texts(
			"Chart.yaml", plainChart+"dependencies: [{name: db, version: \"*\", condition: db.enabled}]\n",
			"charts/db/Chart.yaml", "apiVersion: v2\nname: db\nversion: 1.2.3\n",
			"templates/a.yaml", "kind: A\n"), values: "db: {enabled: false}\n"},
		{name: "dependencies that are not there", files: texts("Chart.yaml", plainChart+"dependencies: []\n", "templates/a.yaml", "kind: A\n"), values: "{}"},
		{name: "nothing but a name", files: texts("Chart.yaml", plainChart), values: "{}"},
		{name: "values of nothing", files: texts("Chart.yaml", plainChart, "values.yaml", "", "Chart.lock", ""), values: "{}"},
		{name: "the first version", files: texts(
			"Chart.yaml", "name: app\nversion: 1.0.0\n",
			"requirements.yaml", "dependencies: [{name: db, version: \"*\", repository: r}]\n",
			"requirements.lock", "generated: 2020-01-01T00:00:00Z\ndigest: d\ndependencies: []\n",
			"charts/db/Chart.yaml", "name: db\nversion: 1.2.3\n",
			"templates/a.yaml", "kind: A\n"), values: "{}"},
		{name: "upgraded with the values before", before: &first,
			files: texts("Chart.yaml", "apiVersion: v2\nname: app\nversion: 2.0.0\n", "values.yaml", "a: 9\nnew: 1\n", "templates/a.yaml", "kind: A\nvalues: {{ toJson .Values }}\n"), values: "b: {d: 4}\n"},
	}
}
