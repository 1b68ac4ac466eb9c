package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// record asks every case of the files (tests/cases/helm/README.md has their format) and writes the answers, or, with
// -check first, names the cases whose answer is another one.
func record(files []string) error {
	check := len(files) > 0 && files[0] == "-check"
	if check {
		files = files[1:]
	}
	stale := false
	for _, file := range files {
		before, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		after, err := answered(file, string(before))
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		switch {
		case after == string(before):
		case check:
			fmt.Printf("another answer: %s:%d\n", file, firstDifference(string(before), after))
			stale = true
		default:
			if err := os.WriteFile(file, []byte(after), 0o644); err != nil {
				return err
			}
		}
	}
	if stale {
		return errors.New("some answers are other ones")
	}
	return nil
}

// section is what stands below one line that begins with "--- ".
type section struct{ name, text string }

func answered(file, content string) (string, error) {
	path, err := filepath.Abs(file)
	if err != nil {
		return "", err
	}
	folder := filepath.Dir(path)
	values, err := os.ReadFile(filepath.Join(folder, "values.yaml"))
	if err != nil {
		return "", err
	}
	plain := filepath.Base(folder) == "go-template"
	head, rest, _ := strings.Cut("\n"+content, "\n=== ")
	out := bytes.NewBufferString(strings.TrimPrefix(head, "\n"))
	names := map[string]bool{}
	for index, one := range strings.Split(rest, "\n=== ") {
		if rest == "" {
			break
		}
		name, body, _ := strings.Cut(one, "\n")
		if names[name] {
			return "", fmt.Errorf("two cases are named %q", name)
		}
		names[name] = true
		sections := questions(strings.TrimRight(body, "\n"))
		if err := ask(plain, string(values), &sections); err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		if index > 0 || head != "" {
			out.WriteString("\n")
		}
		out.WriteString("=== " + name + "\n")
		for _, section := range sections {
			if section.name != "template" {
				out.WriteString("--- " + section.name + "\n")
			}
			out.WriteString(section.text + "\n")
		}
	}
	return out.String(), nil
}

// questions gives the sections that are asked, without answers.
func questions(body string) []section {
	sections := []section{{name: "template"}}
	for _, line := range strings.Split(body, "\n") {
		if name, ok := strings.CutPrefix(line, "--- "); ok && isSection(name) {
			sections = append(sections, section{name: name})
			continue
		}
		last := &sections[len(sections)-1]
		last.text += line + "\n"
	}
	sections = slices.DeleteFunc(sections, func(s section) bool {
		return strings.HasPrefix(s.name, "output") || strings.HasPrefix(s.name, "error")
	})
	for index := range sections {
		sections[index].text = strings.TrimSuffix(sections[index].text, "\n")
	}
	return sections
}

func isSection(name string) bool {
	name = strings.TrimSuffix(strings.TrimSuffix(name, " v3"), " quoted")
	return slices.Contains([]string{"values", "options", "output", "error"}, name)
}

func ask(plain bool, values string, sections *[]section) error {
	q := question{Values: values}
	for _, section := range *sections {
		switch section.name {
		case "template":
			q.Template = section.text
		case "values":
			q.Values = section.text + "\n"
		case "options":
			q.Options = strings.Fields(section.text)
		}
	}
	if plain {
		q.Ask = "go"
		return add(sections, q.answer(), "")
	}
	four := q.answer()
	q.Helm = "v3"
	three := q.answer()
	if err := add(sections, four, ""); err != nil {
		return err
	}
	if text(four) == text(three) && four.Error == three.Error {
		return nil
	}
	return add(sections, three, " v3")
}

func text(a answer) string {
	if a.Output != nil {
		return *a.Output
	}
	return string(a.Bytes)
}

func add(sections *[]section, a answer, suffix string) error {
	if a.Panic != "" {
		return fmt.Errorf("panic: %s", a.Panic)
	}
	kind, content := "output", text(a)
	if a.Error != "" {
		kind, content = "error", a.Error
	}
	if !legible(content) {
		kind, content = kind+" quoted", quote(content)
	}
	*sections = append(*sections, section{kind + suffix, content})
	return nil
}

// legible tells whether a reader, and an editor that drops spaces at the end of lines, leave the text as it is.
func legible(text string) bool {
	if !utf8.ValidString(text) {
		return false
	}
	for _, line := range strings.Split(text, "\n") {
		if strings.HasSuffix(line, " ") || strings.HasSuffix(line, "\t") || strings.HasPrefix(line, "=== ") || strings.HasPrefix(line, "--- ") {
			return false
		}
	}
	hidden := func(r rune) bool { return !unicode.IsPrint(r) && r != '\n' && r != '\t' }
	return text != "" && !strings.HasSuffix(text, "\n") && !strings.HasPrefix(text, "\n") && !strings.ContainsFunc(text, hidden)
}

// quote writes one line in quotes, with \n, \t, \", \\ and \xNN for every byte that is not printable ASCII.
func quote(text string) string {
	var out strings.Builder
	out.WriteByte('"')
	for index := range len(text) {
		switch b := text[index]; {
		case b == '\n':
			out.WriteString(`\n`)
		case b == '\t':
			out.WriteString(`\t`)
		case b == '"' || b == '\\':
			out.WriteByte('\\')
			out.WriteByte(b)
		case b < ' ' || b >= 0x7f:
			fmt.Fprintf(&out, `\x%02x`, b)
		default:
			out.WriteByte(b)
		}
	}
	out.WriteByte('"')
	return out.String()
}

func firstDifference(a, b string) int {
	left, right := strings.Split(a, "\n"), strings.Split(b, "\n")
	for index := range min(len(left), len(right)) {
		if left[index] != right[index] {
			return index + 1
		}
	}
	return min(len(left), len(right))
}
