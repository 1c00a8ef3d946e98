package hclfile

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/base/jsontext"
	"github.com/mcpd/mcpd/internal/language/definition"
)

// maxTestName bounds the name of a test, in bytes. It is a sentence.
const maxTestName = 200

func (d *decoder) test(b *hclsyntax.Block) definition.Test {
	r := rules["test"]
	d.checkBody(b)
	d.begin(b)
	t := definition.Test{Name: b.Labels[0], NameRange: d.f.rng(b.LabelRanges[0]), Input: json.RawMessage("{}")}
	if strings.TrimSpace(t.Name) == "" || len(t.Name) > maxTestName {
		d.fail("bad-name", t.NameRange, "the test has an invalid name", fmt.Sprintf("describe the test in 1 to %d bytes", maxTestName))
	}
	target := d.target(b, &t)
	d.eval.allowSensitive = true
	d.input(b.Body, target, &t)
	t.Vars = d.testVars(b.Body)
	t.Principal, t.Agent, t.Source = d.principal(b.Body), d.agent(b.Body), d.source(b.Body)
	for _, inner := range ofType(blocks(b.Body, r), "mock") {
		t.Mocks = append(t.Mocks, d.mock(inner))
	}
	d.eval.allowSensitive = false
	if expect := first(b.Body, "expect"); expect != nil {
		t.Expect = d.expect(expect, target)
	} else if !d.hasSimilar(b.Body, r, "expect") {
		d.fail("missing-argument", d.f.rng(b.DefRange()), "the test expects nothing", "write expect { output = … }, or { error = \"…\" }")
	}
	t.Hashes = d.hashes()
	return t
}

// target decodes the target of a test. It returns the name of its argument, or "".
func (d *decoder) target(b *hclsyntax.Block, t *definition.Test) string {
	target := d.exactlyOne(b, rules["test"], "the test has no target", "tool", "resource", "prompt")
	if target == "" {
		return ""
	}
	t.TargetRange = d.f.rng(b.Body.Attributes[target].Expr.Range())
	complete := b.Body.Attributes["complete"]
	if target == "resource" {
		t.Resource = d.testedURI(b.Body)
	} else {
		d.testedName(b.Body, target, t)
	}
	if complete == nil {
		return target
	}
	if target == "tool" {
		d.fail("contradiction", d.f.rng(complete.NameRange), "the inputs of a tool have no completion", "use a prompt, or a template as resource, or remove it")
		return ""
	}
	t.Complete, _ = d.text(b.Body, "complete")
	t.CompleteRange = d.f.rng(complete.Expr.Range())
	return completion
}

// completion is the target of a test with the argument complete.
const completion = "completion"

// testedName decodes the name of the tested tool or prompt.
func (d *decoder) testedName(body *hclsyntax.Body, target string, t *definition.Test) {
	name, ok := d.text(body, target)
	if ok && name == "" {
		d.fail("bad-name", t.TargetRange, "the test has no "+target, "write the name of the "+target)
	}
	if target == "tool" {
		t.Tool = name
	} else {
		t.Prompt = name
	}
}

// testedURI decodes the URI of the tested resource, or the template with the completed
// variable.
func (d *decoder) testedURI(body *hclsyntax.Body) string {
	uri, ok := d.text(body, "resource")
	switch {
	case !ok:
		return ""
	case body.Attributes["complete"] != nil:
		return uri
	case !definition.HasScheme(uri):
		d.fail("bad-uri", d.f.rng(body.Attributes["resource"].Expr.Range()), "the URI is not absolute",
			"write the URI of the resource, not its name, such as \"docs://handbook\"")
		return ""
	}
	uri, _ = d.uri(body, "resource")
	return uri
}

func (d *decoder) input(body *hclsyntax.Body, target string, t *definition.Test) {
	attr := body.Attributes["input"]
	switch {
	case attr == nil:
	case target == "resource":
		d.fail("contradiction", d.f.rng(attr.NameRange), "a resource has no input", "remove it: the URI contains the values")
	case target == "prompt", target == completion:
		if v, ok := d.objectArg(body, "input", &valueType{kind: mapKind, elem: &valueType{kind: stringKind}}); ok {
			t.Input = appendJSON(nil, v)
		}
	default:
		if input := d.jsonObject(body, "input"); input != nil {
			t.Input = input
		}
	}
}

func (d *decoder) principal(body *hclsyntax.Body) *definition.TestPrincipal {
	word, list := &valueType{kind: stringKind}, &valueType{kind: listKind, elem: &valueType{kind: stringKind}}
	claims := &valueType{kind: mapKind, elem: &valueType{kind: anyKind}}
	v, ok := d.objectArg(body, "principal", optional(
		map[string]*valueType{"id": word, "kind": word, "issuer": word, "scopes": list, "groups": list, "claims": claims},
		"id", "kind", "issuer", "scopes", "groups", "claims"))
	if !ok {
		return nil
	}
	d.checkKindOf(body.Attributes["principal"].Expr, member(v, "kind"))
	p := &definition.TestPrincipal{ID: member(v, "id"), Kind: member(v, "kind"), Issuer: member(v, "issuer"), Scopes: members(v, "scopes"), Groups: members(v, "groups")}
	if hasMember(v, "claims") {
		p.Claims = appendJSON(nil, v.GetAttr("claims"))
	}
	return p
}

func (d *decoder) agent(body *hclsyntax.Body) *definition.TestAgent {
	word := &valueType{kind: stringKind}
	v, ok := d.objectArg(body, "agent", optional(
		map[string]*valueType{"agent_id": word, "model": word, "metadata": {kind: mapKind, elem: word}, "verified": {kind: boolKind}},
		"agent_id", "model", "metadata", "verified"))
	if !ok {
		return nil
	}
	a := &definition.TestAgent{ID: member(v, "agent_id"), Model: member(v, "model"), Verified: hasMember(v, "verified") && v.GetAttr("verified").True()}
	if hasMember(v, "metadata") {
		a.Metadata = map[string]string{}
		for it := v.GetAttr("metadata").ElementIterator(); it.Next(); {
			key, value := it.Element()
			a.Metadata[key.AsString()] = value.AsString()
		}
	}
	return a
}

// principalKinds are the kinds of identity.Principal.
var principalKinds = []string{"anonymous", "local", "key", "jwt", "mtls"}

// checkKindOf reports an unknown kind of principal.
func (d *decoder) checkKindOf(x hclsyntax.Expression, kind string) {
	if kind == "" || slices.Contains(principalKinds, kind) {
		return
	}
	_, at := d.memberExprs(x)("kind")
	d.fail("bad-value", d.f.rng(at.Range()), "this is not a kind of principal",
		cmp.Or(diag.DidYouMean(kind, principalKinds), "use one of "+strings.Join(principalKinds, ", ")))
}

// source decodes the origin of the call of a test.
func (d *decoder) source(body *hclsyntax.Body) *definition.TestSource {
	word := &valueType{kind: stringKind}
	v, ok := d.objectArg(body, "source", optional(map[string]*valueType{"listener": word, "ip": word}, "listener", "ip"))
	if !ok {
		return nil
	}
	ip := member(v, "ip")
	if _, err := netip.ParseAddr(ip); ip != "" && err != nil {
		_, at := d.memberExprs(body.Attributes["source"].Expr)("ip")
		d.fail("bad-value", d.f.rng(at.Range()), "this is not an IP address", "write an address such as \"192.0.2.1\" or \"2001:db8::1\"")
	}
	return &definition.TestSource{Listener: member(v, "listener"), IP: ip}
}

// testVars decodes the values of variables in a test. Each is checked against the type of its
// variable and reported at its position.
func (d *decoder) testVars(body *hclsyntax.Body) map[string]json.RawMessage {
	v, ok := d.objectArg(body, "vars", &valueType{kind: mapKind, elem: &valueType{kind: anyKind}})
	if !ok {
		return nil
	}
	exprs := d.memberExprs(body.Attributes["vars"].Expr)
	vars := map[string]json.RawMessage{}
	for it := v.ElementIterator(); it.Next(); {
		key, value := it.Element()
		name := key.AsString()
		nameAt, at := exprs(name)
		declared, known := d.eval.scope.Vars[name]
		typ, readable := declared.Decoded().(*valueType)
		switch {
		case !known && slices.Contains(d.eval.scope.Secrets, name):
			d.fail("misplaced-secret", d.f.rng(nameAt.Range()), fmt.Sprintf("%q is a secret, not a variable", name),
				fmt.Sprintf("use mock \"secrets\" %q { text = … }", name))
		case !known:
			d.eval.unknown("variable", name, nameAt.Range(), maps.Keys(d.eval.scope.Vars), "declare it in mcpd.hcl, or remove it")
		case !readable: // its declaration has the error
		case d.checkType(at, value, typ, fmt.Sprintf("the variable %q", name)):
			vars[name] = appendJSON(nil, value)
		}
	}
	return vars
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

// errorCodes are the error codes that a test may expect (RFC section 14).
var errorCodes = []string{"INVALID_INPUT", "TOOL_NOT_FOUND", "POLICY_DENIED", "EXECUTION_ERROR", "TIMEOUT"}

// expect decodes the expected outcome for the target argument.
func (d *decoder) expect(b *hclsyntax.Block, target string) definition.Expect {
	d.checkBody(b)
	e := definition.Expect{
		Output: d.json(b.Body, "output"), MIMEType: d.mimeType(b.Body), Messages: d.expectedMessages(b.Body),
	}
	if text, ok := d.text(b.Body, "text"); ok {
		e.Text = &text
	}
	e.Error = d.enumAttr(b.Body, "error", errorCodes...)
	if s, ok := d.text(b.Body, "message_matches"); ok && d.regexp(s, b.Body.Attributes["message_matches"].Expr) != nil {
		e.MessageMatches = s
	}
	if s, ok := d.text(b.Body, "denied_by"); ok {
		e.DeniedBy, e.DeniedByRange = s, d.f.rng(b.Body.Attributes["denied_by"].Expr.Range())
	}
	if calls, ok := d.stringList(b.Body, "calls"); ok {
		e.Calls = textsOf(calls)
	}
	if values, ok := d.stringList(b.Body, "values"); ok {
		e.Values = textsOf(values)
	}
	d.checkExpect(b)
	d.checkKind(b, target)
	return e
}

// checkExpect reports expectations that contradict each other.
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
			d.fail("contradiction", d.f.rng(s.NameRange), fmt.Sprintf("the test expects both %q and %q", success, failure), "write two tests: a failed call has no result",
				diag.Note{Range: d.f.rng(f.NameRange), Message: fmt.Sprintf("%q is expected here", failure)})
		}
	}
}

// checkKind reports expectations that do not fit the target.
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

// expectedMessages decodes the messages of a prompt. Each has a role, and text or content.
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
	if !slices.Contains([]string{definition.User, definition.Assistant}, role) || hasMember(v, "text") == hasMember(v, "content") {
		d.fail("bad-value", d.f.rng(x.Range()), "this is not a message", "write { role = \"user\", text = \"…\" }, with role user or assistant, and text or content")
	}
	out = append(jsontext.AppendString(append(out, `{"role":`...), role), `,"content":`...)
	text := member(v, "text")
	if hasMember(v, "content") {
		content := v.GetAttr("content")
		if !hasKind(content, stringKind) {
			return append(appendJSON(out, content), '}')
		}
		text = content.AsString() // scripts may return text
	}
	return append(jsontext.AppendString(append(out, `{"type":"text","text":`...), text), "}}"...)
}
