package toml

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// maxPrinted is the maximum length of printed text in bytes. Headers repeat the names
// of all parent tables, so that the output can be many times longer than the input.
const maxPrinted = 16 << 20

// ErrLong is the error for output longer than [maxPrinted].
var ErrLong = errors.New("the text is longer than 16 MiB")

// Reasons why a value has no TOML form.
var (
	errNull  = errors.New("TOML has no null; remove the member")
	errTable = errors.New("a TOML text is a table: an object is needed")
)

// Print returns a JSON object as TOML, with members sorted by name. Empty text counts
// as an empty object. The error names what TOML cannot express, or is [ErrLong].
func Print(text []byte) (string, error) {
	if len(text) == 0 {
		return "", errTable
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		return "", fmt.Errorf("read JSON: %w", err)
	}
	table, ok := v.(map[string]any)
	if !ok {
		return "", errTable
	}
	p := printer{}
	if err := p.table(table, ""); err != nil {
		return "", err
	}
	if len(p.out) > maxPrinted {
		return "", ErrLong
	}
	return string(p.out), nil
}

type printer struct{ out []byte }

// table writes the members of a table: first those on their own lines, then tables and
// lists of tables.
func (p *printer) table(table map[string]any, path string) error {
	names := slices.Sorted(maps.Keys(table))
	for _, name := range names {
		if _, inner := table[name].(map[string]any); inner || tables(table[name]) != nil {
			continue
		}
		p.out = append(append(p.out, key(name)...), " = "...)
		if err := p.value(table[name]); err != nil {
			return err
		}
		p.out = append(p.out, '\n')
	}
	for _, name := range names {
		header := path + key(name)
		if inner, ok := table[name].(map[string]any); ok {
			if err := p.headed("["+header+"]", header, inner); err != nil {
				return err
			}
		}
		for _, inner := range tables(table[name]) {
			if err := p.headed("[["+header+"]]", header, inner); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *printer) headed(line, path string, table map[string]any) error {
	if len(p.out) > 0 {
		p.out = append(p.out, '\n')
	}
	p.out = append(append(p.out, line...), '\n')
	if len(p.out) > maxPrinted {
		return ErrLong
	}
	return p.table(table, path+".")
}

// tables returns the tables of a list that contains only tables, otherwise nil.
func tables(v any) []map[string]any {
	list, _ := v.([]any)
	var found []map[string]any
	for _, item := range list {
		table, ok := item.(map[string]any)
		if !ok {
			return nil
		}
		found = append(found, table)
	}
	return found
}

// value writes a value on one line.
func (p *printer) value(v any) error {
	switch v := v.(type) {
	case nil:
		return errNull
	case string:
		p.out = append(p.out, quoted(v)...)
	case json.Number:
		p.out = append(p.out, number(v.String())...)
	case []any:
		return p.list("[", "]", len(v), func(i int) error { return p.value(v[i]) })
	case map[string]any:
		names := slices.Sorted(maps.Keys(v))
		return p.list("{", "}", len(v), func(i int) error {
			p.out = append(append(p.out, key(names[i])...), " = "...)
			return p.value(v[names[i]])
		})
	default:
		p.out = fmt.Append(p.out, v)
	}
	return nil
}

func (p *printer) list(open, end string, n int, item func(int) error) error {
	p.out = append(p.out, open...)
	for i := range n {
		if i > 0 {
			p.out = append(p.out, ", "...)
		}
		if err := item(i); err != nil {
			return err
		}
	}
	p.out = append(p.out, end...)
	return nil
}

// number writes whole numbers beyond 64-bit integers as floats.
func number(text string) string {
	if len(text) > 18 && !strings.ContainsAny(text, ".eE") {
		return text + ".0"
	}
	return text
}

var bare = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

func key(name string) string {
	if bare.MatchString(name) {
		return name
	}
	return quoted(name)
}

// quoted writes a basic string.
func quoted(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range text {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteRune(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\t':
			b.WriteString(`\t`)
		case unicode.IsPrint(c):
			b.WriteRune(c)
		default:
			fmt.Fprintf(&b, `\U%08X`, c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
