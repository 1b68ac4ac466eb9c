package main

import (
	"math/rand"
	"strings"
)

var (
	names     = []string{"a", "b", "c", "_x1", "empty", "path", "missing", "none", "n", "m", "é", "1"}
	operators = []string{
		"", "^", "^^", ",", ",,", ",^", "^,", ":-", ":=", ":?", ":+", "=", "-", "?", "+", ":", "::", "#", "##", "###",
		"%", "%%", "%%%", "/", "//", "/#", "/%", "@", "!",
	}
	values = []string{
		"", "x", "abc", "ABC", "aBcAbC", "a/b/c", "/usr/local/lib.so.1", "naïve", "ÉÀß", "日本語", "𝒳y", "-1", "2", "3",
		"-100", "99", "[a-c]", "*", "?", "\\", "a b", "$", "${a}", "}", "ǆ", "İıſ", "ᾀ", "aaa", "*.so",
	}
	pieces = []string{
		"a", "b", "/", "//", "\\/", "\\\\", "\\", "$", "$$", "$${", "${", "}", "{", ":", "::", "#", "%", "*", "?", "[",
		"]", "[a-c]", "[^a]", "-", "=", "é", "本", "𝒳", " ", "\n", "1", "-1", "0", "2", "99999999999999999999", "+1",
		"^", ",", ".", "*.", ".*", "*/", "/*", "\x00",
	}
)

func pick(source *rand.Rand, from []string) string { return from[source.Intn(len(from))] }

func makeUp(source *rand.Rand) question {
	q := question{Variables: map[string]string{}, Strict: source.Intn(2) == 0}
	for _, name := range names {
		if name != "missing" && source.Intn(8) != 0 {
			q.Variables[name] = pick(source, values)
		}
	}
	q.Variables["empty"] = ""
	var text strings.Builder
	for range 1 + source.Intn(3) {
		words(source, &text, 3)
		function(source, &text, 3)
	}
	words(source, &text, 2)
	q.Template = mutated(source, text.String())
	return q
}

func words(source *rand.Rand, text *strings.Builder, most int) {
	for range source.Intn(most + 1) {
		piece := pick(source, pieces)
		if (piece == "${" || piece == "\x00") && source.Intn(10) != 0 {
			continue
		}
		text.WriteString(piece)
	}
}

// function writes one substitution, three times in four one that parses.
func function(source *rand.Rand, text *strings.Builder, depth int) {
	if source.Intn(4) == 0 {
		anything(source, text, depth)
		return
	}
	text.WriteString("${")
	name := pick(source, names)
	switch source.Intn(7) {
	case 0:
		text.WriteString(pick(source, []string{"", "#"}) + name)
	case 1:
		text.WriteString(name + pick(source, []string{"^", "^^", ",", ",,"}))
	case 2:
		text.WriteString(name + pick(source, []string{"=", ":=", ":-", ":+", ":?"}))
		for range source.Intn(4) {
			one(source, text, depth)
		}
	case 3, 4:
		text.WriteString(name + pick(source, []string{"#", "##", "%", "%%"}))
		one(source, text, depth)
	case 5:
		text.WriteString(name + ":")
		offset(source, text)
		if source.Intn(2) == 0 {
			text.WriteString(":")
			offset(source, text)
		}
	case 6:
		text.WriteString(name + pick(source, []string{"/", "//", "/#", "/%"}))
		one(source, text, depth)
		text.WriteString("/")
		if source.Intn(4) != 0 {
			one(source, text, depth)
		}
	}
	text.WriteString("}")
}

// one writes an argument that is text or a substitution, not both.
func one(source *rand.Rand, text *strings.Builder, depth int) {
	if depth > 0 && source.Intn(4) == 0 {
		function(source, text, depth-1)
		return
	}
	for range 1 + source.Intn(3) {
		text.WriteString(pick(source, []string{"a", "b", "c", "B", "*", "?", ".", "[a-c]", "\\/", "é", "本", "a", " "}))
	}
}

func offset(source *rand.Rand, text *strings.Builder) {
	text.WriteString(pick(source, []string{"0", "1", "2", "3", "5", "+1", "x", "${n}", "${m}", "99", "007", " -1"}))
}

// anything writes names, operators and arguments that need not fit.
func anything(source *rand.Rand, text *strings.Builder, depth int) {
	text.WriteString("${")
	if source.Intn(12) == 0 {
		text.WriteString("#")
	}
	text.WriteString(pick(source, names))
	operator := pick(source, operators)
	text.WriteString(operator)
	argument(source, text, depth)
	if strings.HasPrefix(operator, "/") || source.Intn(6) == 0 {
		text.WriteString("/")
		argument(source, text, depth)
	}
	if strings.HasPrefix(operator, ":") && source.Intn(2) == 0 {
		text.WriteString(":")
		argument(source, text, depth)
	}
	text.WriteString("}")
}

func argument(source *rand.Rand, text *strings.Builder, depth int) {
	switch choice := source.Intn(8); {
	case choice == 0:
	case choice < 4 && depth > 0:
		function(source, text, depth-1)
	case choice == 4:
		words(source, text, 2)
		function(source, text, max(depth-1, 0))
		words(source, text, 1)
	default:
		words(source, text, 3)
	}
}

// mutated takes out or doubles a byte now and then: most of what people get wrong.
func mutated(source *rand.Rand, text string) string {
	if source.Intn(5) != 0 || len(text) == 0 {
		return text
	}
	at := source.Intn(len(text))
	if text[at] >= 0x80 {
		return text
	}
	if source.Intn(2) == 0 {
		return text[:at] + text[at+1:]
	}
	return text[:at] + string(text[at]) + text[at:]
}
