// Stands in for the actions of Helm in helm-controller's package: each ends as the script says, and writes what Helm would write.
package action

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fluxcd/pkg/ssa"
	"github.com/fluxcd/pkg/ssa/jsondiff"
	extjsondiff "github.com/wI2L/jsondiff"
	helmaction "helm.sh/helm/v4/pkg/action"
	helmchartutil "helm.sh/helm/v4/pkg/chart/common"
	helmchart "helm.sh/helm/v4/pkg/chart/v2"
	helmreleaser "helm.sh/helm/v4/pkg/release"
	helmreleasecommon "helm.sh/helm/v4/pkg/release/common"
	helmrelease "helm.sh/helm/v4/pkg/release/v1"
	helmdriver "helm.sh/helm/v4/pkg/storage/driver"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/fluxcd/helm-controller/internal/release"
)

// Script says how actions end, the next one first. What it does not say ends well.
var Script map[string][]string

// Performed is what was done.
var Performed []string

// ChartTests are the names of the chart's tests.
var ChartTests []string

func ending(name string) string {
	how := "ok"
	if queue := Script[name]; len(queue) > 0 {
		how, Script[name] = queue[0], queue[1:]
	}
	if name != "drift" {
		Performed = append(Performed, name+" "+how)
	}
	return how
}

// At is a moment that a number stands for.
func At(n int) time.Time {
	return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(n) * time.Second)
}

// Made is a release as the script's world makes it.
func Made(name, namespace string, version int, status helmreleasecommon.Status, chrt *helmchart.Chart, vals map[string]any, description string) *helmrelease.Release {
	var hooks []*helmrelease.Hook
	for _, test := range ChartTests {
		hooks = append(hooks, &helmrelease.Hook{Name: test, Kind: "Pod", Path: "t.yaml", Manifest: "kind: Pod", Events: []helmrelease.HookEvent{helmrelease.HookTest}})
	}
	return &helmrelease.Release{
		Name: name, Namespace: namespace, Version: version,
		Info:  &helmrelease.Info{FirstDeployed: At(1), LastDeployed: At(version), Status: status, Description: description},
		Chart: &helmchart.Chart{Metadata: chrt.Metadata}, Config: vals,
		Manifest: fmt.Sprintf("# %s@%s\n", chrt.Name(), chrt.Metadata.Version), Hooks: hooks, ApplyMethod: "ssa",
	}
}

func end(config *helmaction.Configuration, rls *helmrelease.Release, how string, done string) error {
	switch how {
	case "ok":
		rls.SetStatus(helmreleasecommon.StatusDeployed, done)
		return config.Releases.Update(rls)
	case "failed":
		rls.SetStatus(helmreleasecommon.StatusFailed, "failed")
		if err := config.Releases.Update(rls); err != nil {
			return err
		}
		return errors.New("boom")
	default: // stuck: the record stays as it was
		return errors.New("stuck")
	}
}

type InstallOption func(*helmaction.Install)

func Install(_ context.Context, config *helmaction.Configuration, obj *v2.HelmRelease, chrt *helmchart.Chart, vals helmchartutil.Values, _ ...InstallOption) (*helmrelease.Release, error) {
	how := ending("install")
	if how == "early" {
		return nil, errors.New("early")
	}
	rls := Made(release.ShortenName(obj.GetReleaseName()), obj.GetReleaseNamespace(), next(config, release.ShortenName(obj.GetReleaseName())), helmreleasecommon.StatusPendingInstall, chrt, vals, "begun")
	if err := config.Releases.Create(rls); err != nil {
		return nil, err
	}
	return rls, end(config, rls, how, "done")
}

func next(config *helmaction.Configuration, name string) int {
	if last, err := LastRelease(config, name); err == nil {
		return last.Version + 1
	}
	return 1
}

type UpgradeOption func(*helmaction.Upgrade)

func Upgrade(_ context.Context, config *helmaction.Configuration, obj *v2.HelmRelease, chrt *helmchart.Chart, vals helmchartutil.Values, _ ...UpgradeOption) (*helmrelease.Release, error) {
	how := ending("upgrade")
	if how == "early" {
		return nil, errors.New("early")
	}
	name := release.ShortenName(obj.GetReleaseName())
	rls := Made(name, obj.GetReleaseNamespace(), next(config, name), helmreleasecommon.StatusPendingUpgrade, chrt, vals, "begun")
	if err := config.Releases.Create(rls); err != nil {
		return nil, err
	}
	if how == "ok" {
		supersede(config, name)
	}
	return rls, end(config, rls, how, "done")
}

func supersede(config *helmaction.Configuration, name string) {
	deployed, _ := config.Releases.DeployedAll(name)
	for _, one := range deployed {
		rls := one.(*helmrelease.Release)
		rls.Info.Status = helmreleasecommon.StatusSuperseded
		_ = config.Releases.Update(rls)
	}
}

type RollbackOption func(*helmaction.Rollback)

func Rollback(config *helmaction.Configuration, obj *v2.HelmRelease, name string, version int, _ ...RollbackOption) error {
	how := ending("rollback")
	if how == "early" {
		return errors.New("early")
	}
	got, err := config.Releases.Get(name, version)
	if err != nil {
		return err
	}
	to := got.(*helmrelease.Release)
	last, err := LastRelease(config, name)
	if err != nil {
		return err
	}
	rls := *to
	rls.Version = last.Version + 1
	rls.Info = &helmrelease.Info{FirstDeployed: At(1), LastDeployed: At(rls.Version), Status: helmreleasecommon.StatusPendingRollback, Description: "begun"}
	if err := config.Releases.Create(&rls); err != nil {
		return err
	}
	if how == "ok" {
		supersede(config, name)
	} else if how == "failed" {
		last.Info.Status = helmreleasecommon.StatusSuperseded
		_ = config.Releases.Update(last)
	}
	return end(config, &rls, how, "done")
}

type UninstallOption func(*helmaction.Uninstall)

func Uninstall(_ context.Context, config *helmaction.Configuration, obj *v2.HelmRelease, name string, _ ...UninstallOption) (*helmreleaser.UninstallReleaseResponse, error) {
	how := ending("uninstall")
	if how == "early" {
		return nil, errors.New("early")
	}
	history, err := config.Releases.History(name)
	if err != nil || len(history) == 0 {
		return nil, fmt.Errorf("uninstall: Release not loaded: %s: %w", name, helmdriver.ErrReleaseNotFound)
	}
	last, err := LastRelease(config, name)
	if err != nil {
		return nil, err
	}
	keep := obj.GetUninstall().KeepHistory
	purge := func() {
		for _, one := range history {
			rls := one.(*helmrelease.Release)
			_, _ = config.Releases.Delete(rls.Name, rls.Version)
		}
	}
	if last.Info.Status == helmreleasecommon.StatusUninstalled {
		if keep {
			return nil, fmt.Errorf("the release named %q is already deleted", name)
		}
		purge()
		return &helmreleaser.UninstallReleaseResponse{Release: last}, nil
	}
	last.SetStatus(helmreleasecommon.StatusUninstalling, "Deletion in progress (or silently failed)")
	last.Info.Deleted = At(3600)
	res := &helmreleaser.UninstallReleaseResponse{Release: last}
	if err := config.Releases.Update(last); err != nil {
		return res, err
	}
	if how == "failed" {
		return nil, fmt.Errorf("failed to delete release: %s", name)
	}
	if !keep {
		purge()
	} else {
		last.SetStatus(helmreleasecommon.StatusUninstalled, "Uninstallation complete")
		if err := config.Releases.Update(last); err != nil {
			return res, err
		}
		supersede(config, name)
	}
	if how == "errors" {
		return res, errors.New("uninstallation completed with 1 error(s): boom")
	}
	return res, nil
}

type TestOption func(*helmaction.ReleaseTesting)

func Test(_ context.Context, config *helmaction.Configuration, obj *v2.HelmRelease, _ ...TestOption) (*helmrelease.Release, error) {
	how := ending("test")
	if how == "early" {
		return nil, errors.New("early")
	}
	last, err := LastRelease(config, release.ShortenName(obj.GetReleaseName()))
	if err != nil {
		return nil, err
	}
	phase := helmrelease.HookPhaseSucceeded
	if how == "failed" {
		phase = helmrelease.HookPhaseFailed
	}
	for _, hook := range last.Hooks {
		hook.LastRun = helmrelease.HookExecution{StartedAt: At(last.Version + 10), CompletedAt: At(last.Version + 20), Phase: phase}
	}
	if err := config.Releases.Update(last); err != nil {
		return nil, err
	}
	if how == "failed" {
		return nil, errors.New("boom")
	}
	return last, nil
}

func Diff(_ context.Context, _ *helmaction.Configuration, _ *helmrelease.Release, _ string, _ []string, _ ...v2.IgnoreRule) (jsondiff.DiffSet, error) {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion("v1")
	object.SetKind("ConfigMap")
	object.SetNamespace("apps")
	object.SetName("a")
	one := func(of jsondiff.DiffType, patch extjsondiff.Patch) (jsondiff.DiffSet, error) {
		return jsondiff.DiffSet{{Type: of, DesiredObject: object, Patch: patch}}, nil
	}
	switch ending("drift") {
	case "changed":
		return one(jsondiff.DiffTypeUpdate, extjsondiff.Patch{{Type: "add"}, {Type: "replace"}, {Type: "replace"}, {Type: "remove"}})
	case "removed":
		return one(jsondiff.DiffTypeCreate, nil)
	case "excluded":
		return one(jsondiff.DiffTypeExclude, nil)
	case "error":
		return nil, errors.New("boom")
	default:
		return nil, nil
	}
}

func ApplyDiff(_ context.Context, _ *helmaction.Configuration, diffSet jsondiff.DiffSet, _ string) (*ssa.ChangeSet, error) {
	if ending("correct") == "failed" {
		return nil, errors.New("boom")
	}
	changes := ssa.NewChangeSet()
	for range diffSet {
		changes.Add(ssa.ChangeSetEntry{Subject: "ConfigMap/apps/a", Action: ssa.ConfiguredAction})
	}
	return changes, nil
}
