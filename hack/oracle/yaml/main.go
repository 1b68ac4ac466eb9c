// Command yaml-oracle answers what Go's YAML libraries make of a text.
//
// It reads requests from standard input until its end: one byte for the question, four bytes (big endian) for the
// length of the text, the text. Each answer is one byte (0 for a result, 1 for an error), four bytes for the length,
// the bytes. Questions: 'j' is sigs.k8s.io/yaml's YAMLToJSON, 'k' kyaml's reader and RNode.MarshalJSON, 'y'
// sigs.k8s.io/yaml's JSONToYAML, 'b' a whole `kustomize build` of a kustomization with the text as its only resource.
//
// `yaml-oracle record FILE` fills in the answers of a file of cases, one JSON object a line.
package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
	"sigs.k8s.io/yaml"
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == "record" {
		if err := record(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	serve()
}

// kase is one line of a file of cases. Text that is no UTF-8 is given as bytes.
type kase struct {
	Ask    string `json:"ask"`
	Text   string `json:"text,omitempty"`
	Bytes  []int  `json:"bytes,omitempty"`
	Result string `json:"result,omitempty"`
	Error  string `json:"error,omitempty"`
}

func record(file string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	for _, line := range bytes.Split(bytes.TrimSpace(content), []byte("\n")) {
		var one kase
		if err := json.Unmarshal(line, &one); err != nil {
			return fmt.Errorf("%s: %w", line, err)
		}
		text := []byte(one.Text)
		for _, b := range one.Bytes {
			text = append(text, byte(b))
		}
		one.Result, one.Error = "", ""
		if answer, err := ask(one.Ask[0], text); err != nil {
			one.Error = err.Error()
		} else {
			one.Result = string(answer)
		}
		if err := encoder.Encode(one); err != nil {
			return err
		}
	}
	return os.WriteFile(file, out.Bytes(), 0o644)
}

func serve() {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	defer out.Flush()
	head := make([]byte, 5)
	for {
		if in.Buffered() == 0 {
			out.Flush()
		}
		if _, err := io.ReadFull(in, head); err != nil {
			return
		}
		text := make([]byte, binary.BigEndian.Uint32(head[1:]))
		if _, err := io.ReadFull(in, text); err != nil {
			return
		}
		status, result := byte(0), []byte(nil)
		answer, err := ask(head[0], text)
		if err != nil {
			status, result = 1, []byte(err.Error())
		} else {
			result = answer
		}
		length := binary.BigEndian.AppendUint32([]byte{status}, uint32(len(result)))
		out.Write(length)
		out.Write(result)
	}
}

// ask answers one question; a library's panic is an error as well.
func ask(question byte, text []byte) (answer []byte, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic: %v", cause)
		}
	}()
	switch question {
	case 'j':
		return yaml.YAMLToJSON(text)
	case 'y':
		return yaml.JSONToYAML(text)
	case 'k':
		return readByKyaml(text)
	case 'b':
		return build(text)
	}
	return nil, fmt.Errorf("unknown question %q", question)
}

// readByKyaml reads the first document of a text and gives the JSON that kustomize would write it from.
func readByKyaml(text []byte) ([]byte, error) {
	var node kyaml.Node
	err := kyaml.NewDecoder(bytes.NewBuffer(text)).Decode(&node)
	if err == io.EOF {
		return []byte("null"), nil
	}
	if err != nil {
		return nil, err
	}
	resource := kyaml.NewRNode(&node)
	if err := resource.DeAnchor(); err != nil {
		return nil, err
	}
	return resource.MarshalJSON()
}

func build(text []byte) ([]byte, error) {
	files := filesys.MakeFsInMemory()
	if err := files.WriteFile("/a/kustomization.yaml", []byte("resources: [r.yaml]\n")); err != nil {
		return nil, err
	}
	if err := files.WriteFile("/a/r.yaml", text); err != nil {
		return nil, err
	}
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(files, "/a")
	if err != nil {
		return nil, err
	}
	return resources.AsYaml()
}
