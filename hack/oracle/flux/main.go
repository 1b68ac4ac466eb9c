// Records what Flux makes of a folder: the generated kustomization, kustomize's build and the substitution, as
// kustomize-controller runs them one after the other.
//
//	go run . CASE...
//
// A case is a folder with input/ (the artifact), spec.yaml (the spec of the Kustomization) and, where variables come
// from the cluster, cluster.yaml (ConfigMaps and Secrets). Writes expected.yaml, or expected-error.txt with {ROOT} for the
// artifact's root and {PARENT} for what it lies in. A file `lenient` in the case turns the gate StrictPostBuildSubstitutions off.
package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/fluxcd/pkg/kustomize"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

const namespace = "tenant"

func main() {
	for _, folder := range os.Args[1:] {
		if err := record(folder); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", folder, err)
			os.Exit(1)
		}
	}
}

func record(folder string) error {
	parent, err := os.MkdirTemp("", "artifact-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(parent)
	if parent, err = filepath.EvalSymlinks(parent); err != nil {
		return err
	}
	root := filepath.Join(parent, "root")
	if err := copyTree(filepath.Join(folder, "input"), root); err != nil {
		return err
	}
	object, err := readKustomization(folder)
	if err != nil {
		return err
	}
	objects, err := readCluster(folder)
	if err != nil {
		return err
	}
	_, err = os.Stat(filepath.Join(folder, "lenient"))
	strict := errors.Is(err, fs.ErrNotExist)

	output, failure := run(root, object, objects, strict)
	expected, refused := filepath.Join(folder, "expected.yaml"), filepath.Join(folder, "expected-error.txt")
	os.Remove(expected)
	os.Remove(refused)
	if failure != nil {
		text := strings.NewReplacer(root, "{ROOT}", parent, "{PARENT}").Replace(failure.Error())
		return os.WriteFile(refused, []byte(text+"\n"), 0o644)
	}
	return os.WriteFile(expected, output, 0o644)
}

// run does what KustomizationReconciler.generate and .build do.
func run(root string, object unstructured.Unstructured, cluster client.Client, strict bool) ([]byte, error) {
	path, _, _ := unstructured.NestedString(object.Object, "spec", "path")
	folder := filepath.Join(root, filepath.Join("/", path))
	if _, err := os.Stat(folder); err != nil {
		return nil, fmt.Errorf("kustomization path not found: %w", err)
	}
	if _, err := kustomize.NewGenerator(root, object).WriteFile(folder); err != nil {
		return nil, err
	}
	built, err := kustomize.SecureBuild(root, folder, false)
	if err != nil {
		return nil, fmt.Errorf("kustomize build failed: %w", err)
	}
	postBuild, substitutes, _ := unstructured.NestedMap(object.Object, "spec", "postBuild")
	for _, resource := range built.Resources() {
		if resource.GetName() == "" || resource.GetKind() == "" || resource.GetApiVersion() == "" {
			return nil, fmt.Errorf("failed to decode Kubernetes apiVersion, kind and name from: %v", resource.String())
		}
		if !substitutes {
			continue
		}
		changed, err := kustomize.SubstituteVariables(context.Background(), cluster, object, resource,
			kustomize.SubstituteWithStrict(strict),
			kustomize.SubstituteWithAlways(postBuild["substituteStrategy"] == "Always"))
		if err != nil {
			return nil, fmt.Errorf("post build failed for '%s/%s': %w", resource.GetGvk(), resource.GetName(), err)
		}
		if changed != nil {
			if _, err := built.Replace(resource); err != nil {
				return nil, err
			}
		}
	}
	output, err := built.AsYaml()
	if err != nil {
		return nil, fmt.Errorf("kustomize build failed: %w", err)
	}
	return output, nil
}

func readKustomization(folder string) (unstructured.Unstructured, error) {
	object := unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
		"metadata": map[string]any{"name": "app", "namespace": namespace},
	}}
	text, err := os.ReadFile(filepath.Join(folder, "spec.yaml"))
	if err != nil {
		return object, err
	}
	spec := map[string]any{}
	if err := yaml.UnmarshalStrict(text, &spec); err != nil {
		return object, err
	}
	object.Object["spec"] = spec
	return object, nil
}

// cluster answers for the ConfigMaps and Secrets of cluster.yaml and for nothing else.
type cluster struct {
	client.Client
	configMaps map[string]*corev1.ConfigMap
	secrets    map[string]*corev1.Secret
}

func (c cluster) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	resource := ""
	switch into := into.(type) {
	case *corev1.ConfigMap:
		if found, ok := c.configMaps[key.Name]; ok && key.Namespace == namespace {
			*into = *found
			return nil
		}
		resource = "configmaps"
	case *corev1.Secret:
		if found, ok := c.secrets[key.Name]; ok && key.Namespace == namespace {
			*into = *found
			return nil
		}
		resource = "secrets"
	}
	return apierrors.NewNotFound(schema.GroupResource{Resource: resource}, key.Name)
}

func readCluster(folder string) (client.Client, error) {
	found := cluster{configMaps: map[string]*corev1.ConfigMap{}, secrets: map[string]*corev1.Secret{}}
	text, err := os.ReadFile(filepath.Join(folder, "cluster.yaml"))
	if errors.Is(err, fs.ErrNotExist) {
		return found, nil
	}
	if err != nil {
		return nil, err
	}
	for _, document := range strings.Split(string(text), "---\n") {
		var kind struct{ Kind string }
		if err := yaml.Unmarshal([]byte(document), &kind); err != nil {
			return nil, err
		}
		switch kind.Kind {
		case "ConfigMap":
			var object corev1.ConfigMap
			if err := yaml.UnmarshalStrict([]byte(document), &object); err != nil {
				return nil, err
			}
			found.configMaps[object.Name] = &object
		case "Secret":
			var object corev1.Secret
			if err := yaml.UnmarshalStrict([]byte(document), &object); err != nil {
				return nil, err
			}
			for key, value := range object.StringData {
				if object.Data == nil {
					object.Data = map[string][]byte{}
				}
				object.Data[key] = []byte(value)
			}
			found.secrets[object.Name] = &object
		}
	}
	return found, nil
}

func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		below, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, below)
		if entry.IsDir() {
			return os.MkdirAll(target, 0o755)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, data, 0o644)
	})
}
