package hclfile

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/diag"
)

// mockForms says how a mock block begins.
const mockForms = `write mock "http.NAME" "GET /path" { … }, mock "fs.NAME" "readText PATH" { … }, mock "env" "NAME" { … }, mock "secrets" "NAME" { … }, mock "kv.NAME" "KEY" { … }, mock "exec.NAME" "ARGUMENTS" { … }, mock "sql.NAME" "STATEMENT" { … }, mock "tools" "NAME" { … }, mock "modules.NAME" "FUNCTION" { … }, or mock "elicit" "KEY" { … } with the key that the body gives, or else "elicit" again`

// mock decodes a mock block.
func (d *decoder) mock(b *hclsyntax.Block) Mock {
	d.checkBody(b)
	m := Mock{Object: b.Labels[0], Request: b.Labels[1], Status: 200, Range: d.f.rng(b.DefRange())}
	asked := []string{"elicit", "sample", "roots"}
	near := diag.DidYouMean(m.Object, asked)
	m.Error, _ = d.oneOf(b.Body, "error", errorsOf(m.Object)...)
	switch kind, _, _ := strings.Cut(m.Object, "."); {
	case kind == "fs", kind == "env":
		d.localMock(b, &m)
	case m.Object == "secrets":
		d.secretsMock(b)
	case slices.Contains(asked, m.Object):
		d.askMock(b)
	case strings.HasPrefix(m.Object, "kv."):
		d.kvMock(b, &m)
	case kind == "exec":
		d.execMock(b, &m)
	case strings.HasPrefix(m.Object, "sql."):
		d.sqlMock(b, &m)
	case kind == mockModules:
		d.moduleMock(b, &m)
	case kind == mockTools:
		d.toolMock(b, &m)
	case near != "":
		d.fail("bad-name", d.f.rng(b.LabelRanges[0]), "this is nothing that a tool is granted", near)
		m.Object = ""
	default:
		d.httpMock(b, &m)
	}
	text, hasText := d.text(b.Body, "text")
	if j := b.Body.Attributes["json"]; j != nil && b.Body.Attributes["text"] != nil {
		d.fail("contradiction", d.f.rng(j.NameRange), "the mock has both \"json\" and \"text\"", "keep one of the two")
	}
	m.Body = d.json(b.Body, "json")
	if hasText {
		m.Body = []byte(text)
	}
	if kind, _, _ := strings.Cut(m.Object, "."); hasText && (kind == mockTools || kind == mockModules) {
		m.Body, _ = json.Marshal(text) // text always encodes
	}
	if strings.HasPrefix(m.Object, "exec.") {
		d.endOfProgram(b, &m, hasText)
	}
	return m
}

// httpMock decodes what belongs to the answer to a request.
func (d *decoder) httpMock(b *hclsyntax.Block, m *Mock) {
	if kind, name, _ := strings.Cut(m.Object, "."); kind != "http" || !isIdentifier(name) {
		d.fail("bad-name", d.f.rng(b.LabelRanges[0]), "this is not an object that a tool is granted", "write its kind and name, such as \"http.crm\", \"fs.logs\", \"kv.notes\" or \"exec.git\", or \"env\", \"secrets\", \"tools\", \"elicit\", \"sample\" or \"roots\"")
		m.Object = ""
	}
	d.checkRequest(b, m.Request)
	if status, ok := d.whole(b.Body, "status", 100, 599); ok {
		m.Status = status
	}
	m.Headers = d.textMap(b.Body, "headers")
}

// askMock checks the answer of a client or what a key holds, which is JSON, and
// of a model perhaps its text alone.
func (d *decoder) askMock(b *hclsyntax.Block) {
	object := b.Labels[0]
	d.noResponse(b)
	if attr := b.Body.Attributes["error"]; attr != nil {
		d.fail("contradiction", d.f.rng(attr.NameRange), "who is asked answers with no error", "write json = { action = \"decline\" } or json = { action = \"cancel\" }")
		return
	}
	text, value := b.Body.Attributes["text"], b.Body.Attributes["json"]
	switch {
	case text != nil && object != "sample":
		d.fail("contradiction", d.f.rng(text.NameRange), "the answer to \""+object+"\" is no text", "write it as \"json\"")
	case text == nil && value == nil:
		d.fail("missing-argument", d.f.rng(b.DefRange()), "the mock holds no answer", cmp.Or(map[string]string{
			"elicit": "write json = { … } with what the form is filled in with, or json = { action = \"decline\" }",
			"sample": "write text = \"…\"", "roots": "write json = [{ uri = \"file:///…\" }]",
		}[object], "write json = … with what the key holds"))
	}
}

// checkRequest reports a label that is not a method and a path.
func (d *decoder) checkRequest(b *hclsyntax.Block, request string) {
	method, path, _ := strings.Cut(request, " ")
	if !isToken(method) || method != strings.ToUpper(method) || !strings.HasPrefix(path, "/") || strings.ContainsAny(path, " \t\n") {
		d.fail("bad-name", d.f.rng(b.LabelRanges[1]), "this is not a request", "write the method and the path, such as \"GET /customers/C-1042\"")
	}
}

// mockErrors are the codes that a mock may refuse with.
var mockErrors = []string{"NOT_FOUND", "OUTSIDE_ROOT", "NOT_GRANTED", "TOO_LARGE", "DENIED", "TIMEOUT", "UNAVAILABLE", "INVALID"}

// fileMethods are what a script asks of files, and whether the answer of a mock
// is text, JSON, either, or nothing that must be written.
var fileMethods = map[string][]string{
	"readText": {"text", "json"}, "readBytes": {"text", "json"}, "lines": {"text", "json"},
	"list": {"json"}, "stat": {"json"}, "writeText": nil, "writeBytes": nil, "remove": nil,
}

// localMock decodes what belongs to the answer of a file, or to a variable of
// the environment.
func (d *decoder) localMock(b *hclsyntax.Block, m *Mock) {
	d.noResponse(b)
	kind, name, dotted := strings.Cut(m.Object, ".")
	switch {
	case kind == "env" && !dotted:
		d.envMock(b, m)
	case kind == "fs" && isIdentifier(name):
		d.fileMock(b, m)
	default:
		d.fail("bad-name", d.f.rng(b.LabelRanges[0]), "this is not an object that a tool is granted",
			"write mock \"fs.NAME\" \"readText PATH\" { … }, or mock \"env\" \"NAME\" { … }")
		m.Object = ""
	}
}

func (d *decoder) envMock(b *hclsyntax.Block, m *Mock) {
	if !isIdentifier(m.Request) {
		d.fail("bad-name", d.f.rng(b.LabelRanges[1]), "this is not the name of a variable", "write the name, such as \"LANG\"")
	}
	for _, name := range []string{"json", "error"} {
		if attr := b.Body.Attributes[name]; attr != nil {
			d.fail("contradiction", d.f.rng(attr.NameRange), "a variable of the environment is text", "write it as \"text\"; without a mock there is no such variable")
			return
		}
	}
	d.needs(b, "text")
}

func (d *decoder) fileMock(b *hclsyntax.Block, m *Mock) {
	method, path, _ := strings.Cut(m.Request, " ")
	answers, known := fileMethods[method]
	switch {
	case !known:
		d.fail("bad-name", d.f.rng(b.LabelRanges[1]), "files have no method "+d.eval.show(method), orList(diag.DidYouMean(method, fileMethodNames()), "write one of", fileMethodNames()))
	case path == "":
		d.fail("bad-name", d.f.rng(b.LabelRanges[1]), "the path is missing", fmt.Sprintf("write it behind the method, such as \"%s notes.txt\"", method))
	case answers != nil && b.Body.Attributes["error"] == nil:
		d.needs(b, answers...)
	}
}

func fileMethodNames() []string {
	return []string{"readText", "lines", "readBytes", "writeText", "writeBytes", "list", "stat", "remove"}
}

// needs reports a mock that holds none of the named answers.
func (d *decoder) needs(b *hclsyntax.Block, names ...string) {
	if slices.ContainsFunc(names, func(name string) bool { return b.Body.Attributes[name] != nil }) {
		return
	}
	d.fail("missing-argument", d.f.rng(b.DefRange()), "the mock holds no answer", "write "+names[0]+" = …")
}

// noResponse reports what only the answer to a request has.
func (d *decoder) noResponse(b *hclsyntax.Block) {
	for _, name := range []string{"status", "headers"} {
		if attr := b.Body.Attributes[name]; attr != nil {
			d.fail("contradiction", d.f.rng(attr.NameRange), "only answers to requests have \""+name+"\"", "remove it")
		}
	}
}

// execMock decodes how a program ends: its code and outputs as JSON, or as text
// what it writes to its standard output.
func (d *decoder) execMock(b *hclsyntax.Block, m *Mock) {
	d.noResponse(b)
	if name, named := strings.CutPrefix(m.Object, "exec."); !named || !isIdentifier(name) {
		d.fail("bad-name", d.f.rng(b.LabelRanges[0]), "this is not the name of a program that is granted", "write mock \"exec.NAME\" \"ARGUMENTS\" { … }")
		m.Object = ""
	}
	if b.Body.Attributes["error"] == nil {
		d.needs(b, "text", "json")
	}
}

// endOfProgram makes the text of a mock what the program writes, and checks what
// it says as JSON.
func (d *decoder) endOfProgram(b *hclsyntax.Block, m *Mock, hasText bool) {
	if hasText {
		// Text always encodes.
		m.Body, _ = json.Marshal(map[string]string{"stdout": string(m.Body)})
		return
	}
	var end map[string]json.RawMessage
	attr := b.Body.Attributes["json"]
	if attr == nil || m.Body == nil {
		return
	}
	var told struct {
		Code           int
		Stdout, Stderr string
	}
	known := json.Unmarshal(m.Body, &end) == nil && json.Unmarshal(m.Body, &told) == nil
	for name := range end {
		known = known && (name == "code" || name == "stdout" || name == "stderr")
	}
	if !known {
		d.fail("bad-value", d.f.rng(attr.Expr.Range()), "this does not say how a program ends", `write some of { code = 0, stdout = "…", stderr = "…" }`)
	}
}

// sqlMock decodes what a statement answers with in a test: its rows as a list
// of objects, or how many rows it changes.
func (d *decoder) sqlMock(b *hclsyntax.Block, m *Mock) {
	d.noResponse(b)
	if !isIdentifier(strings.TrimPrefix(m.Object, "sql.")) {
		d.fail("bad-name", d.f.rng(b.LabelRanges[0]), "this is not the name of a database", "write it as in \"sql.shop\"")
		m.Object = ""
	}
	first, path, _ := strings.Cut(m.Request, " ")
	switch text := b.Body.Attributes["text"]; {
	case first == "open" && path == "" || first != "open" && !isIdentifier(first):
		d.fail("bad-name", d.f.rng(b.LabelRanges[1]), "this is not a statement", "write the name of the statement, behind it the path of the file that the call chooses, or \"open PATH\"")
	case text != nil:
		d.fail("contradiction", d.f.rng(text.NameRange), "what a statement answers with is no text", "write json = [{ … }] with the rows, or json = { changes = 1 }")
	case first != "open" && b.Body.Attributes["error"] == nil:
		d.needs(b, "json")
	}
}
