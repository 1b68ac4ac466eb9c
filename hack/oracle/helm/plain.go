package main

import (
	"fmt"
	"math"
	"strings"
	"text/template"

	"sigs.k8s.io/yaml"
)

// execute runs the template with text/template alone. The values are YAML; a whole number is an int64, as it is in
// values that Helm 4 reads.
func (q question) execute() (string, error) {
	var data any
	if err := yaml.Unmarshal([]byte(q.Values), &data); err != nil {
		return "", fmt.Errorf("values: %w", err)
	}
	name := q.Name
	if name == "" {
		name = "page"
	}
	parsed, err := template.New(name).Option(q.Options...).Parse(q.Template)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	if err := parsed.Execute(&out, whole(data)); err != nil {
		return "", err
	}
	return out.String(), nil
}

// whole makes the floats that are whole numbers int64.
func whole(value any) any {
	switch value := value.(type) {
	case float64:
		if value == math.Trunc(value) && math.Abs(value) < 1<<53 {
			return int64(value)
		}
	case map[string]any:
		for key, item := range value {
			value[key] = whole(item)
		}
	case []any:
		for index, item := range value {
			value[index] = whole(item)
		}
	}
	return value
}
