// Tells what Helm's client knows of merging objects of Kubernetes' own kinds.
//
//	helm-patch schema > crates/helm-action/src/patch/schema.txt
//	helm-patch cases < cases.json     each {apiVersion, kind, original, modified, live} gets its "patch"
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"sort"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"
)

func main() {
	s := runtime.NewScheme()
	check(scheme.AddToScheme(s))
	check(apiextensionsv1.AddToScheme(s))
	switch os.Args[1] {
	case "schema":
		write(s)
	case "cases":
		answer(s)
	}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

type field struct {
	name, strategy, key string
	typ                 reflect.Type
}

// elem goes through pointers and lists.
func elem(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	return t
}

func fields(t reflect.Type) []field {
	var found []field
	switch t.Kind() {
	case reflect.Map:
		return []field{{"*", "", "", elem(t.Elem())}}
	case reflect.Struct:
	default:
		return nil
	}
	for i := 0; i < t.NumField(); i++ {
		f := t.Field(i)
		if !f.IsExported() {
			continue
		}
		parts := strings.Split(f.Tag.Get("json"), ",")
		inline := len(parts) > 1 && parts[1] == "inline" || f.Anonymous && parts[0] == ""
		if inline {
			found = append(found, fields(elem(f.Type))...)
			continue
		}
		if parts[0] == "" || parts[0] == "-" {
			continue
		}
		found = append(found, field{parts[0], f.Tag.Get("patchStrategy"), f.Tag.Get("patchMergeKey"), elem(f.Type)})
	}
	return found
}

func write(s *runtime.Scheme) {
	telling := map[reflect.Type]bool{} // a strategy can be reached from it
	all := map[reflect.Type][]field{}
	var visit func(t reflect.Type)
	visit = func(t reflect.Type) {
		if _, seen := all[t]; seen {
			return
		}
		all[t] = nil
		all[t] = fields(t)
		for _, f := range all[t] {
			visit(f.typ)
		}
	}
	kinds := map[string]reflect.Type{}
	for gvk, t := range s.AllKnownTypes() {
		_, isObject := reflect.New(t).Interface().(interface{ GetName() string })
		if gvk.Version == runtime.APIVersionInternal || !isObject {
			continue
		}
		kinds[gvk.GroupVersion().String()+" "+gvk.Kind] = t
		visit(t)
	}
	for changed := true; changed; {
		changed = false
		for t, fs := range all {
			for _, f := range fs {
				if !telling[t] && (f.strategy != "" || telling[f.typ]) {
					telling[t], changed = true, true
				}
			}
		}
	}
	numbers := map[reflect.Type]int{}
	var order []reflect.Type
	for t := range all {
		if telling[t] {
			order = append(order, t)
		}
	}
	sort.Slice(order, func(i, j int) bool { return name(order[i]) < name(order[j]) })
	for i, t := range order {
		numbers[t] = i
	}
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	// Types by their numbers: fields as name, strategy, merge key, type; a hyphen is nothing.
	for _, t := range order {
		var told []string
		for _, f := range all[t] {
			if f.strategy == "" && !telling[f.typ] {
				continue
			}
			child := "-"
			if telling[f.typ] {
				child = fmt.Sprint(numbers[f.typ])
			}
			told = append(told, fmt.Sprintf("%s:%s:%s:%s", f.name, or(f.strategy), or(f.key), child))
		}
		fmt.Fprintln(out, strings.Join(told, " "))
	}
	fmt.Fprintln(out)
	var names []string
	for k := range kinds {
		names = append(names, k)
	}
	sort.Strings(names)
	for _, k := range names {
		fmt.Fprintf(out, "%s %d\n", k, numbers[kinds[k]])
	}
}

func name(t reflect.Type) string { return t.PkgPath() + "." + t.Name() + " " + t.String() }

func or(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func answer(s *runtime.Scheme) {
	var cases []map[string]json.RawMessage
	check(json.NewDecoder(os.Stdin).Decode(&cases))
	for _, c := range cases {
		var apiVersion, kind string
		check(json.Unmarshal(c["apiVersion"], &apiVersion))
		check(json.Unmarshal(c["kind"], &kind))
		object, err := s.New(schema.FromAPIVersionAndKind(apiVersion, kind))
		check(err)
		meta, err := strategicpatch.NewPatchMetaFromStruct(object)
		check(err)
		patch, err := strategicpatch.CreateThreeWayMergePatch(c["original"], c["modified"], c["live"], meta, true)
		if err != nil {
			patch, _ = json.Marshal(err.Error())
		}
		c["patch"] = patch
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetIndent("", " ")
	check(encoder.Encode(cases))
}
