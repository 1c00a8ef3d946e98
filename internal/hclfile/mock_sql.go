package hclfile

import (
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"
)

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
