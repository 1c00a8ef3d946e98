package files

import (
	"encoding/base64"
	"encoding/json"

	"github.com/mcpd/mcpd/scripting"
)

// Operation is one operation on one file.
type Operation struct {
	// Method is the name for scripts: readText, lines, readBytes, writeText, writeBytes, list,
	// stat or remove.
	Method string
	// Path is the canonical path below the root.
	Path string

	given           string // the path as the script passed it
	from, max, tail int64
	content         []byte
	writes          bool
}

// Content returns the content to write, and false for other operations.
func (op *Operation) Content() ([]byte, bool) { return op.content, op.writes }

type payload struct {
	Path   string  `json:"path"`
	From   int64   `json:"from"`
	Max    int64   `json:"max"`
	Tail   int64   `json:"tail"`
	Text   *string `json:"text"`
	Data64 *string `json:"data64"`
}

// Parse parses the payload of a method. It makes all checks that need no disk access. Mocks use
// it, so that a test cannot pass with an operation that would be rejected.
func (g *GrantedRoot) Parse(method string, data []byte) (*Operation, error) {
	var in payload
	if err := json.Unmarshal(data, &in); err != nil {
		return nil, newHostError(scripting.Invalid, "", "the operation is malformed: path is a string, and from, max and tail are whole numbers")
	}
	r := &Operation{Method: method, given: in.Path, from: in.From, max: in.Max, tail: in.Tail}
	var err error
	if r.Path, err = parsePath(in.Path, g.Grant.Root, g.Grant.ResolvedPath); err != nil {
		return nil, err
	}
	if in.From < 0 || in.Max < 0 || in.Tail < 0 || in.Max > 0 && in.Tail > 0 {
		return nil, newHostError(scripting.Invalid, r.given, "from, max and tail start at 1, and max and tail exclude each other")
	}
	switch method {
	case "readText", "readBytes", "lines", "stat":
	case "list":
		return r, nil
	case "writeText", "writeBytes":
		err = r.setContent(g, in)
	case "remove":
		err = g.writable(r.given)
	default:
		return nil, newHostError(scripting.NotGranted, "", "files have no such operation")
	}
	if err == nil && r.Path == "." && method != "stat" {
		err = newHostError(scripting.Denied, r.given, "it is a folder")
	}
	return r, err
}

func (op *Operation) setContent(f *GrantedRoot, in payload) (err error) {
	op.writes = true
	switch {
	case in.Text != nil && in.Data64 == nil:
		op.content = []byte(*in.Text)
	case in.Data64 != nil && in.Text == nil:
		if op.content, err = base64.StdEncoding.DecodeString(*in.Data64); err != nil {
			return newHostError(scripting.Invalid, op.given, "data64 is not standard base64")
		}
	default:
		return newHostError(scripting.Invalid, op.given, "set either text or data64")
	}
	if int64(len(op.content)) > f.maxFile {
		return newHostError(scripting.TooLarge, op.given, "a file has at most %d bytes (max_file)", f.maxFile)
	}
	return f.writable(op.given)
}

func (g *GrantedRoot) writable(given string) error {
	if !g.Grant.Write {
		return newHostError(scripting.NotGranted, given, "the grant is read-only")
	}
	return nil
}
