// Package toml converts untrusted TOML to JSON values and back. It is the only user of
// the TOML library. A check before the library bounds its recursion and its work per
// key.
//
// Tables are printed by hand: the encoder of the library copies the names of all parent
// tables for each value, which is quadratic, and silently drops null.
package toml

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
)

// MaxText is the maximum length of a text in bytes.
const MaxText = 1 << 20

// Parse returns the table in a text, made of bool, float64, string, []any and
// map[string]any. Errors state the reason and the line, and contain none of the text.
func Parse(text string) (table map[string]any, err error) {
	if err := gate(text); err != nil {
		return nil, err
	}
	defer func() {
		if recover() != nil {
			table, err = nil, errors.New("the text cannot be read as TOML")
		}
	}()
	var read map[string]any
	if _, err := toml.Decode(text, &read); err != nil {
		return nil, lineError(err)
	}
	v, err := value(read)
	if err != nil {
		return nil, err
	}
	return v.(map[string]any), nil
}

// lineError converts an error of the library, which may quote the text: only the line is
// used.
func lineError(err error) error {
	if parse, ok := err.(toml.ParseError); ok {
		return fmt.Errorf("line %d: the text is not TOML", parse.Position.Line)
	}
	return errors.New("the text is not TOML")
}

// value converts a value of the library to a JSON value.
func value(v any) (any, error) {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			read, err := value(member)
			if err != nil {
				return nil, err
			}
			v[name] = read
		}
		return v, nil
	case []map[string]any:
		list := make([]any, len(v))
		for i, table := range v {
			list[i] = table
		}
		return value(list)
	case []any:
		for i, item := range v {
			read, err := value(item)
			if err != nil {
				return nil, err
			}
			v[i] = read
		}
		return v, nil
	case int64:
		return float64(v), nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, errors.New("a number that JSON cannot hold: inf or nan")
		}
		return v, nil
	case time.Time:
		return date(v), nil
	}
	return v, nil
}

// date returns a date as text, with the precision of the input.
func date(t time.Time) string {
	switch t.Location().String() {
	case "datetime-local":
		return t.Format("2006-01-02T15:04:05.999999999")
	case "date-local":
		return t.Format(time.DateOnly)
	case "time-local":
		return t.Format("15:04:05.999999999")
	}
	return t.Format(time.RFC3339Nano)
}

// Bounds of the check: nested brackets, and parts of a key, since the library traverses
// all parts for each of them.
const (
	maxDepth = 100
	maxParts = 16
)

// gate rejects text that is too long or nested too deeply. After the first syntax error
// it may see another structure than the library, which stops there.
func gate(text string) error {
	if len(text) > MaxText {
		return errors.New("the text is longer than 1 MiB")
	}
	depth, parts := 0, 1
	for at := 0; at < len(text); {
		switch text[at] {
		case '#':
			at += lineLength(text[at:])
			continue
		case '"', '\'':
			at += stringLength(text[at:])
			continue
		case '.':
			parts++
		case '[', '{':
			depth, parts = depth+1, 1
		case ']', '}':
			depth, parts = max(0, depth-1), 1
		case '=', ',', '\n':
			parts = 1
		}
		switch {
		case depth > maxDepth:
			return refused(text, at, "nested deeper than 100")
		case parts > maxParts:
			return refused(text, at, "a key of more than 16 parts")
		}
		at++
	}
	return nil
}

func refused(text string, at int, message string) error {
	return fmt.Errorf("line %d: %s", 1+strings.Count(text[:at], "\n"), message)
}

func lineLength(text string) int {
	if n := strings.IndexByte(text, '\n'); n >= 0 {
		return n
	}
	return len(text)
}

// stringLength returns the length of the string at the start of the text.
func stringLength(text string) int {
	quote := text[:1]
	end, lines := quote, false
	if strings.HasPrefix(text, strings.Repeat(quote, 3)) {
		end, lines = strings.Repeat(quote, 3), true
	}
	for at := len(end); at < len(text); at++ {
		switch {
		case text[at] == '\\' && quote == `"`:
			at++
		case text[at] == '\n' && !lines:
			return at
		case strings.HasPrefix(text[at:], end):
			for at += len(end); lines && at < len(text) && text[at] == quote[0]; at++ {
			}
			return at
		}
	}
	return len(text)
}
