// Command kustomize-oracle answers what the real kustomize builds, many times in one process.
//
// It reads one request per line from stdin, {"files": {path: base64}, "folder": path}, writes the files below a
// temporary root, runs kustomize's own library on the folder, and writes one line, {"yaml": text} or {"error": text},
// with {ROOT} for the temporary root and {PARENT} for the folder that holds it. It is the peer of crates/kustomize-build/tests/fuzz.rs and nothing else.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/kustomize/kyaml/openapi"
)

type request struct {
	Files  map[string][]byte `json:"files"`
	Folder string            `json:"folder"`
}

type answer struct {
	YAML  string `json:"yaml"`
	Error string `json:"error"`
	Fails bool   `json:"fails"`
}

func main() {
	log.SetOutput(io.Discard) // warnings
	if err := serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(in io.Reader, out io.Writer) error {
	base, err := os.MkdirTemp("", "oracle")
	if err != nil {
		return err
	}
	defer os.RemoveAll(base)
	root := filepath.Join(base, "root")
	requests, answers := json.NewDecoder(bufio.NewReader(in)), json.NewEncoder(out)
	for {
		var request request
		if err := requests.Decode(&request); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if err := write(root, request.Files); err != nil {
			return err
		}
		answer := build(root, request)
		answer.Error = strings.NewReplacer(root, "{ROOT}", base, "{PARENT}").Replace(answer.Error)
		if err := answers.Encode(answer); err != nil {
			return err
		}
	}
}

func write(root string, files map[string][]byte) error {
	if err := os.RemoveAll(root); err != nil {
		return err
	}
	if err := os.MkdirAll(root, 0o700); err != nil {
		return err
	}
	for path, content := range files {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// build does what the command does, with the default flags.
func build(root string, request request) (result answer) {
	defer func() {
		if reason := recover(); reason != nil {
			result = answer{Error: fmt.Sprintf("panic: %v", reason), Fails: true}
		}
	}()
	// The schema in use is global, and a build that names another one leaves it behind.
	for _, content := range request.Files {
		if strings.Contains(string(content), "openapi") {
			openapi.ResetOpenAPI()
			defer openapi.ResetOpenAPI()
			break
		}
	}
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionUnspecified
	objects, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), filepath.Join(root, request.Folder))
	if err != nil {
		return answer{Error: err.Error(), Fails: true}
	}
	yaml, err := objects.AsYaml()
	if err != nil {
		return answer{Error: err.Error(), Fails: true}
	}
	return answer{YAML: string(yaml)}
}
