package sqldb

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mcpd/mcpd/internal/host/files"
	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/internal/language/sqltext"
	"github.com/mcpd/mcpd/scripting"
)

// MaxText bounds one text or blob, in both directions, in bytes.
const MaxText = 1 << 20

// Query is one operation on one database.
type Query struct {
	// Method is the name for scripts: open, query or exec.
	Method string
	// Path is the canonical path of the chosen file, or "" if the grant names the database.
	Path string
	// Name is the name of the statement, or "" for open.
	Name string

	// Statement is the named statement. Values are its parameter values: nil, bool, int64,
	// float64, string or []byte.
	Statement *sqltext.Statement
	Values    []any

	given string
}

type payload struct {
	Path      *string                    `json:"path"`
	Statement string                     `json:"statement"`
	Params    map[string]json.RawMessage `json:"params"`
}

// Parse parses the payload of a method. It makes all checks that need no database. Mocks use
// it, so that a test cannot pass with an operation that would be rejected. The error is a
// [*scripting.HostError].
func (d Database) Parse(method string, data []byte) (*Query, error) {
	var in payload
	if err := json.Unmarshal(data, &in); err != nil {
		return nil, NewHostError(scripting.Invalid, "", "the operation is malformed")
	}
	r := &Query{Method: method, Name: in.Statement}
	switch {
	case method != "open" && method != "query" && method != "exec":
		return nil, NewHostError(scripting.NotGranted, "", "databases have no such operation")
	case method == "exec" && !d.Write:
		return nil, NewHostError(scripting.NotGranted, in.Statement, "the grant does not allow changes")
	case d.PathFromCall != (in.Path != nil) || method == "open" && !d.PathFromCall:
		return nil, NewHostError(scripting.Invalid, in.Statement, "use open only with a grant that has a root")
	}
	if d.PathFromCall {
		if err := r.setFile(d, *in.Path); err != nil || method == "open" {
			return r, err
		}
	}
	return r, r.bind(d, in.Params)
}

func (q *Query) setFile(d Database, given string) (err error) {
	q.given = given
	if q.Path, err = files.CheckPath(grant.FS{Root: d.Path, ResolvedPath: d.ResolvedPath}, given); err != nil {
		return err
	}
	if !slices.ContainsFunc(d.globs, func(glob *regexp.Regexp) bool { return glob.MatchString(q.Path) }) {
		return NewHostError(scripting.NotGranted, given, "the grant has no such file: its glob is %s", strings.Join(d.Glob, ", "))
	}
	return nil
}

func (q *Query) bind(d Database, params map[string]json.RawMessage) error {
	statement, ok := d.statements[q.Name]
	switch {
	case !ok:
		return NewHostError(scripting.NotGranted, q.Name, "the grant has no such statement; use the name of a statement block")
	case statement == nil:
		return NewHostError(scripting.Invalid, q.Name, "the statement cannot be read")
	}
	q.Statement = statement
	for _, name := range slices.Sorted(maps.Keys(params)) {
		if !slices.Contains(q.Statement.Parameters, name) {
			return NewHostError(scripting.Invalid, q.Name, "the statement has no parameter :%s", quoteName(name))
		}
	}
	for _, name := range q.Statement.Parameters {
		given, ok := params[name]
		if !ok {
			return NewHostError(scripting.Invalid, q.Name, "the parameter :%s has no value; pass null for no value", name)
		}
		v, problem := parseValue(given)
		if problem != "" {
			return NewHostError(scripting.Invalid, q.Name, "the parameter :%s %s", name, problem)
		}
		q.Values = append(q.Values, v)
	}
	return nil
}

// parseValue parses a value: JSON that is not a list, {"integer": text} or {"base64": text}.
func parseValue(data json.RawMessage) (v any, problem string) {
	var special struct {
		Integer *string `json:"integer"`
		Base64  *string `json:"base64"`
	}
	if len(data) > 2*MaxText {
		return nil, "is longer than 1 MiB"
	}
	if data[0] == '{' && json.Unmarshal(data, &special) == nil {
		switch {
		case special.Integer != nil && special.Base64 == nil:
			n, err := strconv.ParseInt(*special.Integer, 10, 64)
			if err != nil {
				return nil, "is not a 64-bit integer"
			}
			return n, ""
		case special.Base64 != nil && special.Integer == nil:
			b, err := base64.StdEncoding.DecodeString(*special.Base64)
			if err != nil || len(b) > MaxText {
				return nil, "is not at most 1 MiB in base64"
			}
			return b, ""
		}
	}
	if err := json.Unmarshal(data, &v); err != nil {
		return nil, "cannot be read"
	}
	switch x := v.(type) {
	case nil, bool:
		return v, ""
	case float64:
		if x == math.Trunc(x) && math.Abs(x) < 1<<53 {
			return int64(x), ""
		}
		return x, ""
	case string:
		return v, textProblem(x)
	}
	return nil, "must be a string, a number, a boolean, null or bytes"
}

func textProblem(text string) string {
	switch {
	case len(text) > MaxText:
		return "is longer than 1 MiB"
	case strings.Contains(text, "\x00"):
		return "contains a NUL, which text cannot contain; pass bytes"
	case !utf8.ValidString(text):
		return "is not text; pass bytes"
	}
	return ""
}

// String returns the request in the form used by mocks.
func (q *Query) String() string {
	switch {
	case q.Method == "open":
		return "open " + q.Path
	case q.Path != "":
		return fmt.Sprintf("%s %s", q.Name, q.Path)
	}
	return q.Name
}

// queryFile runs a query on a file chosen by the call. The driver reads the checked file
// itself. It takes no lock, and detects concurrent writes afterwards.
func queryFile(ctx context.Context, driver FileDriver, g grant.SQL, r *Query, a *Rows) error {
	const busy = "another program uses the database (a -wal or -journal file holds changes); try again when it is done"
	opened, _, err := files.OpenFile(grant.FS{Root: g.Path, ResolvedPath: g.ResolvedPath}, r.given, busy, "-wal", "-journal")
	if err != nil {
		return err
	}
	defer opened.Close()
	before, err := opened.Stat()
	if err != nil {
		return err
	}
	c, err := driver.ConnectFile(opened)
	if err != nil {
		return err
	}
	defer c.Close()
	if r.Method == "open" {
		// Reading the schema shows whether it is a database.
		r.Statement = &sqltext.Statement{Text: "SELECT count(*) FROM sqlite_schema"}
	}
	if err := c.Run(ctx, r, a); err != nil {
		return err
	}
	after, err := opened.Stat()
	if err == nil && (after.Size() != before.Size() || !after.ModTime().Equal(before.ModTime())) {
		return NewHostError(scripting.Unavailable, r.given, "the database was written while it was read; try again")
	}
	return err
}
