package sqldb

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/mcpd/mcpd/internal/base/truncate"
	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/scripting"
)

// MaxRowsSize bounds all rows of a result, in bytes.
const MaxRowsSize = 4 << 20

type Rows struct {
	name    string
	maxRows int
	size    int
	redact  func([]byte) []byte

	Columns []string            `json:"columns"`
	Rows    [][]json.RawMessage `json:"rows"`
	Changes int64               `json:"changes"`
}

// SetColumns sets the columns. Duplicate names are an error, because rows become objects.
func (r *Rows) SetColumns(columns []string) error {
	taken := map[string]bool{}
	for _, name := range columns {
		if taken[name] {
			return NewHostError(scripting.Invalid, r.name, "two columns have the name %s; rename one with AS", quoteName(name))
		}
		taken[name] = true
		r.size += len(name)
	}
	r.Columns, r.Rows = append([]string{}, columns...), [][]json.RawMessage{}
	return nil
}

// valueOverhead is the size of each value in addition to its bytes.
const valueOverhead = 8

// CheckSize returns an error if a row with this size does not fit.
func (r *Rows) CheckSize(size int) error {
	r.size += size + valueOverhead*len(r.Columns)
	switch {
	case len(r.Rows) >= r.maxRows:
		return NewHostError(scripting.TooLarge, r.name, "there are more than %d rows (max_rows); write a LIMIT, or raise max_rows", r.maxRows)
	case r.size > MaxRowsSize:
		return NewHostError(scripting.TooLarge, r.name, "the rows have more than 4 MiB; select fewer rows or columns")
	}
	return nil
}

// Add adds a row of nil, bool, int64, float64, string and []byte.
func (r *Rows) Add(values []any) {
	row := make([]json.RawMessage, len(values))
	for i, v := range values {
		row[i] = jsonOf(v, r.redact)
	}
	r.Rows = append(r.Rows, row)
}

// jsonOf returns a value as JSON. Integers that scripts cannot represent, NaN and infinities
// become strings, and bytes become {"base64": text}.
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

// MockAnswer answers a query with the JSON of a mock: a list of objects as rows, or { changes
// }.
func MockAnswer(g grant.SQL, r *Query, content []byte) ([]byte, error) {
	a := &Rows{name: r.Name, maxRows: g.MaxRows, redact: func(b []byte) []byte { return b }}
	var err error
	switch r.Method {
	case "query":
		err = a.readMock(content)
	case "exec":
		var told struct {
			Changes *int64 `json:"changes"`
		}
		if json.Unmarshal(content, &told) != nil || told.Changes == nil {
			return nil, NewHostError(scripting.Unavailable, r.Name, "the mock of exec must be { changes = … }")
		}
		a.Changes = *told.Changes
	}
	if err != nil {
		return nil, err
	}
	return a.encode(r.Method)
}

// readMock reads the rows of a mock. The columns are the members of the first row.
func (r *Rows) readMock(content []byte) error {
	const form = "the mock of query must be a list of objects with the same members: strings, numbers, booleans and null"
	d := json.NewDecoder(bytes.NewReader(content))
	var columns []string
	rows, err := readMockRows(d)
	for i, row := range rows {
		if i == 0 {
			columns = row.names
			if err := r.SetColumns(columns); err != nil {
				return err
			}
		}
		values := make([]any, len(columns))
		if len(row.values) != len(columns) {
			return NewHostError(scripting.Unavailable, r.name, form)
		}
		for j, name := range columns {
			v, ok := row.values[name]
			if !ok {
				return NewHostError(scripting.Unavailable, r.name, form)
			}
			values[j] = v
		}
		if err := r.CheckSize(len(content) / len(rows)); err != nil {
			return err
		}
		r.Add(values)
	}
	if err != nil {
		return NewHostError(scripting.Unavailable, r.name, form)
	}
	if columns == nil {
		return r.SetColumns([]string{})
	}
	return nil
}

// mockRow is a row of a mock: its members, and their names in order.
type mockRow struct {
	names  []string
	values map[string]any
}

// errRow reports a row that is not an object of plain values.
var errRow = errors.New("a row is an object of plain values")

// readMockRows decodes a list of objects of plain values.
func readMockRows(d *json.Decoder) (rows []mockRow, err error) {
	var list []json.RawMessage
	if err := d.Decode(&list); err != nil {
		return nil, err
	}
	for _, item := range list {
		row := mockRow{values: map[string]any{}}
		inner := json.NewDecoder(bytes.NewReader(item))
		if t, err := inner.Token(); err != nil || t != json.Delim('{') {
			return nil, errRow
		}
		for inner.More() {
			name, err := inner.Token()
			if err != nil {
				return nil, err
			}
			v, err := inner.Token()
			if _, nested := v.(json.Delim); nested || err != nil {
				return nil, errRow
			}
			if x, ok := v.(float64); ok && x == math.Trunc(x) && math.Abs(x) < 1<<53 {
				v = int64(x)
			}
			row.names = append(row.names, name.(string))
			row.values[name.(string)] = v
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// maxQuotedName bounds names that a message repeats, in bytes. Longer ones are not repeated: a
// redactor would not recognize part of a secret.
const maxQuotedName = 200

// NewHostError returns an error for the script. given is the statement or path as the script
// passed it.
func NewHostError(code, given, format string, args ...any) *scripting.HostError {
	message := fmt.Sprintf(format, args...)
	if given != "" {
		message = quoteName(given) + ": " + message
	}
	return &scripting.HostError{Code: code, Message: message}
}

func quoteName(name string) string {
	if len(name) > maxQuotedName {
		return fmt.Sprintf("a name of %d bytes", len(name))
	}
	return strings.ToValidUTF8(name, "�")
}

// Rejection formats the message of a database that rejects a statement. It may contain values.
func Rejection(database, message string) string {
	return database + " refuses the statement: " + truncate.Text(strings.ToValidUTF8(message, "�"), truncate.Least)
}

// explain converts an error to an error for the script.
func explain(ctx context.Context, driver Driver, r *Query, err error) error {
	var known *scripting.HostError
	given := cmp.Or(r.Name, r.given)
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return NewHostError(scripting.TimedOut, given, "the database did not respond in time")
	case ctx.Err() != nil:
		return NewHostError(scripting.Unavailable, given, "the call was cancelled")
	}
	if code, text := driver.Explain(err); text != "" {
		return NewHostError(code, given, "%s", text)
	}
	return NewHostError(scripting.Unavailable, given, "the database cannot be used now")
}
