package scripting

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"slices"

	"github.com/dop251/goja"

	"github.com/mcpd/mcpd/internal/js/builtins"
	"github.com/mcpd/mcpd/internal/js/jsvalue"
)

// makeDatabase returns sql.NAME: open(path) if each call chooses a file, otherwise the methods that
// run statements.
func (r *execution) makeDatabase(grant string) *goja.Object {
	o := r.Runtime.NewObject()
	if !slices.Contains(r.Program.Objects, Object{Kind: "sql.open", Name: grant}) {
		r.statements(o, grant, nil)
		return o
	}
	r.Method(o, "open", func(c goja.FunctionCall) goja.Value {
		path := r.StringArgument(c.Argument(0), "sql."+grant+".open(path): the path must be a string")
		return r.callAndRead("sql.open", mustJSON(sqlRequest{Grant: grant, Path: &path}), func(r *execution, _ []byte) (goja.Value, error) {
			opened := r.Runtime.NewObject()
			r.statements(opened, grant, &path)
			return opened, nil
		})
	})
	return o
}

// statements adds query(statement, params) and, if the grant permits changes, exec(statement,
// params).
func (r *execution) statements(o *goja.Object, grant string, path *string) {
	add := func(name string, read func(*execution, []byte) (goja.Value, error)) {
		r.Method(o, name, func(c goja.FunctionCall) goja.Value {
			what := "sql." + grant + "." + name
			statement := r.StringArgument(c.Argument(0), what+"(statement, params): the statement must be the name of a statement block")
			request := sqlRequest{Grant: grant, Path: path, Statement: statement, Params: r.sqlParams(what, c.Argument(1))}
			return r.callAndRead("sql."+name, mustJSON(request), read)
		})
	}
	add("query", (*execution).readRows)
	if slices.Contains(r.Program.Objects, Object{Kind: "sql.write", Name: grant}) {
		add("exec", (*execution).readChanges)
	}
}

// sqlRequest is the payload of the operations sql.*.
type sqlRequest struct {
	Grant     string         `json:"grant"`
	Path      *string        `json:"path,omitempty"`
	Statement string         `json:"statement,omitempty"`
	Params    map[string]any `json:"params,omitempty"`
}

// sqlParams reads the values of named parameters.
func (r *execution) sqlParams(what string, v goja.Value) map[string]any {
	if builtins.IsNothing(v) {
		return nil
	}
	o, ok := v.(*goja.Object)
	if !ok || jsvalue.KindOf(o) == jsvalue.Array {
		panic(r.TypeError(what + ": the params must be an object, with the name of each parameter"))
	}
	params := map[string]any{}
	for _, name := range o.Keys() {
		r.Proceed()
		params[name] = r.sqlParam(what+": the parameter "+name, o.Get(name))
	}
	return params
}

// sqlParam reads the value of a parameter. undefined becomes null, as for omitted optional inputs.
func (r *execution) sqlParam(what string, v goja.Value) any {
	if builtins.IsNothing(v) {
		return nil
	}
	if text, ok := v.(goja.String); ok {
		if jsvalue.HasLoneSurrogate(text) {
			panic(r.TypeError(what + " must be a string of whole characters"))
		}
		return text.String()
	}
	if bytes, ok := r.BytesOf(v); ok {
		return map[string]string{"base64": base64.StdEncoding.EncodeToString(bytes)}
	}
	switch x := v.Export().(type) {
	case bool:
		return x
	case *big.Int:
		return map[string]string{"integer": x.String()}
	case int64:
		return x
	case float64:
		if !math.IsNaN(x) && !math.IsInf(x, 0) {
			return x
		}
		panic(r.TypeError(what + " must be a number that is finite"))
	}
	panic(r.TypeError(what + " must be a string, a number, a boolean, null or bytes; write JSON.stringify(x) for objects and lists, and toISOString() for dates"))
}

// readRows returns a list of objects with the columns as members.
func (r *execution) readRows(data []byte) (goja.Value, error) {
	var response struct {
		Columns []string            `json:"columns"`
		Rows    [][]json.RawMessage `json:"rows"`
	}
	if err := json.Unmarshal(data, &response); err != nil {
		return nil, err
	}
	rows := make([]any, len(response.Rows))
	for i, values := range response.Rows {
		r.Proceed()
		row := r.Runtime.NewObject()
		for j, name := range response.Columns {
			if j >= len(values) {
				return nil, fmt.Errorf("row %d is short", i)
			}
			v, err := r.readCell(values[j])
			if err != nil {
				return nil, err
			}
			_ = row.DefineDataProperty(name, v, goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_TRUE)
		}
		rows[i] = row
	}
	return r.Runtime.NewArray(rows...), nil
}

// readCell returns a value. Bytes are encoded as {"base64": text}.
func (r *execution) readCell(data json.RawMessage) (goja.Value, error) {
	if len(data) > 0 && data[0] == '{' {
		var bytes struct {
			Base64 []byte `json:"base64"`
		}
		if err := json.Unmarshal(data, &bytes); err != nil {
			return nil, err
		}
		return r.NewBytes(bytes.Base64), nil
	}
	return r.Decode(string(data))
}

func (r *execution) readChanges(data []byte) (goja.Value, error) {
	var response struct {
		Changes int64 `json:"changes"`
	}
	if err := json.Unmarshal(data, &response); err != nil {
		return nil, err
	}
	o := r.Runtime.NewObject()
	return o, o.Set("changes", response.Changes)
}
