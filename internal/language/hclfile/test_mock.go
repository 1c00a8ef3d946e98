package hclfile

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/grant"
)

// mockForms is the advice for the labels of a mock block.
const mockForms = `write mock "http.NAME" "GET /path" { … }, mock "fs.NAME" "readText PATH" { … }, mock "env" "NAME" { … }, mock "secrets" "NAME" { … }, mock "kv.NAME" "KEY" { … }, mock "exec.NAME" "ARGUMENTS" { … }, mock "sql.NAME" "STATEMENT" { … }, mock "tools" "NAME" { … }, mock "modules.NAME" "FUNCTION" { … }, or mock "elicit" "KEY" { … } with the key in the script, by default "elicit"`

func (d *decoder) mock(b *hclsyntax.Block) definition.Mock {
	d.checkBody(b)
	m := definition.Mock{Object: b.Labels[0], Request: b.Labels[1], Status: 200, Range: d.f.rng(b.DefRange())}
	asked := []string{"elicit", "sample", "roots"}
	near := diag.DidYouMean(m.Object, asked)
	codes := mockErrors
	if m.Object == mockTools {
		codes = errorCodes
	}
	m.Error = d.enumAttr(b.Body, "error", codes...)
	kind, name, dotted := strings.Cut(m.Object, ".")
	form, known := mockKinds[kind]
	switch {
	case slices.Contains(asked, m.Object):
		d.askMock(b)
	case known && (dotted || kind != "kv" && kind != "sql") && (!dotted || kind != "secrets"):
		if kind != "kv" {
			d.noResponse(b)
		}
		if form.bare == dotted || dotted && !isIdentifier(name) {
			d.fail("bad-name", d.f.rng(b.LabelRanges[0]), form.badObject, strings.ReplaceAll(form.objectForm, "{name}", clip(name)))
			m.Object = ""
			break
		}
		if form.fits != nil && !form.fits(m.Request) {
			d.fail("bad-name", d.f.rng(b.LabelRanges[1]), form.badRequest, form.requestForm)
		}
		form.answer(d, b, &m)
	case near != "":
		d.fail("bad-name", d.f.rng(b.LabelRanges[0]), "this is not an object that a tool can be granted", near)
		m.Object = ""
	default:
		d.httpMock(b, &m)
	}
	text, hasText := d.text(b.Body, "text")
	if j := b.Body.Attributes["json"]; j != nil && b.Body.Attributes["text"] != nil {
		d.fail("contradiction", d.f.rng(j.NameRange), "the mock has both \"json\" and \"text\"", "keep one of them")
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

// httpMock decodes the response to a request.
func (d *decoder) httpMock(b *hclsyntax.Block, m *definition.Mock) {
	if kind, name, _ := strings.Cut(m.Object, "."); kind != "http" || !isIdentifier(name) {
		d.fail("bad-name", d.f.rng(b.LabelRanges[0]), notGranted, "write kind and name, such as \"http.crm\", \"fs.logs\", \"kv.notes\" or \"exec.git\", or \"env\", \"secrets\", \"tools\", \"elicit\", \"sample\" or \"roots\"")
		m.Object = ""
	}
	d.checkRequest(b, m.Request)
	m.Status = cmp.Or(d.intAttr(b.Body, "status", 100, 599), m.Status)
	m.Headers = d.stringMap(b.Body, "headers")
}

// askMock checks the response of a client, or the value of a key. Both are JSON; the response
// of a model may also be text.
func (d *decoder) askMock(b *hclsyntax.Block) {
	object := b.Labels[0]
	d.noResponse(b)
	if d.rejectAttr(b.Body, "error", "a client response is not an error", "write json = { action = \"decline\" } or json = { action = \"cancel\" }") {
		return
	}
	text, value := b.Body.Attributes["text"], b.Body.Attributes["json"]
	switch {
	case text != nil && object != "sample":
		d.fail("contradiction", d.f.rng(text.NameRange), "the response to \""+object+"\" is not text", "write it as \"json\"")
	case text == nil && value == nil:
		d.fail("missing-argument", d.f.rng(b.DefRange()), "the mock has no response", cmp.Or(map[string]string{
			"elicit": "write json = { … } with the form values, or json = { action = \"decline\" }",
			"sample": "write text = \"…\"", "roots": "write json = [{ uri = \"file:///…\" }]",
		}[object], "write json = … with the value of the key"))
	}
}

// checkRequest reports a label that is not a method and a path.
func (d *decoder) checkRequest(b *hclsyntax.Block, request string) {
	method, path, _ := strings.Cut(request, " ")
	if !isToken(method) || method != strings.ToUpper(method) || !strings.HasPrefix(path, "/") || strings.ContainsAny(path, " \t\n") {
		d.fail("bad-name", d.f.rng(b.LabelRanges[1]), "this is not a request", "write the method and the path, such as \"GET /customers/C-1042\"")
	}
}

// mockErrors are the error codes of mocks.
var mockErrors = []string{"NOT_FOUND", "OUTSIDE_ROOT", "NOT_GRANTED", "TOO_LARGE", "DENIED", "TIMEOUT", "UNAVAILABLE", "INVALID"}

// fileMethods are the methods of files, and the possible responses of a mock: text, JSON,
// either, or none.
var fileMethods = map[string][]string{
	"readText": {"text", "json"}, "readBytes": {"text", "json"}, "lines": {"text", "json"},
	"list": {"json"}, "stat": {"json"}, "writeText": nil, "writeBytes": nil, "remove": nil,
}

// fileMock checks the method and path of a file mock, and its response.
func (d *decoder) fileMock(b *hclsyntax.Block, m *definition.Mock) {
	method, path, _ := strings.Cut(m.Request, " ")
	answers, known := fileMethods[method]
	switch {
	case !known:
		d.fail("bad-name", d.f.rng(b.LabelRanges[1]), "files have no method "+d.eval.show(method), orList(diag.DidYouMean(method, fileMethodNames()), "write one of", fileMethodNames()))
	case path == "":
		d.fail("bad-name", d.f.rng(b.LabelRanges[1]), "the path is missing", fmt.Sprintf("write it after the method, such as \"%s notes.txt\"", method))
	case answers != nil:
		d.needs(b, answers...)
	}
}

func fileMethodNames() []string {
	return []string{"readText", "lines", "readBytes", "writeText", "writeBytes", "list", "stat", "remove"}
}

// needs reports a mock without any of the named responses and without an error.
func (d *decoder) needs(b *hclsyntax.Block, names ...string) {
	if slices.ContainsFunc(append(names, "error"), func(name string) bool { return b.Body.Attributes[name] != nil }) {
		return
	}
	d.fail("missing-argument", d.f.rng(b.DefRange()), "the mock has no response", "write "+names[0]+" = …")
}

// noResponse reports arguments that only responses to requests have.
func (d *decoder) noResponse(b *hclsyntax.Block) {
	for _, name := range []string{"status", "headers"} {
		d.rejectAttr(b.Body, name, "only responses to requests have \""+name+"\"", "remove it")
	}
}

// endOfProgram converts the text of a mock to the output of the program, and checks its JSON.
func (d *decoder) endOfProgram(b *hclsyntax.Block, m *definition.Mock, hasText bool) {
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
	var output struct {
		Code           int
		Stdout, Stderr string
	}
	known := json.Unmarshal(m.Body, &end) == nil && json.Unmarshal(m.Body, &output) == nil
	for name := range end {
		known = known && (name == "code" || name == "stdout" || name == "stderr")
	}
	if !known {
		d.fail("bad-value", d.f.rng(attr.Expr.Range()), "this is not the result of a program", `write { code = 0, stdout = "…", stderr = "…" }, or a part of it`)
	}
}

// mockKind defines the mocks of one kind of object.
type mockKind struct {
	// bare: the object has no name after its kind.
	bare                  bool
	badObject, objectForm string
	// fits reports whether the second label is valid; if nil, answer checks it.
	fits                    func(request string) bool
	badRequest, requestForm string
	// answer checks the response of the mock.
	answer func(d *decoder, b *hclsyntax.Block, m *definition.Mock)
}

const (
	notGranted  = "this is not an object that a tool can be granted"
	localForms  = `write mock "fs.NAME" "readText PATH" { … }, or mock "env" "NAME" { … }`
	mockTools   = "tools"
	mockModules = "modules"
)

// mockKinds are the kinds of objects without a server or client, by the first part of the first
// label.
var mockKinds = map[string]mockKind{
	"fs": {badObject: notGranted, objectForm: localForms, answer: (*decoder).fileMock},
	"env": {bare: true, badObject: notGranted, objectForm: localForms,
		fits: isIdentifier, badRequest: "this is not a valid variable name", requestForm: "write the name, such as \"LANG\"", answer: (*decoder).envMock},
	"secrets": {bare: true,
		fits: isIdentifier, badRequest: "this is not a valid secret name", requestForm: "write the name, such as \"webhook_key\"", answer: (*decoder).secretsMock},
	"kv": {badObject: "this is not a valid kv object", objectForm: "write it as in \"kv.notes\"",
		fits:       func(key string) bool { return key != "" && len(key) <= grant.MaxKey },
		badRequest: "this is not a valid key", requestForm: fmt.Sprintf("write 1 to %d bytes of text", grant.MaxKey), answer: (*decoder).kvMock},
	"exec": {badObject: "this is not a valid exec object", objectForm: `write mock "exec.NAME" "ARGUMENTS" { … }`,
		answer: func(d *decoder, b *hclsyntax.Block, _ *definition.Mock) { d.needs(b, "text", "json") }},
	"sql": {badObject: "this is not a valid sql object", objectForm: "write it as in \"sql.shop\"", answer: (*decoder).sqlMock},
	mockModules: {badObject: "this is not a valid module object", objectForm: `write it as in mock "modules.ledger" "balance" { … }`,
		fits: isIdentifier, badRequest: "this is not a valid function name", requestForm: "write only the name, such as \"balance\"",
		answer: func(d *decoder, b *hclsyntax.Block, _ *definition.Mock) { d.needs(b, "json", "text") }},
	mockTools: {bare: true, badObject: "tool mocks have no object name", objectForm: `write mock "tools" "{name}" { … }`,
		fits: definition.IsName, badRequest: "this is not a valid tool name", requestForm: fmt.Sprintf("write only the name, at most %d characters", definition.MaxName),
		answer: func(d *decoder, b *hclsyntax.Block, _ *definition.Mock) { d.needs(b, "json", "text") }},
}

func (d *decoder) envMock(b *hclsyntax.Block, _ *definition.Mock) {
	const problem, detail = "an environment variable is text", "use \"text\"; without a mock, the variable does not exist"
	if !d.rejectAttr(b.Body, "json", problem, detail) && !d.rejectAttr(b.Body, "error", problem, detail) {
		d.needs(b, "text")
	}
}

func (d *decoder) secretsMock(b *hclsyntax.Block, _ *definition.Mock) {
	if !d.rejectAttr(b.Body, "json", "a secret is text", "use \"text\"") {
		d.needs(b, "text")
	}
}

func (d *decoder) kvMock(b *hclsyntax.Block, _ *definition.Mock) {
	if !d.rejectAttr(b.Body, "error", "a key has a value, not an error", "write json = … with the value of the key") {
		d.askMock(b)
	}
}

// sqlMock checks the rows or the number of changes in the response of a statement.
func (d *decoder) sqlMock(b *hclsyntax.Block, m *definition.Mock) {
	first, path, _ := strings.Cut(m.Request, " ")
	switch text := b.Body.Attributes["text"]; {
	case first == "open" && path == "" || first != "open" && !isIdentifier(first):
		d.fail("bad-name", d.f.rng(b.LabelRanges[1]), "this is not a statement", "write the name of the statement, optionally followed by the path of the file, or \"open PATH\"")
	case text != nil:
		d.fail("contradiction", d.f.rng(text.NameRange), "the response of a statement is not text", "write json = [{ … }] with the rows, or json = { changes = 1 }")
	case first != "open":
		d.needs(b, "json")
	}
}
