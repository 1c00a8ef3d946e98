package yaml

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/mcpd/mcpd/internal/base/jsontext"
)

// safe matches words that every YAML reader takes as text.
var safe = regexp.MustCompile(`^[A-Za-z_/][A-Za-z0-9_./@%+=-]*( [A-Za-z0-9_./@%+=(-][A-Za-z0-9_./@%+=()-]*)*$`)

// maxImplicitKey is the maximum length of a key on one line: 1024 characters (YAML
// 1.2.2, 7.4.2), which are at least as many bytes.
const maxImplicitKey = 1024

// Append appends a value as a document in block style: nil, bool,
// [encoding/json.Number], string, []any and *[Map]. It stops soon after [MaxPrinted].
func Append(out []byte, v any) []byte {
	out = appendValue(out, v, 0, false)
	return append(out, '\n')
}

// appendValue writes a value with an indent. key means that it follows a key or a dash.
func appendValue(out []byte, v any, indent int, key bool) []byte {
	switch v := v.(type) {
	case *Map:
		for i, name := range v.Names {
			if len(out) > MaxPrinted {
				return out
			}
			if i > 0 || key {
				out = newLine(out, indent)
			}
			out = appendNote(out, v, i, indent)
			out = appendKey(out, name, indent)
			out = appendMember(out, v.Values[i], indent)
		}
		if len(v.Names) > 0 {
			return out
		}
		return append(space(out, key), "{}"...)
	case []any:
		for i, item := range v {
			if len(out) > MaxPrinted {
				return out
			}
			if i > 0 || key {
				out = newLine(out, indent)
			}
			out = append(out, '-')
			out = appendItem(out, item, indent)
		}
		if len(v) > 0 {
			return out
		}
		return append(space(out, key), "[]"...)
	case string:
		return appendText(space(out, key), v, indent)
	case nil:
		return append(space(out, key), "null"...)
	}
	return fmt.Append(space(out, key), v)
}

// appendKey writes a key and its colon: on one line, or as an explicit key if readers
// would not recognize it (YAML 1.2.2, 8.2.2).
func appendKey(out []byte, name string, indent int) []byte {
	start := len(out)
	out = appendText(out, name, -1)
	if len(out)-start > maxImplicitKey {
		out = slices.Insert(out, start, '?', ' ')
		out = newLine(out, indent)
	}
	return append(out, ':')
}

// appendNote writes the comment of a member, if any, and starts the next line. Line
// ends in a comment start another comment line, so that nothing can end the comment.
func appendNote(out []byte, m *Map, i, indent int) []byte {
	if i >= len(m.Notes) || m.Notes[i] == "" {
		return out
	}
	for line := range strings.SplitSeq(m.Notes[i], "\n") {
		out = append(out, "# "...)
		for _, c := range line {
			if !printable(c) {
				c = ' '
			}
			out = append(out, string(c)...)
		}
		out = newLine(out, indent)
	}
	return out
}

func space(out []byte, key bool) []byte {
	if key {
		return append(out, ' ')
	}
	return out
}

func newLine(out []byte, indent int) []byte {
	return append(append(out, '\n'), strings.Repeat(" ", indent)...)
}

// appendMember writes the value after a key. Lists are not indented.
func appendMember(out []byte, v any, indent int) []byte {
	if _, list := v.([]any); list {
		return appendValue(out, v, indent, true)
	}
	return appendValue(out, v, indent+2, true)
}

// appendItem writes the value after a dash, on the same line.
func appendItem(out []byte, v any, indent int) []byte {
	switch v := v.(type) {
	case *Map:
		if len(v.Names) > 0 {
			return appendValue(append(out, ' '), v, indent+2, false)
		}
	case []any:
		if len(v) > 0 {
			return appendValue(append(out, ' '), v, indent+2, false)
		}
	}
	return appendValue(out, v, indent+2, true)
}

// appendText writes text so that every YAML reader reads the same: plain, as a block
// with an indent unless that is negative, or quoted.
func appendText(out []byte, text string, indent int) []byte {
	switch {
	case safe.MatchString(text) && !meant(text):
		return append(out, text...)
	case indent > 0 && blocky(text):
		out = append(out, '|')
		body, ended := strings.CutSuffix(text, "\n")
		if !ended {
			out = append(out, '-')
		}
		for line := range strings.SplitSeq(body, "\n") {
			if line == "" {
				out = append(out, '\n')
				continue
			}
			out = append(newLine(out, indent), line...)
		}
		return out
	}
	return appendQuoted(out, text)
}

// meant reports whether some YAML version gives a word a special meaning.
func meant(text string) bool {
	switch strings.ToLower(text) {
	case "null", "true", "false", "yes", "no", "on", "off", "y", "n", "nan", "inf":
		return true
	}
	return false
}

// blocky reports whether text can be written as a block.
func blocky(text string) bool {
	body := strings.TrimSuffix(text, "\n")
	if !strings.Contains(body, "\n") || strings.HasSuffix(body, "\n") || strings.HasPrefix(text, " ") || strings.HasPrefix(text, "\n") {
		return false
	}
	return !strings.ContainsFunc(text, func(c rune) bool { return c != '\n' && !printable(c) })
}

// printable reports whether a character may be unescaped in YAML.
func printable(c rune) bool { return unicode.IsPrint(c) }

func appendQuoted(out []byte, text string) []byte {
	quoted, _ := jsontext.Marshal(text) // a string always encodes
	for _, c := range string(quoted) {
		switch {
		case printable(c):
			out = append(out, string(c)...)
		case c > 0xFFFF:
			out = fmt.Appendf(out, `\U%08x`, c)
		default:
			out = fmt.Appendf(out, `\u%04x`, c)
		}
	}
	return out
}

// MaxPrinted is the maximum length of a printed document in bytes. Indents can make it
// many times longer than its input.
const MaxPrinted = 16 << 20

// ErrLong is the error for a document longer than [MaxPrinted].
var ErrLong = errors.New("the document is longer than 16 MiB")

// Print returns JSON as a YAML document in block style. It calls step for every value.
// The error is the one of step, or [ErrLong].
func Print(text []byte, step func() error) (string, error) {
	tokens := json.NewDecoder(bytes.NewReader(text))
	tokens.UseNumber()
	v, err := ordered(tokens, step)
	if err != nil {
		return "", err
	}
	out := Append(nil, v)
	if len(out) > MaxPrinted {
		return "", ErrLong
	}
	return string(out), nil
}

// ordered reads one value and keeps the order of members.
func ordered(tokens *json.Decoder, step func() error) (any, error) {
	if err := step(); err != nil {
		return nil, err
	}
	token, err := tokens.Token()
	if err != nil {
		return nil, fmt.Errorf("read JSON: %w", err)
	}
	switch token {
	case json.Delim('['):
		list := []any{}
		for tokens.More() {
			v, err := ordered(tokens, step)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err = tokens.Token()
		return list, err
	case json.Delim('{'):
		m := &Map{}
		for tokens.More() {
			name, err := tokens.Token()
			if err != nil {
				return nil, fmt.Errorf("read JSON: %w", err)
			}
			v, err := ordered(tokens, step)
			if err != nil {
				return nil, err
			}
			m.Names, m.Values = append(m.Names, fmt.Sprint(name)), append(m.Values, v)
		}
		_, err = tokens.Token()
		return m, err
	}
	return token, nil
}
