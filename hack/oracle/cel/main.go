// Says what cel-go answers to expressions, in the environment that Flux makes for health checks. Reads
// crates/cel-expression/tests/cases.json from stdin, and writes it with the answers:
//
//	go run . < cases.json > new.json
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/ext"
)

type recorded struct {
	Origin string         `json:"origin"`
	Object map[string]any `json:"object"`
	Cases  []struct {
		Expression string `json:"expression"`
		Answer     any    `json:"answer"`
	} `json:"cases"`
}

func main() {
	environment, err := cel.NewEnv(
		cel.HomogeneousAggregateLiterals(), cel.EagerlyValidateDeclarations(true), cel.DefaultUTCTimeZone(true),
		cel.CrossTypeNumericComparisons(true), cel.OptionalTypes(), ext.Strings(), ext.Sets(), ext.Encoders())
	check(err)
	var file recorded
	check(json.NewDecoder(os.Stdin).Decode(&file))
	fmt.Printf("{\n\"origin\": %s,\n\"object\": %s,\n\"cases\": [\n", text(file.Origin), text(file.Object))
	whole(file.Object)
	for i, c := range file.Cases {
		c.Answer = answer(environment, c.Expression, file.Object)
		separator := ","
		if i == len(file.Cases)-1 {
			separator = ""
		}
		fmt.Printf("%s%s\n", text(c), separator)
	}
	fmt.Println("]\n}")
}

// text is one line of JSON in which nothing is escaped for HTML.
func text(value any) string {
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	check(encoder.Encode(value))
	return strings.TrimSpace(out.String())
}

func answer(environment *cel.Env, expression string, object map[string]any) any {
	tree, issues := environment.Parse(expression)
	if issues != nil && issues.Err() != nil {
		return "cannot be parsed"
	}
	program, err := environment.Program(tree, cel.EvalOptions(cel.OptOptimize))
	if err != nil {
		return "cannot be parsed"
	}
	value, _, err := program.Eval(object)
	if err != nil {
		return "cannot be evaluated"
	}
	if boolean, ok := value.(types.Bool); ok {
		return bool(boolean)
	}
	return "is not boolean"
}

// whole makes of JSON numbers what Kubernetes' decoder makes of them.
func whole(value map[string]any) map[string]any {
	for key, element := range value {
		value[key] = wholeOf(element)
	}
	return value
}

func wholeOf(value any) any {
	switch v := value.(type) {
	case map[string]any:
		return whole(v)
	case []any:
		for i := range v {
			v[i] = wholeOf(v[i])
		}
	case float64:
		if v == float64(int64(v)) {
			return int64(v)
		}
	}
	return value
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
