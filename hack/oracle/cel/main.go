// Says what cel-go answers to expressions, in the environment that Flux makes for health checks: reads cases as JSON from
// stdin, and writes them with their answers.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/ext"
)

type oneCase struct {
	Expression string         `json:"expression"`
	Object     map[string]any `json:"object"`
	Answer     any            `json:"answer"`
}

func main() {
	environment, err := cel.NewEnv(
		cel.HomogeneousAggregateLiterals(), cel.EagerlyValidateDeclarations(true), cel.DefaultUTCTimeZone(true),
		cel.CrossTypeNumericComparisons(true), cel.OptionalTypes(), ext.Strings(), ext.Sets(), ext.Encoders())
	check(err)
	var cases []oneCase
	check(json.NewDecoder(os.Stdin).Decode(&cases))
	for i := range cases {
		cases[i].Answer = answer(environment, cases[i])
	}
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	fmt.Println("[")
	for i, c := range cases {
		if i > 0 {
			fmt.Print(",")
		}
		check(out.Encode(c))
	}
	fmt.Println("]")
}

func answer(environment *cel.Env, c oneCase) any {
	tree, issues := environment.Parse(c.Expression)
	if issues != nil && issues.Err() != nil {
		return "cannot be parsed"
	}
	program, err := environment.Program(tree, cel.EvalOptions(cel.OptOptimize))
	if err != nil {
		return "cannot be parsed"
	}
	value, _, err := program.Eval(whole(c.Object))
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
