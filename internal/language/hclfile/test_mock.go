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

// mockForms says how a mock block begins.
const mockForms = `write mock "http.NAME" "GET /path" { … }, mock "fs.NAME" "readText PATH" { … }, mock "env" "NAME" { … }, mock "secrets" "NAME" { … }, mock "kv.NAME" "KEY" { … }, mock "exec.NAME" "ARGUMENTS" { … }, mock "sql.NAME" "STATEMENT" { … }, mock "tools" "NAME" { … }, mock "modules.NAME" "FUNCTION" { … }, or mock "elicit" "KEY" { … } with the key that the body gives, or else "elicit" again`

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
func (d *decoder) httpMock(b *hclsyntax.Block, m *definition.Mock) {
	if kind, name, _ := strings.Cut(m.Object, "."); kind != "http" || !isIdentifier(name) {
		d.fail("bad-name", d.f.rng(b.LabelRanges[0]), notGranted, "write its kind and name, such as \"http.crm\", \"fs.logs\", \"kv.notes\" or \"exec.git\", or \"env\", \"secrets\", \"tools\", \"elicit\", \"sample\" or \"roots\"")
		m.Object = ""
	}
	d.checkRequest(b, m.Request)
	m.Status = cmp.Or(d.intAttr(b.Body, "status", 100, 599), m.Status)
	m.Headers = d.stringMap(b.Body, "headers")
}

// askMock checks the answer of a client or what a key holds, which is JSON, and
// of a model perhaps its text alone.
func (d *decoder) askMock(b *hclsyntax.Block) {
	object := b.Labels[0]
	d.noResponse(b)
	if d.rejectAttr(b.Body, "error", "who is asked answers with no error", "write json = { action = \"decline\" } or json = { action = \"cancel\" }") {
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

// fileMock checks the method and path of a mock of files, and what it answers.
func (d *decoder) fileMock(b *hclsyntax.Block, m *definition.Mock) {
	method, path, _ := strings.Cut(m.Request, " ")
	answers, known := fileMethods[method]
	switch {
	case !known:
		d.fail("bad-name", d.f.rng(b.LabelRanges[1]), "files have no method "+d.eval.show(method), orList(diag.DidYouMean(method, fileMethodNames()), "write one of", fileMethodNames()))
	case path == "":
		d.fail("bad-name", d.f.rng(b.LabelRanges[1]), "the path is missing", fmt.Sprintf("write it behind the method, such as \"%s notes.txt\"", method))
	case answers != nil:
		d.needs(b, answers...)
	}
}

func fileMethodNames() []string {
	return []string{"readText", "lines", "readBytes", "writeText", "writeBytes", "list", "stat", "remove"}
}

// needs reports a mock that holds none of the named answers, and no error.
func (d *decoder) needs(b *hclsyntax.Block, names ...string) {
	if slices.ContainsFunc(append(names, "error"), func(name string) bool { return b.Body.Attributes[name] != nil }) {
		return
	}
	d.fail("missing-argument", d.f.rng(b.DefRange()), "the mock holds no answer", "write "+names[0]+" = …")
}

// noResponse reports what only the answer to a request has.
func (d *decoder) noResponse(b *hclsyntax.Block) {
	for _, name := range []string{"status", "headers"} {
		d.rejectAttr(b.Body, name, "only answers to requests have \""+name+"\"", "remove it")
	}
}

// endOfProgram makes the text of a mock what the program writes, and checks what
// it says as JSON.
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

// mockKind says how mocks of one kind of object are written.
type mockKind struct {
	// bare: the object has no name behind its kind.
	bare                  bool
	badObject, objectForm string
	// fits reports whether the second label is right, nil where answer says so.
	fits                    func(request string) bool
	badRequest, requestForm string
	// answer checks what the mock answers.
	answer func(d *decoder, b *hclsyntax.Block, m *definition.Mock)
}

const (
	notGranted  = "this is not an object that a tool is granted"
	localForms  = `write mock "fs.NAME" "readText PATH" { … }, or mock "env" "NAME" { … }`
	mockTools   = "tools"
	mockModules = "modules"
)

// mockKinds are the kinds of objects whose mocks no server or client answers, by what
// their first labels begin with.
var mockKinds = map[string]mockKind{
	"fs": {badObject: notGranted, objectForm: localForms, answer: (*decoder).fileMock},
	"env": {bare: true, badObject: notGranted, objectForm: localForms,
		fits: isIdentifier, badRequest: "this is not the name of a variable", requestForm: "write the name, such as \"LANG\"", answer: (*decoder).envMock},
	"secrets": {bare: true,
		fits: isIdentifier, badRequest: "this is not the name of a secret", requestForm: "write the name, such as \"webhook_key\"", answer: (*decoder).secretsMock},
	"kv": {badObject: "this is not the name of kept values", objectForm: "write it as in \"kv.notes\"",
		fits:       func(key string) bool { return key != "" && len(key) <= grant.MaxKey },
		badRequest: "this is not a key", requestForm: fmt.Sprintf("write 1 to %d bytes of text", grant.MaxKey), answer: (*decoder).kvMock},
	"exec": {badObject: "this is not the name of a program that is granted", objectForm: `write mock "exec.NAME" "ARGUMENTS" { … }`,
		answer: func(d *decoder, b *hclsyntax.Block, _ *definition.Mock) { d.needs(b, "text", "json") }},
	"sql": {badObject: "this is not the name of a database", objectForm: "write it as in \"sql.shop\"", answer: (*decoder).sqlMock},
	mockModules: {badObject: "this is not the name of a module", objectForm: `write it as in mock "modules.ledger" "balance" { … }`,
		fits: isIdentifier, badRequest: "this is not the name of a function", requestForm: "write the name alone, such as \"balance\"",
		answer: func(d *decoder, b *hclsyntax.Block, _ *definition.Mock) { d.needs(b, "json", "text") }},
	mockTools: {bare: true, badObject: "tools are called by their names alone", objectForm: `write mock "tools" "{name}" { … }`,
		fits: definition.IsName, badRequest: "this is not the name of a tool", requestForm: fmt.Sprintf("write the name alone, at most %d characters", definition.MaxName),
		answer: func(d *decoder, b *hclsyntax.Block, _ *definition.Mock) { d.needs(b, "json", "text") }},
}

func (d *decoder) envMock(b *hclsyntax.Block, _ *definition.Mock) {
	const problem, detail = "a variable of the environment is text", "write it as \"text\"; without a mock there is no such variable"
	if !d.rejectAttr(b.Body, "json", problem, detail) && !d.rejectAttr(b.Body, "error", problem, detail) {
		d.needs(b, "text")
	}
}

func (d *decoder) secretsMock(b *hclsyntax.Block, _ *definition.Mock) {
	if !d.rejectAttr(b.Body, "json", "a secret is text", "write it as \"text\"") {
		d.needs(b, "text")
	}
}

func (d *decoder) kvMock(b *hclsyntax.Block, _ *definition.Mock) {
	if !d.rejectAttr(b.Body, "error", "a key holds a value, and no error", "write json = … with what the key holds") {
		d.askMock(b)
	}
}

// sqlMock checks the rows that a statement answers with, or how many it changes.
func (d *decoder) sqlMock(b *hclsyntax.Block, m *definition.Mock) {
	first, path, _ := strings.Cut(m.Request, " ")
	switch text := b.Body.Attributes["text"]; {
	case first == "open" && path == "" || first != "open" && !isIdentifier(first):
		d.fail("bad-name", d.f.rng(b.LabelRanges[1]), "this is not a statement", "write the name of the statement, behind it the path of the file that the call chooses, or \"open PATH\"")
	case text != nil:
		d.fail("contradiction", d.f.rng(text.NameRange), "what a statement answers with is no text", "write json = [{ … }] with the rows, or json = { changes = 1 }")
	case first != "open":
		d.needs(b, "json")
	}
}
