// Answers templates with the library that Flux substitutes variables with, so that ours can be compared with it.
//
// Reads one JSON object a line from standard input, or, with -random N, makes N of them up, and prints each with
// the answer: "output", "bytes" (base64, when the output is not UTF-8), "error", or "panic" when the library does.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand"
	"os"
	"unicode/utf8"

	"github.com/fluxcd/pkg/envsubst"
)

type question struct {
	Template  string            `json:"template"`
	Variables map[string]string `json:"variables,omitempty"`
	Strict    bool              `json:"strict,omitempty"`
	Output    *string           `json:"output,omitempty"`
	Bytes     []byte            `json:"bytes,omitempty"`
	Error     string            `json:"error,omitempty"`
	Panic     string            `json:"panic,omitempty"`
}

func (q *question) answer() {
	q.Output, q.Bytes, q.Error, q.Panic = nil, nil, "", ""
	defer func() {
		if problem := recover(); problem != nil {
			q.Panic = fmt.Sprint(problem)
		}
	}()
	text, err := envsubst.Eval(q.Template, func(name string) (string, bool) {
		value, exists := q.Variables[name]
		return value, exists || !q.Strict
	})
	switch {
	case err != nil:
		q.Error = err.Error()
	case utf8.ValidString(text):
		q.Output = &text
	default:
		q.Bytes = []byte(text)
	}
}

func main() {
	random := flag.Int("random", 0, "make up this many templates instead of reading them")
	seed := flag.Int64("seed", 1, "where the made-up templates start")
	flag.Parse()
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	print := json.NewEncoder(out)
	print.SetEscapeHTML(false)
	if *random > 0 {
		source := rand.New(rand.NewSource(*seed))
		for range *random {
			q := makeUp(source)
			q.answer()
			must(print.Encode(q))
		}
		return
	}
	read := json.NewDecoder(bufio.NewReader(os.Stdin))
	for read.More() {
		var q question
		must(read.Decode(&q))
		q.answer()
		must(print.Encode(q))
	}
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
