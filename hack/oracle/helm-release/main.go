// Records releases as Helm stores them and as Flux's helm-controller knows them again.
//
//	go run . > ../../../crates/helm-release/tests/cases.jsonl
//	go run . charts > ../../../crates/helm-release/tests/charts.jsonl
//
// Each line has the Secret's labels and data as Helm's storage driver made them (or JSON as Helm 3 wrote it), the digest of
// Flux's observation, and the digest of the values. The module's name lies below helm-controller's, so that Go lets it use what is
// internal there.
package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"log"
	"os"
	"strings"
	"time"

	"github.com/fluxcd/pkg/chartutil"
	godigest "github.com/opencontainers/go-digest"
	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	releasecommon "helm.sh/helm/v4/pkg/release/common"
	release "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/storage/driver"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/yaml"

	observed "github.com/fluxcd/helm-controller/internal/release"
)

type line struct {
	Name         string            `json:"name"`
	Labels       map[string]string `json:"labels,omitempty"`
	Data         string            `json:"data"`
	OCIDigest    string            `json:"ociDigest,omitempty"`
	Digest       string            `json:"digest"`
	ValuesDigest string            `json:"valuesDigest"`
}

func main() {
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	if len(os.Args) > 1 && os.Args[1] == "charts" {
		for _, found := range released() {
			if err := out.Encode(found); err != nil {
				log.Fatal(err)
			}
		}
		return
	}
	for _, found := range append(written(), byOthers()...) {
		if err := out.Encode(found); err != nil {
			log.Fatal(err)
		}
	}
}

// written stores releases with Helm's own driver.
func written() []line {
	ctx := context.Background()
	var lines []line
	for _, c := range releases() {
		secrets := fake.NewSimpleClientset().CoreV1().Secrets("ns")
		storage := driver.NewSecrets(secrets)
		const key = "sh.helm.release.v1.any.v1"
		if err := storage.Create(key, c.release); err != nil {
			log.Fatal(err)
		}
		stored, err := secrets.Get(ctx, key, metav1.GetOptions{})
		if err != nil {
			log.Fatal(err)
		}
		stored.Labels["createdAt"] = "1700000000"
		lines = append(lines, digests(c.name, c.oci, stored.Labels, stored.Data["release"]))
	}
	return lines
}

// byOthers wraps JSON as other versions of Helm write it: Helm 3 has empty texts for times that are not set and a lock that is
// null; Helm 4.3 names the revision that was rolled back to, which the Helm in Flux 2.9 does not know.
func byOthers() []line {
	return []line{
		digests("written by helm 3", "", nil, encoded(packed(helm3))),
		digests("not packed", "", nil, encoded([]byte(helm3))),
		digests("written by helm 4.3", "", nil, encoded(packed(helm43))),
	}
}

func packed(text string) []byte {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write([]byte(text)); err != nil {
		log.Fatal(err)
	}
	if err := w.Close(); err != nil {
		log.Fatal(err)
	}
	return packed.Bytes()
}

func encoded(data []byte) []byte {
	return []byte(base64.StdEncoding.EncodeToString(data))
}

const helm43 = `{"name":"web","info":{"first_deployed":"2026-11-22T09:00:00Z","last_deployed":"2026-11-22T09:05:00Z","description":"Rollback to 3","status":"deployed","rollback_revision":3},"chart":{"metadata":{"name":"app","version":"1.0.0","apiVersion":"v2"},"lock":null,"templates":null,"values":null,"schema":null,"schemamodtime":"0001-01-01T00:00:00Z","files":null},"manifest":"a: b\n","version":5,"namespace":"default","apply_method":"ssa"}`

const helm3 = `{"name":"old","info":{"first_deployed":"2023-03-01T10:00:00.123456789+01:00","last_deployed":"2023-03-02T10:00:00Z","deleted":"","description":"Upgrade complete","status":"superseded","notes":"a \u003c b"},"chart":{"metadata":{"name":"old","version":"1.2.3","description":"x \u0026 y","keywords":["a"],"apiVersion":"v2","appVersion":"9","dependencies":[{"name":"db","version":"~1","repository":"https://charts.example.com","condition":"db.enabled","enabled":true}],"type":"application"},"lock":null,"templates":[{"name":"templates/a.yaml","data":"YQ=="}],"values":{"replicas":1},"schema":null,"files":[]},"config":{"replicas":2,"big":12345678901234567,"ratio":0.10,"list":[null,{"b":1,"a":"\u003c"}]},"manifest":"---\n# Source: old/templates/a.yaml\na: b\n","hooks":[{"name":"t","kind":"Pod","path":"old/templates/t.yaml","manifest":"kind: Pod","events":["test"],"last_run":{"started_at":"","completed_at":"","phase":""},"delete_policies":["before-hook-creation"]},{"name":"p","kind":"Job","path":"old/templates/p.yaml","manifest":"kind: Job","events":["pre-upgrade","post-upgrade"],"last_run":{"started_at":"2023-03-02T10:00:01.5Z","completed_at":"2023-03-02T10:00:02Z","phase":"Succeeded"},"weight":-5}],"version":7,"namespace":"apps"}`

func digests(name, oci string, labels map[string]string, data []byte) line {
	ctx := context.Background()
	secrets := fake.NewSimpleClientset().CoreV1().Secrets("ns")
	secret := stored(labels, data)
	if _, err := secrets.Create(ctx, secret, metav1.CreateOptions{}); err != nil {
		log.Fatal(err)
	}
	read, err := driver.NewSecrets(secrets).Get(secret.Name)
	if err != nil {
		log.Fatal(name, ": ", err)
	}
	rel := read.(*release.Release)
	observation := observed.ObserveRelease(rel)
	observation.OCIDigest = oci
	return line{
		Name: name, Labels: labels, Data: string(data), OCIDigest: oci,
		Digest:       observed.Digest(godigest.SHA256, observation).String(),
		ValuesDigest: chartutil.DigestValues(godigest.SHA256, rel.Config).String(),
	}
}

type given struct {
	name, oci string
	release   *release.Release
}

func at(text string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		log.Fatal(err)
	}
	return t
}

func values(text string) map[string]any {
	var v map[string]any
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		log.Fatal(err)
	}
	return v
}

func base(name string) *release.Release {
	return &release.Release{
		Name: name, Namespace: "default", Version: 1,
		Info: &release.Info{
			FirstDeployed: at("2026-11-22T09:00:00.1Z"), LastDeployed: at("2026-11-22T09:00:00.1Z"),
			Status: releasecommon.StatusDeployed, Description: "Install complete",
		},
		Chart: &chart.Chart{
			Metadata:  &chart.Metadata{Name: "app", Version: "1.0.0", APIVersion: "v2", AppVersion: "2.0"},
			Templates: []*common.File{{Name: "templates/a.yaml", Data: []byte("a: b")}},
			Values:    map[string]any{"replicas": 1},
		},
		Manifest:    "---\n# Source: app/templates/a.yaml\nkind: ConfigMap\n",
		ApplyMethod: "ssa",
	}
}

func releases() []given {
	var all []given
	add := func(name, oci string, change func(*release.Release)) {
		rel := base("web")
		if change != nil {
			change(rel)
		}
		all = append(all, given{name, oci, rel})
	}
	add("plain", "", nil)
	add("from an OCI artifact", "sha256:"+strings.Repeat("ab", 32), nil)
	add("labels of the user", "", func(r *release.Release) { r.Labels = map[string]string{"team": "a", "status": "mine"} })
	for _, status := range []releasecommon.Status{
		releasecommon.StatusUnknown, releasecommon.StatusUninstalled, releasecommon.StatusSuperseded, releasecommon.StatusFailed,
		releasecommon.StatusUninstalling, releasecommon.StatusPendingInstall, releasecommon.StatusPendingUpgrade,
		releasecommon.StatusPendingRollback,
	} {
		add("status "+status.String(), "", func(r *release.Release) { r.Info.Status = status })
	}
	add("uninstalled in another zone", "", func(r *release.Release) {
		r.Info.Deleted = at("2026-11-22T11:30:00.000000001+02:30")
		r.Info.Status = releasecommon.StatusUninstalled
	})
	add("rolled back", "", func(r *release.Release) { r.Info.Description = "Rollback to 3"; r.Version = 12; r.ApplyMethod = "csa" })
	add("notes and text that is escaped", "", func(r *release.Release) {
		r.Info.Notes = "<b>Tom & \"Jerry\"</b>\n\u2028\u2029\t\\ é \x7f \x01"
		r.Manifest = "a: \"<&>\"\n"
	})
	add("all of the metadata", "", func(r *release.Release) {
		r.Chart.Metadata = &chart.Metadata{
			Name: "app", Home: "https://example.com?a=b&c=d", Sources: []string{"https://git.example.com"}, Version: "1.0.0+build.1",
			Description: "<x>", Keywords: []string{"b", "a"}, Maintainers: []*chart.Maintainer{{Name: "A", Email: "a@example.com", URL: "u"}, {}},
			Icon: "i", APIVersion: "v1", Condition: "c", Tags: "t", AppVersion: "0.1", Deprecated: true,
			Annotations: map[string]string{"z": "1", "a": "2"}, KubeVersion: ">=1.20.0-0", Type: "library",
			Dependencies: []*chart.Dependency{
				{Name: "db", Version: "^1", Repository: "oci://registry.example.com/charts", Condition: "db.enabled,global.db", Tags: []string{"x"},
					Enabled: true, ImportValues: []any{"data", map[string]any{"child": "a", "parent": "b"}}, Alias: "database"},
				{Name: "none"},
			},
		}
		r.Chart.Lock = &chart.Lock{Generated: at("2026-01-01T00:00:00.5Z"), Digest: "sha256:0", Dependencies: []*chart.Dependency{{Name: "db", Version: "1.0.0"}}}
		r.Chart.Schema = []byte(`{"type": "object"}`)
		r.Chart.SchemaModTime = at("2026-01-01T00:00:00Z")
		r.Chart.Files = []*common.File{{Name: "README.md", Data: []byte{0, 255}, ModTime: at("2026-01-01T00:00:00Z")}}
	})
	add("no chart", "", func(r *release.Release) { r.Chart = nil })
	add("a chart without metadata", "", func(r *release.Release) { r.Chart.Metadata = nil })
	add("hooks", "", func(r *release.Release) {
		r.Hooks = []*release.Hook{
			{Name: "a", Kind: "Job", Path: "app/templates/a.yaml", Manifest: "kind: Job\n", Events: []release.HookEvent{release.HookPreInstall, release.HookPostUpgrade},
				LastRun: release.HookExecution{StartedAt: at("2026-11-22T09:00:00Z"), CompletedAt: at("2026-11-22T09:00:05.25Z"), Phase: release.HookPhaseSucceeded},
				Weight:  -1, DeletePolicies: []release.HookDeletePolicy{release.HookSucceeded, release.HookBeforeHookCreation},
				OutputLogPolicies: []release.HookOutputLogPolicy{release.HookOutputOnFailed}},
			{Name: "b", Kind: "ConfigMap", Events: []release.HookEvent{release.HookPreDelete}},
			{Name: "c", Kind: "Job", Events: []release.HookEvent{release.HookPostRollback}, LastRun: release.HookExecution{StartedAt: at("2026-11-22T09:00:00Z"), Phase: release.HookPhaseRunning}},
			{Name: "d", Kind: "Job", Events: []release.HookEvent{release.HookPostInstall}, LastRun: release.HookExecution{Phase: release.HookPhaseFailed}},
			{Name: "e", Kind: "Job", Events: []release.HookEvent{release.HookPostInstall}, LastRun: release.HookExecution{Phase: release.HookPhaseUnknown}},
			{Name: "t", Kind: "Pod", Events: []release.HookEvent{release.HookPostInstall, release.HookTest}},
		}
	})
	add("only hooks of tests", "", func(r *release.Release) {
		r.Hooks = []*release.Hook{{Name: "t", Kind: "Pod", Events: []release.HookEvent{release.HookTest}}}
	})
	for name, text := range map[string]string{
		"values, empty":   "{}",
		"values, numbers": "a: 1\nb: 1.0\nc: -0.5\nd: 1e3\ne: 12345678901234567890\nf: 1e21\ng: 1e-7\nh: 123456789012345678\ni: 0x10\nj: 0o17\nk: 1.5e300\nl: 18446744073709551615\nm: -9223372036854775808\nn: 100000000000000000000\n",
		"values, keys":    "a10: 1\na9: 2\nA: 3\n_: 4\n\"1\": 5\n\"true\": 6\nb: {z: 1, y: {x: {}, w: []}}\n\"a b\": 7\n\"\": 8\n\"a<b\": 9\n",
		"values, texts":   "a: \"on\"\nb: \"1\"\nc: |\n  two\n  lines\nd: \"tab\\there\"\ne: \"  lead\"\nf: \"é\\u2028\"\ng: \"\"\nh: \"null\"\ni: \"2020-01-01\"\nj: \"a: b\"\nk: \"#x\"\nl: \"\\u0085x\"\nm: \"\\u0001\"\nn: \"1e3\"\no: \"0x1f\"\np: \"~\"\nq: \"a\\n\"\nr: \"" + strings.Repeat("long words ", 20) + "\"\n",
		"values, nested":  "list: [1, \"a\", null, true, [2, {b: 1, a: [null]}], {}]\nnothing: null\nyes: true\n",
	} {
		add(name, "", func(r *release.Release) { r.Config = values(text) })
	}
	return all
}

func record(secret *corev1.Secret, err error) (string, map[string]string) {
	if err != nil {
		log.Fatal(err)
	}
	for _, written := range []string{"createdAt", "modifiedAt"} {
		if _, ok := secret.Labels[written]; ok {
			secret.Labels[written] = "1700000000"
		}
	}
	return string(secret.Data["release"]), secret.Labels
}

func stored(labels map[string]string, data []byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "any", Namespace: "ns", Labels: labels},
		Type:       "helm.sh/release.v1",
		Data:       map[string][]byte{"release": data},
	}
}
