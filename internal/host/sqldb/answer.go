package sqldb

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"github.com/mcpd/mcpd/scripting"
)

// MaxAnswer bounds all rows of an answer, in bytes.
const MaxAnswer = 4 << 20

// Answer is what a statement answers with.
type Answer struct {
	name    string
	maxRows int
	size    int
	redact  func([]byte) []byte

	Columns []string            `json:"columns"`
	Rows    [][]json.RawMessage `json:"rows"`
	Changes int64               `json:"changes"`
}

// Begin names the columns. Two of one name cannot both be members of a row.
func (a *Answer) Begin(columns []string) error {
	taken := map[string]bool{}
	for _, name := range columns {
		if taken[name] {
			return Fault(scripting.Invalid, a.name, "two columns are called %s; give one another name with AS", shown(name))
		}
		taken[name] = true
		a.size += len(name)
	}
	a.Columns, a.Rows = append([]string{}, columns...), [][]json.RawMessage{}
	return nil
}

// cell is what every value takes beside its bytes.
const cell = 8

// Room refuses a row that the answer has no room for: its values take so many bytes.
func (a *Answer) Room(size int) error {
	a.size += size + cell*len(a.Columns)
	switch {
	case len(a.Rows) >= a.maxRows:
		return Fault(scripting.TooLarge, a.name, "there are more than %d rows (max_rows); write a LIMIT, or raise max_rows", a.maxRows)
	case a.size > MaxAnswer:
		return Fault(scripting.TooLarge, a.name, "the rows take more than 4 MiB; ask for fewer rows or columns")
	}
	return nil
}

// Add adds a row of nil, bool, int64, float64, string and []byte.
func (a *Answer) Add(values []any) {
	row := make([]json.RawMessage, len(values))
	for i, v := range values {
		row[i] = jsonOf(v, a.redact)
	}
	a.Rows = append(a.Rows, row)
}

// jsonOf returns a value as JSON: whole numbers that a script cannot hold, and what
// is no number, are text, and bytes are {"base64": text}.
func jsonOf(v any, redact func([]byte) []byte) json.RawMessage {
	switch x := v.(type) {
	case int64:
		if x > 1<<53-1 || x < -(1<<53-1) {
			v = strconv.FormatInt(x, 10)
		}
	case float64:
		switch {
		case math.IsNaN(x):
			v = "NaN"
		case math.IsInf(x, 1):
			v = "Infinity"
		case math.IsInf(x, -1):
			v = "-Infinity"
		}
	case string:
		v = strings.ToValidUTF8(string(redact([]byte(x))), "�")
	case []byte:
		v = map[string]string{"base64": base64.StdEncoding.EncodeToString(redact(x))}
	}
	// Plain data always encodes.
	encoded, _ := json.Marshal(v)
	return encoded
}
