package scripting

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	"github.com/dop251/goja"

	"github.com/mcpd/mcpd/internal/js/builtins"
	"github.com/mcpd/mcpd/internal/js/jsvalue"
)

// makeFolder returns fs.NAME. Methods that write exist only if the grant permits them.
func (r *execution) makeFolder(grant string) *goja.Object {
	o := r.Runtime.NewObject()
	r.fileMethod(o, grant, "readText", (*execution).readText, "tail", "max")
	r.fileMethod(o, grant, "readBytes", (*execution).readData, "tail", "max")
	r.fileMethod(o, grant, "lines", (*execution).readLines, "from", "max")
	r.fileMethod(o, grant, "list", (*execution).readEntries)
	r.fileMethod(o, grant, "stat", (*execution).readStat)
	if !slices.Contains(r.Program.Objects, Object{Kind: "fs.write", Name: grant}) {
		return o
	}
	nothing := func(*execution, *fileResponse) (goja.Value, bool) { return goja.Undefined(), true }
	r.fileMethod(o, grant, "writeText", nothing)
	r.fileMethod(o, grant, "writeBytes", nothing)
	r.fileMethod(o, grant, "remove", nothing)
	return o
}

// fileRequest is the payload of the operations on files.
type fileRequest struct {
	Grant  string  `json:"grant"`
	Path   string  `json:"path"`
	From   int64   `json:"from,omitempty"`
	Max    int64   `json:"max,omitempty"`
	Tail   int64   `json:"tail,omitempty"`
	Text   *string `json:"text,omitempty"`
	Data64 *string `json:"data64,omitempty"`
}

type fileResponse struct {
	Text     *string     `json:"text"`
	Data64   *string     `json:"data64"`
	Lines    []string    `json:"lines"`
	Entries  []fileEntry `json:"entries"`
	Type     string      `json:"type"`
	Size     float64     `json:"size"`
	Modified float64     `json:"modified"`
}

type fileEntry struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

// fileMethod adds a method. read converts the response; it returns false for an invalid one.
func (r *execution) fileMethod(o *goja.Object, grant, name string, read func(*execution, *fileResponse) (goja.Value, bool), options ...string) {
	readAnswer := func(r *execution, data []byte) (goja.Value, error) {
		var response fileResponse
		if json.Unmarshal(data, &response) == nil {
			if v, ok := read(r, &response); ok {
				return v, nil
			}
		}
		return nil, errUnreadable
	}
	r.Method(o, name, func(c goja.FunctionCall) goja.Value {
		what := "fs." + grant + "." + name
		request := fileRequest{Grant: grant, Path: r.filePath(what, name, c.Argument(0))}
		switch name {
		case "writeText", "writeBytes":
			r.fileContent(&request, what, name, c.Argument(1))
		default:
			r.fileOptions(&request, what, c.Argument(1), options)
		}
		return r.callAndRead("fs."+name, mustJSON(request), readAnswer)
	})
}

// filePath reads a path. The default for list is the root directory.
func (r *execution) filePath(what, method string, v goja.Value) string {
	if builtins.IsNothing(v) && method == "list" {
		return "."
	}
	return r.StringArgument(v, what+"(path): the path must be a string")
}

func (r *execution) fileContent(request *fileRequest, what, method string, v goja.Value) {
	if method == "writeBytes" {
		data, ok := r.BytesOf(v)
		if !ok {
			panic(r.TypeError(what + "(path, bytes): bytes must be a typed array; use writeText for text"))
		}
		encoded := base64.StdEncoding.EncodeToString(data)
		request.Data64 = &encoded
		return
	}
	text := r.StringArgument(v, what+"(path, text): text must be a string; use writeBytes for bytes, and JSON.stringify for objects")
	request.Text = &text
}

// fileOptions reads { from, max, tail }. names are the options of the method, all whole numbers
// from 1 on.
func (r *execution) fileOptions(request *fileRequest, what string, v goja.Value, names []string) {
	if builtins.IsNothing(v) {
		return
	}
	options, ok := v.(*goja.Object)
	if !ok || len(names) == 0 {
		panic(r.TypeError(what + ": " + fileOptionsAdvice(names)))
	}
	places := map[string]*int64{"from": &request.From, "max": &request.Max, "tail": &request.Tail}
	for _, key := range options.Keys() {
		r.Proceed()
		value := options.Get(key)
		if builtins.IsNothing(value) {
			continue
		}
		if !slices.Contains(names, key) {
			panic(r.TypeError(what + ": there is no option " + key + "; " + fileOptionsAdvice(names)))
		}
		n, ok := jsvalue.Whole(value)
		if !ok || n < 1 {
			panic(r.TypeError(what + ": " + key + " must be a whole number from 1 on"))
		}
		*places[key] = n
	}
	if request.Max > 0 && request.Tail > 0 {
		panic(r.TypeError(what + ": give one of max and tail"))
	}
}

func fileOptionsAdvice(names []string) string {
	if len(names) == 0 {
		return "it takes only a path"
	}
	return "the options are an object with " + strings.Join(names, " and ")
}

func (r *execution) readText(a *fileResponse) (goja.Value, bool) {
	if a.Text == nil {
		return nil, false
	}
	return r.Runtime.ToValue(bodyText(*a.Text)), true
}

func (r *execution) readData(a *fileResponse) (goja.Value, bool) {
	if a.Data64 == nil {
		return nil, false
	}
	data, err := base64.StdEncoding.DecodeString(*a.Data64)
	if err != nil {
		return nil, false
	}
	return r.NewBytes(data), true
}

func (r *execution) readLines(a *fileResponse) (goja.Value, bool) {
	items := make([]any, len(a.Lines))
	for i, line := range a.Lines {
		r.Proceed()
		items[i] = r.Runtime.ToValue(line)
	}
	return r.Runtime.NewArray(items...), a.Lines != nil
}

func (r *execution) readEntries(a *fileResponse) (goja.Value, bool) {
	items := make([]any, len(a.Entries))
	for i, e := range a.Entries {
		r.Proceed()
		o := r.Runtime.NewObject()
		_ = o.Set("name", e.Name)
		_ = o.Set("type", e.Type)
		items[i] = o
	}
	return r.Runtime.NewArray(items...), a.Entries != nil
}

func (r *execution) readStat(a *fileResponse) (goja.Value, bool) {
	o := r.Runtime.NewObject()
	_ = o.Set("type", a.Type)
	_ = o.Set("size", a.Size)
	_ = o.Set("modified", a.Modified)
	return o, a.Type != ""
}
