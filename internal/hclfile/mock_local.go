package hclfile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/diag"
)

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
