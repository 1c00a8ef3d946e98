package sqldb

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"

	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/scripting"
)

// Mocked answers a request with the JSON of a mock: a list of objects that are
// the rows, or { changes }. It is what tests get in the place of a database.
func Mocked(g grant.SQL, r *Request, content []byte) ([]byte, error) {
	a := &Answer{name: r.Name, maxRows: g.MaxRows, redact: func(b []byte) []byte { return b }}
	var err error
	switch r.Method {
	case "query":
		err = a.pretend(content)
	case "exec":
		var told struct {
			Changes *int64 `json:"changes"`
		}
		if json.Unmarshal(content, &told) != nil || told.Changes == nil {
			return nil, Fault(scripting.Unavailable, r.Name, "the mock of exec must be { changes = … }")
		}
		a.Changes = *told.Changes
	}
	if err != nil {
		return nil, err
	}
	return a.encoded(r.Method)
}

// pretend takes in the rows of a mock, whose columns are those of its first row.
func (a *Answer) pretend(content []byte) error {
	const form = "the mock of query must be a list of objects with the same members: strings, numbers, booleans and null"
	d := json.NewDecoder(bytes.NewReader(content))
	var columns []string
	rows, err := membersOf(d)
	for i, row := range rows {
		if i == 0 {
			columns = row.names
			if err := a.Begin(columns); err != nil {
				return err
			}
		}
		values := make([]any, len(columns))
		if len(row.values) != len(columns) {
			return Fault(scripting.Unavailable, a.name, form)
		}
		for j, name := range columns {
			v, ok := row.values[name]
			if !ok {
				return Fault(scripting.Unavailable, a.name, form)
			}
			values[j] = v
		}
		if err := a.Room(len(content) / len(rows)); err != nil {
			return err
		}
		a.Add(values)
	}
	if err != nil {
		return Fault(scripting.Unavailable, a.name, form)
	}
	if columns == nil {
		return a.Begin([]string{})
	}
	return nil
}

// member is a row of a mock: its members, and their names in order.
type member struct {
	names  []string
	values map[string]any
}

// errRow is that a row is no object of plain values.
var errRow = errors.New("a row is an object of plain values")

// membersOf reads a list of objects of plain values.
func membersOf(d *json.Decoder) (rows []member, err error) {
	var list []json.RawMessage
	if err := d.Decode(&list); err != nil {
		return nil, err
	}
	for _, item := range list {
		row := member{values: map[string]any{}}
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
