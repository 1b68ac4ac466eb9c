// Command oracle answers templates as the real Helm does, many of them in one process.
//
// It reads one JSON object a line from standard input and prints its answer as one line. "ask" is "template" (the
// default: the template as a file of a chart, rendered by Helm's own engine), "go" (plain text/template, no Helm
// around it) or "functions" (the names that Helm gives to templates). "helm" is "v4" (the default) or "v3". An answer
// has "output", "bytes" (base64, where the output is no UTF-8), "error", or "panic".
//
//	oracle record [-check] FILE...     fills in, or compares, the answers of files of cases
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"unicode/utf8"
)

type question struct {
	Ask      string   `json:"ask,omitempty"`
	Helm     string   `json:"helm,omitempty"`
	Template string   `json:"template"`
	Bytes    []byte   `json:"template_bytes,omitempty"`
	Values   string   `json:"values,omitempty"`
	Name     string   `json:"name,omitempty"`
	Options  []string `json:"options,omitempty"`
}

type answer struct {
	Output *string  `json:"output,omitempty"`
	Bytes  []byte   `json:"bytes,omitempty"`
	Error  string   `json:"error,omitempty"`
	Panic  string   `json:"panic,omitempty"`
	Names  []string `json:"names,omitempty"`
}

func main() {
	// Warnings are no part of an answer.
	log.SetOutput(io.Discard)
	slog.SetDefault(slog.New(slog.DiscardHandler))
	if len(os.Args) > 1 && os.Args[1] == "record" {
		if err := record(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if err := serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(in io.Reader, to io.Writer) error {
	out := bufio.NewWriter(to)
	defer out.Flush()
	buffered := bufio.NewReaderSize(in, 1<<20)
	read := json.NewDecoder(buffered)
	write := json.NewEncoder(out)
	write.SetEscapeHTML(false)
	for {
		var q question
		if err := read.Decode(&q); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if err := write.Encode(q.answer()); err != nil {
			return err
		}
		// The one who asks may wait for this answer before it asks the next question.
		if err := out.Flush(); err != nil {
			return err
		}
	}
}

func (q question) answer() (a answer) {
	defer func() {
		if problem := recover(); problem != nil {
			a = answer{Panic: fmt.Sprint(problem)}
		}
	}()
	if q.Bytes != nil {
		q.Template = string(q.Bytes)
	}
	var text string
	var err error
	switch q.Ask {
	case "", "template":
		text, err = q.render()
	case "go":
		text, err = q.execute()
	case "functions":
		return answer{Names: functions(q.Helm)}
	default:
		err = fmt.Errorf("unknown question %q", q.Ask)
	}
	switch {
	case err != nil:
		return answer{Error: err.Error()}
	case utf8.ValidString(text):
		return answer{Output: &text}
	default:
		return answer{Bytes: []byte(text)}
	}
}
