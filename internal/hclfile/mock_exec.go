package hclfile

import (
	"encoding/json"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"
)

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
