// Records what Flux's helm-controller does with releases: its own loop, states and conditions, with scripted actions (overlay/).
//
// Each line is a scenario: an object, and runs with what changes before them, how actions end, and what came of it. Run it with
// record.sh. The module's name lies below helm-controller's, so that Go lets it use what is internal there.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"sort"
	"strconv"
	"strings"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/chartutil"
	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/fluxcd/pkg/runtime/patch"
	helmchart "helm.sh/helm/v4/pkg/chart/v2"
	helmreleaser "helm.sh/helm/v4/pkg/release"
	helmreleasecommon "helm.sh/helm/v4/pkg/release/common"
	helmrelease "helm.sh/helm/v4/pkg/release/v1"
	helmstorage "helm.sh/helm/v4/pkg/storage"
	helmdriver "helm.sh/helm/v4/pkg/storage/driver"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientfake "sigs.k8s.io/controller-runtime/pkg/client/fake"

	v2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/fluxcd/helm-controller/internal/action"
	"github.com/fluxcd/helm-controller/internal/digest"
	"github.com/fluxcd/helm-controller/internal/reconcile"
)

type chartOf struct {
	Name       string `json:"name"`
	Version    string `json:"version"`
	AppVersion string `json:"appVersion,omitempty"`
}

// A run of a scenario. What is not set stays as it was.
type run struct {
	Spec        json.RawMessage     `json:"spec,omitempty"`
	Generation  int64               `json:"generation,omitempty"`
	Annotations map[string]string   `json:"annotations,omitempty"`
	Chart       *chartOf            `json:"chart,omitempty"`
	OCIDigest   string              `json:"ociDigest,omitempty"`
	Values      map[string]any      `json:"values,omitzero"`
	Storage     []string            `json:"storage,omitempty"`
	Script      map[string][]string `json:"script,omitempty"`
	// What came of it, or its checksum.
	Came string `json:"came,omitempty"`
	Sum  string `json:"sum,omitempty"`
	// Where Windlass goes on otherwise, on purpose.
	Stop bool `json:"stop,omitempty"`
}

type scenario struct {
	Name  string   `json:"name"`
	Gate  bool     `json:"gate,omitempty"`
	Tests []string `json:"tests,omitempty"`
	Runs  []run    `json:"runs"`
}

// short leaves enough of a digest to know it by.
func short(digest string) string { return digest[:min(len(digest), 15)] }

func main() {
	count, full := 180, false
	for _, argument := range os.Args[1:] {
		if n, err := strconv.Atoi(argument); err == nil {
			count = n
		} else {
			full = true
		}
	}
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	for _, s := range scenarios() {
		record(&s)
		must(out.Encode(s))
	}
	for seed := range count {
		s := random(int64(seed))
		record(&s)
		for i := range s.Runs {
			if !full {
				sum := sha256.Sum256([]byte(s.Runs[i].Came))
				s.Runs[i].Came, s.Runs[i].Sum = "", hex.EncodeToString(sum[:8])
			}
		}
		must(out.Encode(s))
	}
}

type world struct {
	obj    *v2.HelmRelease
	chart  *helmchart.Chart
	oci    string
	values map[string]any
	driver helmdriver.Driver
	events []string
}

func record(s *scenario) {
	w := &world{
		obj:    &v2.HelmRelease{TypeMeta: metav1.TypeMeta{APIVersion: "helm.toolkit.fluxcd.io/v2", Kind: "HelmRelease"}},
		chart:  &helmchart.Chart{Metadata: &helmchart.Metadata{Name: "app", Version: "1.0.0", APIVersion: "v2", AppVersion: "9"}},
		driver: helmdriver.NewSecrets(fake.NewSimpleClientset().CoreV1().Secrets("apps")),
	}
	w.obj.Name, w.obj.Namespace, w.obj.Generation = "web", "apps", 1
	action.ChartTests = s.Tests
	for i := range s.Runs {
		w.run(s, &s.Runs[i])
		if s.Runs[i].Stop {
			s.Runs = s.Runs[:i+1]
			return
		}
	}
}

func (w *world) run(s *scenario, r *run) {
	ctx := context.Background()
	if r.Spec != nil {
		w.obj.Spec = v2.HelmReleaseSpec{}
		if err := json.Unmarshal(r.Spec, &w.obj.Spec); err != nil {
			log.Fatal(s.Name, ": ", err)
		}
	}
	if r.Generation > 0 {
		w.obj.Generation = r.Generation
	}
	if r.Annotations != nil {
		w.obj.Annotations = r.Annotations
	}
	if r.Chart != nil {
		w.chart = &helmchart.Chart{Metadata: &helmchart.Metadata{Name: r.Chart.Name, Version: r.Chart.Version, AppVersion: r.Chart.AppVersion, APIVersion: "v2"}}
	}
	if r.OCIDigest != "" {
		w.oci = r.OCIDigest
	}
	if r.Values != nil {
		w.values = r.Values
	}
	w.events, action.Performed = nil, nil
	action.Script = map[string][]string{}
	for name, queue := range r.Script {
		action.Script[name] = append([]string(nil), queue...)
	}
	for _, command := range r.Storage {
		w.storage(command)
	}
	ended, stalled := w.reconcile(ctx, s.Gate)
	r.Came = w.describe(ended)
	r.Stop = w.differs(r, stalled)
}

// storage does what somebody else does to Helm's storage.
func (w *world) storage(command string) {
	storage := helmstorage.Init(w.driver)
	cfg := w.config()
	last, _ := action.LastRelease(cfg.Build(nil), "web")
	version := 1
	if last != nil {
		version = last.Version + 1
	}
	switch command {
	case "release":
		must(storage.Create(action.Made("web", "apps", version, helmreleasecommon.StatusDeployed, w.chart, w.values, "by somebody else")))
	case "pending":
		must(storage.Create(action.Made("web", "apps", version, helmreleasecommon.StatusPendingInstall, w.chart, w.values, "by somebody else")))
	case "uninstalled":
		must(storage.Create(action.Made("web", "apps", version, helmreleasecommon.StatusUninstalled, w.chart, w.values, "by somebody else")))
	case "touch":
		last.Info.Description = "touched"
		must(storage.Update(last))
	case "delete":
		_, err := storage.Delete("web", last.Version)
		must(err)
	case "clear":
		for last != nil {
			_, err := storage.Delete("web", last.Version)
			must(err)
			last, _ = action.LastRelease(cfg.Build(nil), "web")
		}
	default:
		log.Fatal("no such command: ", command)
	}
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func (w *world) config() *action.ConfigFactory {
	cfg, err := action.NewConfigFactory(getter{}, action.WithDriver(w.driver))
	must(err)
	return cfg
}

// reconcile does what the reconciler of helm-controller does around the loop.
func (w *world) reconcile(ctx context.Context, gate bool) (ended string, stalled bool) {
	// As it comes from the API server.
	text, err := json.Marshal(w.obj)
	must(err)
	w.obj = &v2.HelmRelease{}
	must(json.Unmarshal(text, w.obj))
	obj := w.obj
	scheme := runtime.NewScheme()
	must(v2.AddToScheme(scheme))
	stored := obj.DeepCopy()
	stored.ResourceVersion = ""
	c := clientfake.NewClientBuilder().WithScheme(scheme).WithObjects(stored).WithStatusSubresource(stored).Build()
	obj.ResourceVersion = "999"
	patcher := patch.NewSerialPatcher(obj, c)
	defer func() {
		if v, ok := meta.ReconcileAnnotationValue(obj.GetAnnotations()); ok {
			obj.Status.SetLastHandledReconcileRequest(v)
		}
	}()
	conditions.MarkReconciling(obj, meta.ProgressingReason, "Fulfilling prerequisites")
	recorder := &recorder{w}
	reason, changed := action.ReleaseTargetChanged(obj, w.chart.Name())
	if changed && (reason != action.TargetChartName || obj.GetUpgrade().GetChartNameChangeStrategy() == v2.ChartNameChangeStrategyReinstall) {
		if err := reconcile.NewUninstall(w.config(), recorder).Reconcile(ctx, &reconcile.Request{Object: obj}); err != nil && !errors.Is(err, reconcile.ErrNoLatest) {
			return "failed", false
		}
		obj.Status.ClearHistory()
		obj.Status.ClearFailures()
		obj.Status.StorageNamespace = ""
		return "requeue", false
	}
	obj.Status.StorageNamespace = obj.GetStorageNamespace()
	if _, ok := action.MustResetFailures(obj, w.chart.Metadata, w.values); ok {
		obj.Status.ClearFailures()
	}
	obj.Status.LastAttemptedGeneration = obj.Generation
	obj.Status.LastAttemptedRevision = w.chart.Metadata.Version
	obj.Status.LastAttemptedRevisionDigest = w.oci
	obj.Status.LastAttemptedConfigDigest = chartutil.DigestValues(digest.Canonical, w.values).String()
	err = reconcile.NewAtomicRelease(patcher, w.config(), recorder, "helm-controller", nil, gate).Reconcile(ctx, &reconcile.Request{Object: obj, Chart: w.chart, Values: w.values})
	switch {
	case err == nil:
		ended = "done"
	case errors.Is(err, reconcile.ErrRetryAfterInterval):
		ended = "retry after " + obj.GetActiveRetry(gate).GetRetryInterval().String()
	case errors.Is(err, reconcile.ErrMustRequeue):
		return "requeue", false
	case errors.Is(err, reconcile.ErrExceededMaxRetries), errors.Is(err, reconcile.ErrMissingRollbackTarget):
		ended, stalled = "stalled", true
	default:
		return "failed", false
	}
	obj.Status.ObservedGeneration = obj.Generation
	return ended, stalled
}

// differs says whether Windlass goes on otherwise from here, as docs/compatibility/flux.md says.
func (w *world) differs(r *run, stalled bool) bool {
	if stalled {
		stall := conditions.GetReason(w.obj, meta.StalledCondition)
		if stall == "MissingRollbackTarget" || conditions.IsFalse(w.obj, v2.RemediatedCondition) {
			return true
		}
	}
	if last, err := action.LastRelease(w.config().Build(nil), "web"); err == nil && last.Info.Status == helmreleasecommon.StatusUninstalling {
		return true
	}
	return strings.Contains(r.Came, "correct failed") || strings.Contains(r.Came, "rollback failed")
}

func (w *world) describe(ended string) string {
	var b strings.Builder
	line := func(format string, arguments ...any) { fmt.Fprintf(&b, format+"\n", arguments...) }
	status := &w.obj.Status
	line("ended: %s", ended)
	line("performed: %s", strings.Join(action.Performed, ", "))
	for _, c := range status.Conditions {
		line("%s=%s %s @%d: %s", c.Type, c.Status, c.Reason, c.ObservedGeneration, c.Message)
	}
	history := append(v2.Snapshots(nil), status.History...)
	history.SortByVersion()
	for _, s := range history {
		var tests []string
		for name, test := range s.GetTestHooks() {
			tests = append(tests, name+":"+test.Phase)
		}
		sort.Strings(tests)
		tested := "-"
		if s.TestHooks != nil {
			tested = strings.Join(tests, ",")
		}
		line("history: %s %s %s@%s app %s values %s oci %s tests %s digest %s", s.FullReleaseName(), s.Status, s.ChartName, s.ChartVersion, s.AppVersion,
			short(s.ConfigDigest), s.OCIDigest, tested, short(s.Digest))
	}
	line("failures: %d install %d upgrade %d after %s", status.Failures, status.InstallFailures, status.UpgradeFailures, status.LastAttemptedReleaseAction)
	line("attempted: %d %s %s %s", status.LastAttemptedGeneration, status.LastAttemptedRevision, status.LastAttemptedRevisionDigest, short(status.LastAttemptedConfigDigest))
	line("observed: %d post %s metadata %s", status.ObservedGeneration, short(status.ObservedPostRenderersDigest), short(status.ObservedCommonMetadataDigest))
	line("handled: force %s reset %s storage %s", status.LastHandledForceAt, status.LastHandledResetAt, status.StorageNamespace)
	releases, _ := w.driver.List(func(helmreleaser.Releaser) bool { return true })
	var stored []*helmrelease.Release
	for _, one := range releases {
		stored = append(stored, one.(*helmrelease.Release))
	}
	sort.Slice(stored, func(i, j int) bool { return stored[i].Version < stored[j].Version })
	for _, rls := range stored {
		line("stored: v%d %s %s", rls.Version, rls.Info.Status, rls.Info.Description)
	}
	for _, event := range w.events {
		line("event: %s", event)
	}
	return b.String()
}

type recorder struct{ w *world }

func (r *recorder) Event(o runtime.Object, kind, reason, message string) {
	r.AnnotatedEventf(o, nil, kind, reason, "%s", message)
}

func (r *recorder) Eventf(o runtime.Object, kind, reason, format string, arguments ...any) {
	r.AnnotatedEventf(o, nil, kind, reason, format, arguments...)
}

func (r *recorder) AnnotatedEventf(_ runtime.Object, annotations map[string]string, kind, reason, format string, arguments ...any) {
	if reason == v2.InventoryBuildFailedReason {
		return
	}
	var said []string
	for key, value := range annotations {
		said = append(said, strings.TrimPrefix(key, "helm.toolkit.fluxcd.io/")+"="+short(value))
	}
	sort.Strings(said)
	if kind == corev1.EventTypeNormal {
		kind = "Normal"
	}
	r.w.events = append(r.w.events, fmt.Sprintf("%s %s [%s] %s", kind, reason, strings.Join(said, " "), fmt.Sprintf(format, arguments...)))
}

// getter leads to no cluster.
type getter struct{}

var errNoCluster = errors.New("no cluster")

func (getter) ToRESTConfig() (*rest.Config, error) { return nil, errNoCluster }
func (getter) ToDiscoveryClient() (discovery.CachedDiscoveryInterface, error) {
	return nil, errNoCluster
}
func (getter) ToRESTMapper() (apimeta.RESTMapper, error)     { return nil, errNoCluster }
func (getter) ToRawKubeConfigLoader() clientcmd.ClientConfig { return nil }
