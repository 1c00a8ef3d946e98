package hclfile

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/diag"
)

// mockForms says how a mock block begins.
const mockForms = `write mock "http.NAME" "GET /path" { … }, mock "fs.NAME" "readText PATH" { … }, mock "env" "NAME" { … }, mock "secrets" "NAME" { … }, mock "kv.NAME" "KEY" { … }, mock "exec.NAME" "ARGUMENTS" { … }, mock "sql.NAME" "STATEMENT" { … }, mock "tools" "NAME" { … }, mock "modules.NAME" "FUNCTION" { … }, or mock "elicit" "KEY" { … } with the key that the body gives, or else "elicit" again`

// mock decodes a mock block.
func (d *decoder) mock(b *hclsyntax.Block) Mock {
	d.check(b.Body, rules["mock"], "a mock block", b.DefRange())
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
