package files

import (
	"encoding/base64"
	"encoding/json"

	"github.com/mcpd/mcpd/scripting"
)

// Request is one operation on one file.
type Request struct {
	// Method is what a script calls it: readText, lines, readBytes, writeText,
	// writeBytes, list, stat or remove.
	Method string
	// Path is below the root, in canonical form.
	Path string

	given           string // the path as the script passed it
	from, most, end int64
	content         []byte
	writes          bool
}

// Written returns the content that is to be written, and false when nothing is.
func (r *Request) Written() ([]byte, bool) { return r.content, r.writes }

type payload struct {
	Path   string  `json:"path"`
	From   int64   `json:"from"`
	Max    int64   `json:"max"`
	Tail   int64   `json:"tail"`
	Text   *string `json:"text"`
	Data64 *string `json:"data64"`
}

// Parse reads the payload of a method, and refuses what can be refused without
// a look at the disk. Mocks ask it, so that a test does not pass with what could
// never be done.
func (f *Folder) Parse(method string, data []byte) (*Request, error) {
	var in payload
	if err := json.Unmarshal(data, &in); err != nil {
		return nil, fault(scripting.Invalid, "", "the operation is malformed: path is a string, and from, max and tail are whole numbers")
	}
	r := &Request{Method: method, given: in.Path, from: in.From, most: in.Max, end: in.Tail}
	var err error
	if r.Path, err = parsePath(in.Path, f.Grant.Root, f.Grant.ResolvedPath); err != nil {
		return nil, err
	}
	if in.From < 0 || in.Max < 0 || in.Tail < 0 || in.Max > 0 && in.Tail > 0 {
		return nil, fault(scripting.Invalid, r.given, "from, max and tail begin with 1, and max and tail exclude each other")
	}
	switch method {
	case "readText", "readBytes", "lines", "stat":
	case "list":
		return r, nil
	case "writeText", "writeBytes":
		err = r.carry(f, in)
	case "remove":
		err = f.writable(r.given)
	default:
		return nil, fault(scripting.NotGranted, "", "files have no such operation")
	}
	if err == nil && r.Path == "." && method != "stat" {
		err = fault(scripting.Denied, r.given, "it is a folder")
	}
	return r, err
}

func (r *Request) carry(f *Folder, in payload) (err error) {
	r.writes = true
	switch {
	case in.Text != nil && in.Data64 == nil:
		r.content = []byte(*in.Text)
	case in.Data64 != nil && in.Text == nil:
		if r.content, err = base64.StdEncoding.DecodeString(*in.Data64); err != nil {
			return fault(scripting.Invalid, r.given, "what is to be written is not standard base64")
		}
	default:
		return fault(scripting.Invalid, r.given, "one of text and data64 is to be written")
	}
	if int64(len(r.content)) > f.maxFile {
		return fault(scripting.TooLarge, r.given, "a file has at most %d bytes here (max_file)", f.maxFile)
	}
	return f.writable(r.given)
}

func (f *Folder) writable(given string) error {
	if !f.Grant.Write {
		return fault(scripting.NotGranted, given, "the grant lets nothing be written")
	}
	return nil
}
