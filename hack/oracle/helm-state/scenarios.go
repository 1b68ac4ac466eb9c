package main

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"strconv"
)

func spec(text string) json.RawMessage { return json.RawMessage(text) }

func script(pairs ...string) map[string][]string {
	all := map[string][]string{}
	for i := 0; i < len(pairs); i += 2 {
		all[pairs[i]] = append(all[pairs[i]], pairs[i+1])
	}
	return all
}

var newer = &chartOf{Name: "app", Version: "2.0.0", AppVersion: "10"}

func scenarios() []scenario {
	remedies := `"install":{"remediation":{"retries":1,"remediateLastFailure":true}},"upgrade":{"remediation":{"retries":1}}`
	tests := []string{"t1", "t2"}
	one := func(name string, runs ...run) scenario { return scenario{Name: name, Runs: runs} }
	tested := func(name string, runs ...run) scenario { return scenario{Name: name, Runs: runs, Tests: tests} }
	at := func(token string, names ...string) map[string]string {
		all := map[string]string{"reconcile.fluxcd.io/requestedAt": token}
		for _, name := range names {
			all["reconcile.fluxcd.io/"+name] = token
		}
		return all
	}
	all := []scenario{
		one("install, nothing, upgrade, nothing", run{Spec: spec(`{}`)}, run{}, run{Chart: newer}, run{}, run{Values: map[string]any{"a": 1}}, run{}),
		one("an install fails by default", run{Script: script("install", "failed")}, run{}, run{Chart: newer}, run{}),
		one("an install fails before it writes", run{Script: script("install", "early")}, run{Script: script("install", "early")}, run{}),
		one("an install fails, is undone and tried again", run{Spec: spec(`{` + remedies + `}`), Script: script("install", "failed")}, run{Script: script("install", "failed")}, run{}, run{Values: map[string]any{"a": 1}}),
		one("an install gets stuck", run{Script: script("install", "stuck")}, run{}, run{}),
		one("an upgrade gets stuck", run{}, run{Chart: newer, Script: script("upgrade", "stuck")}, run{}, run{}),
		one("an upgrade fails by default", run{}, run{Chart: newer, Script: script("upgrade", "failed")}, run{}, run{Values: map[string]any{"a": 1}}, run{}),
		one("an upgrade fails, is rolled back and tried again", run{Spec: spec(`{` + remedies + `}`)}, run{Chart: newer, Script: script("upgrade", "failed")}, run{Script: script("upgrade", "failed")}, run{}, run{Generation: 2}, run{}),
		one("an upgrade fails, its rollback fails too", run{Spec: spec(`{` + remedies + `}`)}, run{Chart: newer, Script: script("upgrade", "failed", "rollback", "failed")}, run{}, run{}),
		one("an upgrade fails, its rollback fails before it writes", run{Spec: spec(`{` + remedies + `}`)}, run{Chart: newer, Script: script("upgrade", "failed", "rollback", "early")}, run{}, run{}),
		one("an upgrade fails, is uninstalled and installed", run{Spec: spec(`{"upgrade":{"remediation":{"strategy":"uninstall","retries":1}}}`)}, run{Chart: newer, Script: script("upgrade", "failed")}, run{}, run{}),
		one("an upgrade fails, is uninstalled with its history kept", run{Spec: spec(`{"uninstall":{"keepHistory":true},"upgrade":{"remediation":{"strategy":"uninstall","retries":1}}}`)}, run{Chart: newer, Script: script("upgrade", "failed")}, run{}, run{}),
		one("an upgrade is rolled back, and the spec goes back too", run{Spec: spec(`{` + remedies + `}`)}, run{Generation: 2, Values: map[string]any{"a": 1}, Script: script("upgrade", "failed")}, run{Generation: 3, Values: map[string]any{}}, run{}),
		one("retries after an interval", run{Spec: spec(`{"install":{"strategy":{"name":"RetryOnFailure","retryInterval":"30s"}},"upgrade":{"strategy":{"name":"RetryOnFailure"}}}`), Script: script("install", "failed")}, run{Script: script("upgrade", "failed")}, run{Script: script("upgrade", "early")}, run{}, run{}),
		{Name: "retries by default", Gate: true, Runs: []run{{Script: script("install", "failed", "upgrade", "failed")}, {Script: script("upgrade", "failed")}, {}, {}}},
		one("a release of somebody else", run{Storage: []string{"release"}}, run{}),
		one("a release of somebody else that was uninstalled", run{Storage: []string{"uninstalled"}}, run{}),
		one("a pending release of somebody else", run{Storage: []string{"pending"}}, run{}),
		one("somebody else touches it", run{}, run{Storage: []string{"touch"}}, run{}),
		one("somebody else upgrades it", run{}, run{Storage: []string{"release"}}, run{}),
		one("somebody else deletes the records", run{}, run{Storage: []string{"clear"}}, run{}, run{Chart: newer}, run{Storage: []string{"delete"}}, run{}),
		one("force in sync", run{}, run{Annotations: at("1", "forceAt")}, run{}, run{Annotations: at("2")}, run{Annotations: at("3", "forceAt"), Script: script("upgrade", "failed")}, run{Annotations: at("4", "forceAt")}),
		one("force and reset after retries", run{Script: script("install", "failed")}, run{}, run{Annotations: at("1")}, run{Annotations: at("2", "resetAt"), Script: script("upgrade", "failed")}, run{Annotations: at("3", "forceAt")}, run{}),
		one("a reset with another token", run{Script: script("install", "failed")}, run{Annotations: map[string]string{"reconcile.fluxcd.io/requestedAt": "1", "reconcile.fluxcd.io/resetAt": "2"}}, run{Annotations: at("2", "resetAt")}),
		one("force while nothing is installed", run{Spec: spec(`{"install":{"remediation":{"remediateLastFailure":true}}}`), Script: script("install", "failed")}, run{}, run{Annotations: at("1", "forceAt")}, run{}),
		tested("tests", run{Spec: spec(`{"test":{"enable":true}}`)}, run{}, run{Chart: newer, Script: script("test", "failed")}, run{}, run{Generation: 2, Spec: spec(`{}`)}, run{Generation: 3, Spec: spec(`{"test":{"enable":true,"ignoreFailures":true}}`)}, run{}),
		tested("tests fail and are ignored", run{Spec: spec(`{"test":{"enable":true,"ignoreFailures":true}}`), Script: script("test", "failed")}, run{}, run{Chart: newer}),
		tested("tests fail and it is rolled back", run{Spec: spec(`{"test":{"enable":true},` + remedies + `}`)}, run{Chart: newer, Script: script("test", "failed")}, run{Script: script("test", "failed")}, run{}),
		tested("tests of an install fail", run{Spec: spec(`{"test":{"enable":true},` + remedies + `}`), Script: script("test", "failed")}, run{}, run{}),
		tested("tests cannot be run", run{Spec: spec(`{"test":{"enable":true}}`), Script: script("test", "early")}, run{}, run{}),
		tested("some tests", run{Spec: spec(`{"test":{"enable":true,"filters":[{"name":"t1"}]}}`)}, run{Generation: 2, Spec: spec(`{"test":{"enable":true,"filters":[{"name":"t1","exclude":true}]}}`), Chart: newer}, run{}),
		one("no tests", run{Spec: spec(`{"test":{"enable":true}}`)}, run{}),
		one("drift is reported", run{Spec: spec(`{"driftDetection":{"mode":"warn"}}`)}, run{Script: script("drift", "changed")}, run{Script: script("drift", "removed")}, run{Script: script("drift", "excluded")}, run{Script: script("drift", "error")}, run{}),
		one("drift is corrected", run{Spec: spec(`{"driftDetection":{"mode":"enabled"}}`)}, run{Script: script("drift", "changed")}, run{Script: script("drift", "removed", "drift", "removed")}, run{}),
		one("post-renderers and metadata change", run{}, run{Generation: 2, Spec: spec(`{"postRenderers":[{"kustomize":{"patches":[{"patch":"- op: add\n  path: /a<b>&\n","target":{"kind":"Deployment","labelSelector":"a=b","namespace":"x","group":"apps","version":"v1","name":"n.*","annotationSelector":"c"}}],"images":[{"name":"a","newName":"b","newTag":"1","digest":"sha256:0"},{"name":"c"}]}},{}]}`)}, run{}, run{Generation: 3, Spec: spec(`{"commonMetadata":{"labels":{"b":"1","a":"é\u2028"},"annotations":{"x":"<y>"}}}`)}, run{}, run{Generation: 4, Spec: spec(`{"commonMetadata":{}}`)}, run{Generation: 5, Spec: spec(`{}`)}, run{}),
		one("chart name changes", run{}, run{Chart: &chartOf{Name: "other", Version: "1.0.0"}}, run{}, run{}),
		one("chart name changes in place", run{Spec: spec(`{"upgrade":{"chartNameChangeStrategy":"InPlaceUpdate"}}`)}, run{Chart: &chartOf{Name: "other", Version: "1.0.0"}}, run{}),
		one("release name changes, the uninstall fails", run{}, run{Generation: 2, Chart: &chartOf{Name: "other", Version: "1.0.0"}, Script: script("uninstall", "early")}, run{Script: script("uninstall", "errors")}, run{}, run{}),
		one("chart name changes, somebody else uninstalled it", run{}, run{Storage: []string{"clear"}, Chart: &chartOf{Name: "other", Version: "1.0.0"}}, run{}),
		one("from an OCI artifact", run{OCIDigest: "sha256:0123", Chart: &chartOf{Name: "app", Version: "1.0.0+0123"}}, run{}, run{OCIDigest: "sha256:4567", Chart: &chartOf{Name: "app", Version: "1.0.0+4567"}, Script: script("upgrade", "failed")}, run{}, run{Values: map[string]any{"b": []any{1, "x"}}}),
		one("another name and namespace", run{Spec: spec(`{"targetNamespace":"prod"}`)}, run{Chart: newer, Script: script("upgrade", "failed")}, run{}),
		one("retries without end", run{Spec: spec(`{"install":{"remediation":{"retries":-1}},"upgrade":{"remediation":{"retries":-1}}}`), Script: script("install", "failed")}, run{Script: script("install", "failed")}, run{}, run{Chart: newer, Script: script("upgrade", "failed")}, run{}),
		one("an uninstall that ends with errors", run{Spec: spec(`{` + remedies + `}`), Script: script("install", "failed", "uninstall", "errors")}, run{}, run{}),
		one("an uninstall that fails before it writes", run{Spec: spec(`{` + remedies + `}`), Script: script("install", "failed", "uninstall", "early")}, run{}, run{}),
	}
	return all
}

// random makes up a scenario. It keeps to what Windlass does not do otherwise on purpose.
func random(seed int64) scenario {
	r := rand.New(rand.NewSource(seed))
	pick := func(from ...string) string { return from[r.Intn(len(from))] }
	flag := func() bool { return r.Intn(2) == 0 }
	remediation := func(upgrade bool) string {
		text := fmt.Sprintf(`"retries":%d`, r.Intn(4)-1)
		if flag() {
			text += fmt.Sprintf(`,"remediateLastFailure":%t`, flag())
		}
		if flag() {
			text += fmt.Sprintf(`,"ignoreTestFailures":%t`, flag())
		}
		if upgrade && flag() {
			text += `,"strategy":"` + pick("rollback", "uninstall") + `"`
		}
		return text
	}
	side := func(upgrade bool) string {
		switch r.Intn(4) {
		case 0:
			return `{}`
		case 1:
			return `{"strategy":{"name":"RetryOnFailure","retryInterval":"1m"}}`
		default:
			return `{"remediation":{` + remediation(upgrade) + `}}`
		}
	}
	newSpec := func() json.RawMessage {
		text := `{"install":` + side(false) + `,"upgrade":` + side(true)
		if flag() {
			text += fmt.Sprintf(`,"test":{"enable":true,"ignoreFailures":%t}`, flag())
		}
		if r.Intn(3) == 0 {
			text += `,"uninstall":{"keepHistory":true}`
		}
		if r.Intn(3) == 0 {
			text += `,"driftDetection":{"mode":"` + pick("warn", "enabled") + `"}`
		}
		return spec(text + `}`)
	}
	s := scenario{Name: "random " + strconv.FormatInt(seed, 10), Gate: r.Intn(5) == 0}
	for i := range r.Intn(3) {
		s.Tests = append(s.Tests, "t"+strconv.Itoa(i))
	}
	generation := int64(1)
	token := 0
	for i := range 3 + r.Intn(4) {
		one := run{}
		if i == 0 {
			one.Spec = newSpec()
		} else {
			switch r.Intn(8) {
			case 0:
				generation++
				one.Generation, one.Spec = generation, newSpec()
			case 1:
				one.Chart = &chartOf{Name: pick("app", "app", "app", "other"), Version: pick("1.0.0", "2.0.0", "3.0.0")}
			case 2:
				one.Values = map[string]any{"a": float64(r.Intn(3))}
			case 3:
				token++
				at := strconv.Itoa(token)
				one.Annotations = map[string]string{"reconcile.fluxcd.io/requestedAt": at}
				if flag() {
					one.Annotations["reconcile.fluxcd.io/"+pick("forceAt", "resetAt")] = at
				}
			case 4:
				if r.Intn(3) == 0 {
					one.Storage = []string{pick("release", "clear")}
				}
			}
		}
		one.Script = map[string][]string{}
		for _, name := range []string{"install", "upgrade", "rollback", "uninstall", "test", "drift"} {
			// What fails too often comes nowhere.
			if flag() || i == 0 && name == "install" && flag() {
				continue
			}
			how := map[string][]string{
				"install": {"failed", "failed", "early", "stuck"}, "upgrade": {"failed", "failed", "failed", "early", "stuck"},
				"rollback": {"failed", "early"}, "uninstall": {"early", "errors"},
				"test": {"failed", "failed", "early"}, "drift": {"changed", "removed", "excluded", "error"},
			}[name]
			one.Script[name] = []string{how[r.Intn(len(how))]}
		}
		s.Runs = append(s.Runs, one)
	}
	return s
}
