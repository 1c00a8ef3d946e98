package hclfile

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/mcpd/mcpd/diag"
)

// maxTestName is the length in bytes of a test's name, which is a sentence.
const maxTestName = 200

// errorCodes are what a test may expect of a call that fails (RFC section 14).
var errorCodes = []string{"INVALID_INPUT", "TOOL_NOT_FOUND", "POLICY_DENIED", "EXECUTION_ERROR", "TIMEOUT"}

// test decodes a test block.
func (d *decoder) test(b *hclsyntax.Block) Test {
	r := rules["test"]
	d.check(b.Body, r, "a test block", b.DefRange())
	d.eval.reads = d.hashOf(b)
	t := Test{Name: b.Labels[0], Range: d.f.rng(blockRange(b)), NameRange: d.f.rng(b.LabelRanges[0]), Input: json.RawMessage("{}")}
	if strings.TrimSpace(t.Name) == "" || len(t.Name) > maxTestName {
		d.fail("bad-name", t.NameRange, "the test has a bad name", fmt.Sprintf("say in 1 to %d bytes what it shows", maxTestName))
	}
	if name, ok := d.text(b.Body, "tool"); ok {
		t.Tool, t.ToolRange = name, d.f.rng(b.Body.Attributes["tool"].Expr.Range())
	}
	d.eval.private = true
	if input := d.jsonObject(b.Body, "input"); input != nil {
		t.Input = input
	}
	t.Principal, t.Agent = d.principal(b.Body), d.agent(b.Body)
	for _, inner := range blocks(b.Body, r) {
		if inner.Type == "mock" {
			t.Mocks = append(t.Mocks, d.mock(inner))
		}
	}
	d.eval.private = false
	if expect := first(b.Body, "expect"); expect != nil {
		t.Expect = d.expect(expect)
	} else if !meant(b.Body, r, "expect") {
		d.fail("missing-argument", d.f.rng(b.DefRange()), "the test expects nothing", "write expect { output = … }, or { error = \"…\" }")
	}
	t.Hash = Hash(d.eval.reads.Sum(nil))
	d.eval.reads = nil
	return t
}

// jsonObject decodes an argument that is an object, as JSON.
func (d *decoder) jsonObject(body *hclsyntax.Body, name string) json.RawMessage {
	raw := d.json(body, name)
	if raw == nil {
		return nil
	}
	if raw[0] != '{' {
		d.fail("wrong-type", d.f.rng(body.Attributes[name].Expr.Range()), fmt.Sprintf("%q must be an object", name), "write it in braces: { key = value }")
		return nil
	}
	return raw
}

// json decodes an argument of any type as JSON, or returns nil.
func (d *decoder) json(body *hclsyntax.Body, name string) json.RawMessage {
	attr := body.Attributes[name]
	if attr == nil {
		return nil
	}
	raw, ok := d.eval.jsonOf(attr.Expr, nil)
	if !ok {
		return nil
	}
	return raw
}

// optional returns an object type whose attributes may all be absent.
func optional(attrs map[string]*valueType, order ...string) *valueType {
	t := &valueType{kind: objectKind}
	for _, name := range order {
		t.attrs = append(t.attrs, attrType{name: name, typ: attrs[name], optional: true})
	}
	return t
}

// objectArg decodes an argument that is an object of a known type.
func (d *decoder) objectArg(body *hclsyntax.Body, name string, t *valueType) (cty.Value, bool) {
	attr := body.Attributes[name]
	if attr == nil {
		return cty.NilVal, false
	}
	v, ok := d.eval.value(attr.Expr)
	if !ok || !d.bounded(attr.Expr, v) || !d.conform(attr.Expr, v, t, fmt.Sprintf("%q", name)) {
		return cty.NilVal, false
	}
	return v, true
}

func (d *decoder) principal(body *hclsyntax.Body) *TestPrincipal {
	word, list := &valueType{kind: stringKind}, &valueType{kind: listKind, elem: &valueType{kind: stringKind}}
	claims := &valueType{kind: mapKind, elem: &valueType{kind: anyKind}}
	v, ok := d.objectArg(body, "principal", optional(
		map[string]*valueType{"id": word, "kind": word, "scopes": list, "groups": list, "claims": claims},
		"id", "kind", "scopes", "groups", "claims"))
	if !ok {
		return nil
	}
	p := &TestPrincipal{ID: member(v, "id"), Kind: member(v, "kind"), Scopes: members(v, "scopes"), Groups: members(v, "groups")}
	if hasMember(v, "claims") {
		p.Claims = appendJSON(nil, v.GetAttr("claims"))
	}
	return p
}

func (d *decoder) agent(body *hclsyntax.Body) *TestAgent {
	word := &valueType{kind: stringKind}
	v, ok := d.objectArg(body, "agent", optional(
		map[string]*valueType{"agent_id": word, "model": word, "metadata": {kind: mapKind, elem: word}},
		"agent_id", "model", "metadata"))
	if !ok {
		return nil
	}
	a := &TestAgent{ID: member(v, "agent_id"), Model: member(v, "model")}
	if hasMember(v, "metadata") {
		a.Metadata = map[string]string{}
		for it := v.GetAttr("metadata").ElementIterator(); it.Next(); {
			key, value := it.Element()
			a.Metadata[key.AsString()] = value.AsString()
		}
	}
	return a
}

func hasMember(v cty.Value, name string) bool {
	return v.Type().IsObjectType() && v.Type().HasAttribute(name)
}

func member(v cty.Value, name string) string {
	if !hasMember(v, name) {
		return ""
	}
	return v.GetAttr(name).AsString()
}

func members(v cty.Value, name string) []string {
	list := []string{}
	if hasMember(v, name) {
		for it := v.GetAttr(name).ElementIterator(); it.Next(); {
			_, item := it.Element()
			list = append(list, item.AsString())
		}
	}
	return list
}

func (d *decoder) mock(b *hclsyntax.Block) Mock {
	d.check(b.Body, rules["mock"], "a mock block", b.DefRange())
	m := Mock{Object: b.Labels[0], Request: b.Labels[1], Status: 200, Range: d.f.rng(b.DefRange())}
	if kind, name, _ := strings.Cut(m.Object, "."); kind != "http" || !isIdentifier(name) {
		d.fail("bad-name", d.f.rng(b.LabelRanges[0]), "this is not an object that a tool is granted", "write its kind and name, such as \"http.crm\"")
	}
	d.checkRequest(b, m.Request)
	if status, ok := d.whole(b.Body, "status", 100, 599); ok {
		m.Status = status
	}
	m.Headers = d.textMap(b.Body, "headers")
	text, hasText := d.text(b.Body, "text")
	if j := b.Body.Attributes["json"]; j != nil && b.Body.Attributes["text"] != nil {
		d.fail("contradiction", d.f.rng(j.NameRange), "the mock has both \"json\" and \"text\"", "keep one of the two")
	}
	m.Body = d.json(b.Body, "json")
	if hasText {
		m.Body = []byte(text)
	}
	return m
}

// checkRequest reports a label that is not a method and a path.
func (d *decoder) checkRequest(b *hclsyntax.Block, request string) {
	method, path, _ := strings.Cut(request, " ")
	if !isToken(method) || method != strings.ToUpper(method) || !strings.HasPrefix(path, "/") || strings.ContainsAny(path, " \t\n") {
		d.fail("bad-name", d.f.rng(b.LabelRanges[1]), "this is not a request", "write the method and the path, such as \"GET /customers/C-1042\"")
	}
}

func (d *decoder) expect(b *hclsyntax.Block) Expect {
	d.check(b.Body, rules["expect"], "an expect block", b.DefRange())
	e := Expect{Output: d.json(b.Body, "output"), Range: d.f.rng(b.DefRange())}
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
	d.checkExpect(b)
	return e
}

// checkExpect reports expectations that cannot hold together.
func (d *decoder) checkExpect(b *hclsyntax.Block) {
	if len(b.Body.Attributes) == 0 && len(b.Body.Blocks) == 0 {
		d.fail("missing-argument", d.f.rng(b.DefRange()), "the test expects nothing", "write output = …, text = … or error = …")
	}
	for _, failure := range []string{"error", "message_matches", "denied_by"} {
		for _, success := range []string{"output", "text"} {
			f, s := b.Body.Attributes[failure], b.Body.Attributes[success]
			if f == nil || s == nil {
				continue
			}
			d.fail("contradiction", d.f.rng(s.NameRange), fmt.Sprintf("the test expects %q and %q of one call", success, failure), "a call that fails has no result; write two tests",
				diag.Note{Range: d.f.rng(f.NameRange), Message: fmt.Sprintf("%q is expected here", failure)})
		}
	}
}
