package compiler

import (
	"strings"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/scripting/source"
)

// blanks are the characters that may surround a fence and its tag. Other Unicode spaces are text.
const blanks = " \t\r\n"

type span struct{ start, end int }

// fence is a Markdown fence around a whole text: the lines that open and close it.
type fence struct{ opens, closes span }

// fenced returns the fence around a text; nil if there is none. No valid program starts like a
// fence: a line of three backticks is an empty template that is called with another, and three
// tildes cannot end a program.
func fenced(text string) *fence {
	start, end := len(text)-len(strings.TrimLeft(text, blanks)), len(strings.TrimRight(text, blanks))
	if start >= end {
		return nil
	}
	first, last := strings.IndexByte(text[start:end], '\n'), strings.LastIndexByte(text[:end], '\n')+1
	if first < 0 || last <= start {
		return nil
	}
	f := &fence{span{start, start + first}, span{last, end}}
	opening, closing := strings.Trim(text[f.opens.start:f.opens.end], blanks), strings.Trim(text[last:end], blanks)
	tag := strings.TrimLeft(opening, opening[:1])
	marks := opening[:len(opening)-len(tag)]
	if len(marks) < 3 || marks[0] != '`' && marks[0] != '~' || !isLanguageTag(strings.Trim(tag, blanks)) {
		return nil
	}
	if len(closing) < len(marks) || strings.Trim(closing, marks[:1]) != "" {
		return nil
	}
	return f
}

// isLanguageTag reports whether the tag of a fence is empty or names a language of agent code.
func isLanguageTag(tag string) bool {
	switch strings.ToLower(tag) {
	case "", "js", "javascript", "jsx", "mjs", "ts", "typescript", "tsx", "py", "python", "python3":
		return true
	}
	return false
}

// without returns the text with spaces instead of the two lines.
func (f *fence) without(text string) string {
	if f == nil {
		return text
	}
	space := func(s span) string { return strings.Repeat(" ", s.end-s.start) }
	return text[:f.opens.start] + space(f.opens) + text[f.opens.end:f.closes.start] + space(f.closes) + text[f.closes.end:]
}

func (f *fence) warnings(text diag.Text) diag.List {
	if f == nil {
		return nil
	}
	return diag.List{{
		Severity: diag.Warning, Code: source.FenceRemoved, Range: text.Range(f.opens.start, f.opens.end),
		Summary: "code needs no Markdown fence: removed the fence around it", Detail: "send the program alone",
	}}
}
