package hclfile

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/mcpd/mcpd/diag"
)

// errorCodes are what a test may expect of a call that fails (RFC section 14).
var errorCodes = []string{"INVALID_INPUT", "TOOL_NOT_FOUND", "POLICY_DENIED", "EXECUTION_ERROR", "TIMEOUT"}

// expect decodes what a test wants of what the argument target names.
func (d *decoder) expect(b *hclsyntax.Block, target string) Expect {
	d.checkBody(b)
	e := Expect{
		Output: d.json(b.Body, "output"), MIMEType: d.mimeType(b.Body, "mime_type"), Messages: d.expectedMessages(b.Body),
		Range: d.f.rng(b.DefRange()),
	}
	if text, ok := d.text(b.Body, "text"); ok {
		e.Text = &text
	}
	e.Error, _ = d.oneOf(b.Body, "error", errorCodes...)
	if s, ok := d.text(b.Body, "message_matches"); ok && d.regexp(s, b.Body.Attributes["message_matches"].Expr) != nil {
		e.MessageMatches = s
	}
	if s, ok := d.text(b.Body, "denied_by"); ok {
		e.DeniedBy, e.DeniedByRange = s, d.f.rng(b.Body.Attributes["denied_by"].Expr.Range())
	}
	if calls, ok := d.strings(b.Body, "calls"); ok {
		e.Calls = textsOf(calls)
	}
	if values, ok := d.strings(b.Body, "values"); ok {
		e.Values = textsOf(values)
	}
	d.checkExpect(b)
	d.checkKind(b, target)
	return e
}

// checkExpect reports expectations that cannot hold together.
func (d *decoder) checkExpect(b *hclsyntax.Block) {
	if len(b.Body.Attributes) == 0 && len(b.Body.Blocks) == 0 {
		d.fail("missing-argument", d.f.rng(b.DefRange()), "the test expects nothing", "write output = …, text = … or error = …")
	}
	for _, failure := range []string{"error", "message_matches", "denied_by"} {
		for _, success := range []string{"output", "text", "mime_type", "messages", "values"} {
			f, s := b.Body.Attributes[failure], b.Body.Attributes[success]
			if f == nil || s == nil {
				continue
			}
			d.fail("contradiction", d.f.rng(s.NameRange), fmt.Sprintf("the test expects %q and %q of one call", success, failure), "a call that fails has no result; write two tests",
				diag.Note{Range: d.f.rng(f.NameRange), Message: fmt.Sprintf("%q is expected here", failure)})
		}
	}
}

// checkKind reports expectations of what the call does not return.
func (d *decoder) checkKind(b *hclsyntax.Block, target string) {
	for _, only := range []struct{ argument, target string }{{"output", "tool"}, {"mime_type", "resource"}, {"messages", "prompt"}, {"values", completion}} {
		if attr := b.Body.Attributes[only.argument]; attr != nil && target != "" && target != only.target {
			d.fail("contradiction", d.f.rng(attr.NameRange), fmt.Sprintf("a %s has no %q", target, only.argument), fmt.Sprintf("only a %s has it", only.target))
		}
	}
	if text := b.Body.Attributes["text"]; text != nil && target == completion {
		d.fail("contradiction", d.f.rng(text.NameRange), "a completion has no \"text\"", "write values = [ … ]")
	}
}

// expectedMessages decodes the messages of a prompt, each of which has a role,
// and text or content.
func (d *decoder) expectedMessages(body *hclsyntax.Body) json.RawMessage {
	word := &valueType{kind: stringKind}
	message := optional(map[string]*valueType{"role": word, "text": word, "content": {kind: anyKind}}, "role", "text", "content")
	v, ok := d.objectArg(body, "messages", &valueType{kind: listKind, elem: message})
	if !ok {
		return nil
	}
	out := []byte{'['}
	for i, item := range v.AsValueSlice() {
		if i > 0 {
			out = append(out, ',')
		}
		out = d.appendMessage(out, itemExpr(body.Attributes["messages"].Expr, i), item)
	}
	return append(out, ']')
}

func (d *decoder) appendMessage(out []byte, x hclsyntax.Expression, v cty.Value) []byte {
	role := member(v, "role")
	if !slices.Contains([]string{User, Assistant}, role) || hasMember(v, "text") == hasMember(v, "content") {
		d.fail("bad-value", d.f.rng(x.Range()), "this is no message", "write { role = \"user\", text = \"…\" }, or the role \"assistant\", or content = { … } instead of the text")
	}
	out = append(appendString(append(out, `{"role":`...), role), `,"content":`...)
	text := member(v, "text")
	if hasMember(v, "content") {
		content := v.GetAttr("content")
		if !hasKind(content, stringKind) {
			return append(appendJSON(out, content), '}')
		}
		text = content.AsString() // as a body may write a text
	}
	return append(appendString(append(out, `{"type":"text","text":`...), text), "}}"...)
}
