package hclfile

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/definition"
)

func (d *decoder) policy(b *hclsyntax.Block) definition.Policy {
	nameAt := d.definition(b, "the policy")
	p := definition.Policy{
		Name: b.Labels[0], NameRange: nameAt,
		Targets: d.targets(b.Body, rules["policy"]),
		When:    d.cel(b.Body, "when"), Allow: d.cel(b.Body, "allow"), Deny: d.cel(b.Body, "deny"), Approval: d.cel(b.Body, "requires_approval"),
	}
	if d.decision(b); len(decisionExpressions(&p)) != 1 {
		p.Allow, p.Deny, p.Approval = nil, denyAll(p.NameRange), nil
	}
	p.OnResult = d.enumAttr(b.Body, "on", "call", "result") == "result"
	if approval := b.Body.Attributes["requires_approval"]; p.OnResult && approval != nil {
		d.fail("contradiction", d.f.rng(approval.NameRange), "a finished call needs no approval", "remove on = \"result\", or write allow or deny")
	}
	d.reason(b, &p)
	p.Disclose = cmp.Or(d.enumAttr(b.Body, "disclose", definition.DiscloseReason, definition.DiscloseGeneric, definition.DiscloseHide), definition.DiscloseReason)
	p.Hashes = d.hashes()
	return p
}

// denyAll replaces the decision of an invalid policy, so that it causes no further diagnostics.
// It denies every call.
func denyAll(where diag.Range) *definition.Code {
	return &definition.Code{Language: definition.CEL, Text: diag.NewText(where.File, "tool.name == tool.name", where.Start)}
}

func (d *decoder) cel(body *hclsyntax.Body, name string) *definition.Code {
	if attr := body.Attributes[name]; attr != nil {
		return d.code(attr, definition.CEL)
	}
	return nil
}

// decisionExpressions returns the deciding expressions of a policy. A valid policy has exactly one.
func decisionExpressions(p *definition.Policy) []*definition.Code {
	return slices.DeleteFunc([]*definition.Code{p.Allow, p.Deny, p.Approval}, func(b *definition.Code) bool { return b == nil })
}

// decisionNames are the deciding arguments. A policy has exactly one.
var decisionNames = [...]string{"allow", "deny", "requires_approval"}

// decision reports a policy without a decision, or with several.
func (d *decoder) decision(b *hclsyntax.Block) {
	var written []*hclsyntax.Attribute
	for _, name := range decisionNames {
		if attr := b.Body.Attributes[name]; attr != nil {
			written = append(written, attr)
		}
	}
	switch {
	case len(written) > 1:
		summary := fmt.Sprintf("the policy has both %q and %q", written[0].Name, written[1].Name)
		slices.SortFunc(written, func(a, b *hclsyntax.Attribute) int { return a.NameRange.Start.Byte - b.NameRange.Start.Byte })
		earlier, later := written[0], written[1]
		d.fail("contradiction", d.f.rng(later.NameRange), summary, "write two policies: every policy must allow a call",
			diag.Note{Range: d.f.rng(earlier.NameRange), Message: fmt.Sprintf("%q is set here", earlier.Name)})
	case !d.hasSimilar(b.Body, rules["policy"], decisionNames[:]...):
		d.fail("missing-argument", d.f.rng(b.DefRange()), "the policy decides nothing", "write allow = \"…\", deny = \"…\" or requires_approval = \"…\", a CEL expression")
	}
}

// reason decodes the reason: text, or a raw CEL heredoc that computes it.
func (d *decoder) reason(b *hclsyntax.Block, p *definition.Policy) {
	attr := b.Body.Attributes["reason"]
	if attr == nil {
		return
	}
	if t, ok := attr.Expr.(*hclsyntax.TemplateExpr); ok {
		if h := d.f.heredocAt(t); h != nil && h.raw {
			p.ReasonExpr = d.code(attr, definition.CEL)
			return
		}
	}
	if root := celNameIn(attr.Expr); root != "" {
		d.fail("unknown-name", d.f.rng(attr.Expr.Range()), fmt.Sprintf("a reason that uses %s must be computed", root), "write reason = <<CEL … CEL")
		return
	}
	text, ok := d.text(b.Body, "reason")
	if ok && text == "" {
		d.fail("bad-value", d.f.rng(attr.Expr.Range()), "the reason is empty", "write why a call is denied; the caller sees it")
	}
	if seemsComputed(text) {
		d.warn("bad-value", d.f.rng(attr.Expr.Range()), "callers see this reason literally, but it looks like CEL",
			"write reason = <<CEL … CEL to compute it")
	}
	p.Reason = text
}

// celNameIn returns the first name in an HCL expression that only CEL knows.
func celNameIn(x hclsyntax.Expression) string {
	for _, v := range x.Variables() {
		if root := v.RootName(); slices.Contains(celNames, root) {
			return root
		}
	}
	return ""
}

// seemsComputed reports whether a text looks like CEL that joins strings with values of a call.
func seemsComputed(text string) bool {
	packed := strings.ReplaceAll(text, " ", "")
	joins := func(part string) bool { return strings.Contains(packed, part) }
	if !slices.ContainsFunc([]string{"'+", "+'", `"+`, `+"`}, joins) {
		return false
	}
	return slices.ContainsFunc([]string{"args.", "args[", "principal.", "agent.", "tool.", "call.", "vars."}, joins)
}

// targets decodes the targets of a policy, a limit or a hook with rule r. If a list is invalid,
// the block matches nothing, because it was not intended to match everything.
func (d *decoder) targets(body *hclsyntax.Body, r *rule) definition.Targets {
	t := definition.Targets{
		Tools:     d.names(body, "tools", patternCharacters),
		Resources: d.names(body, "resources", "write the name of a resource block, not its URI; * matches any characters"),
		Prompts:   d.names(body, "prompts", "use the characters A-Z a-z 0-9 _ . - and * as wildcard"),
	}
	if d.hasSimilar(body, r, "tools", "resources", "prompts") {
		for _, list := range []*[]definition.Name{&t.Tools, &t.Resources, &t.Prompts} {
			if *list == nil {
				*list = []definition.Name{}
			}
		}
	}
	return t
}

func (d *decoder) names(body *hclsyntax.Body, argument, characters string) []definition.Name {
	return d.patterns(body, argument, patternTexts{
		wrong: "this is not a valid name of a " + strings.TrimSuffix(argument, "s"), characters: characters,
		empty: "the list of " + argument + " is empty", detail: fmt.Sprintf("add %s or patterns, or remove it: a block without lists matches everything", argument),
	})
}

func (d *decoder) toolPatterns(body *hclsyntax.Body, argument, characters string) []definition.Name {
	return d.patterns(body, argument, patternTexts{
		wrong: "this is not a valid tool name", characters: characters,
		empty: fmt.Sprintf("the list %q is empty", argument), detail: "add tools or patterns, or remove it",
	})
}

// patternCharacters is the advice for names and patterns of tools.
const patternCharacters = "use the characters A-Z a-z 0-9 _ . - / and * as wildcard"

// patternTexts are the messages for an invalid item and for an empty list.
type patternTexts struct{ wrong, characters, empty, detail string }

// patterns decodes names and patterns. It returns nil if the argument is missing.
func (d *decoder) patterns(body *hclsyntax.Body, argument string, texts patternTexts) []definition.Name {
	attr := body.Attributes[argument]
	if attr == nil {
		return nil
	}
	list, ok := d.stringList(body, argument)
	if ok && len(list) == 0 {
		d.fail("bad-value", d.f.rng(attr.Expr.Range()), texts.empty, texts.detail)
	}
	names := make([]definition.Name, 0, len(list))
	for _, e := range list {
		if !definition.IsPattern(e.text) {
			d.fail("bad-name", d.f.rng(e.where), texts.wrong, texts.characters)
			continue
		}
		names = append(names, definition.Name{Text: e.text, Range: d.f.rng(e.where)})
	}
	return names
}

// maxCalls bounds the calls of a rate and of a burst.
const maxCalls = 1_000_000

// rateForms is the advice for rates.
const rateForms = `write calls per time, such as "10/s", "60/m" or "1000/h"`

func (d *decoder) limit(b *hclsyntax.Block) definition.Limit {
	nameAt := d.definition(b, "the limit")
	l := definition.Limit{
		Name: b.Labels[0], NameRange: nameAt,
		Targets: d.targets(b.Body, rules["limit"]), Key: d.cel(b.Body, "key"),
	}
	l.Calls, l.Per = d.rate(b.Body)
	l.Burst = cmp.Or(d.intAttr(b.Body, "burst", 1, maxCalls), l.Calls)
	l.Concurrency = d.intAttr(b.Body, "concurrency", 1, maxConcurrency)
	l.Reason = d.matchingText(b.Body, "reason", isFilled, "the reason is empty", "write why a call is rejected, or remove it; callers see the wait in any case")
	l.FailOpen = d.enumAttr(b.Body, "on_store_failure", "deny", "allow") == "allow"
	switch {
	case !d.hasSimilar(b.Body, rules["limit"], "rate", "concurrency"):
		d.fail("missing-argument", d.f.rng(b.DefRange()), "the limit has no rate or concurrency", "write rate = \"60/m\", concurrency = 4, or both")
	case b.Body.Attributes["burst"] != nil && !d.hasSimilar(b.Body, rules["limit"], "rate"):
		d.fail("missing-argument", d.f.rng(b.Body.Attributes["burst"].NameRange), "a burst needs a rate", "add a rate, such as rate = \"60/m\", or remove it")
	}
	l.Hashes = d.hashes()
	return l
}

// rate decodes a rate. It returns 0 if it is missing or was reported.
func (d *decoder) rate(body *hclsyntax.Body) (calls int, per time.Duration) {
	text, where, ok := d.word(body, "rate", "a string", func(cty.Value) string { return rateForms })
	if !ok {
		return 0, 0
	}
	count, unit, _ := strings.Cut(text, "/")
	per = map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour}[unit]
	calls, err := strconv.Atoi(count)
	switch {
	case per == 0 || err != nil || strings.Trim(count, "0123456789") != "":
		d.fail("bad-value", where, "this is not a rate", meantRate(text))
	case calls < 1 || calls > maxCalls:
		d.fail("bad-value", where, "\"rate\" is out of range", fmt.Sprintf("write 1 to %d calls", maxCalls))
	default:
		return calls, per
	}
	return 0, 0
}

// meantRate guesses the rate for an invalid text, such as "60 per minute".
func meantRate(written string) string {
	text := strings.NewReplacer(" ", "", "per", "/", "rps", "/s", "rpm", "/m", "rph", "/h").Replace(strings.ToLower(written))
	count, unit, _ := strings.Cut(text, "/")
	unit = strings.TrimPrefix(unit, "1")
	n, err := strconv.ParseUint(count, 10, 32)
	if err != nil || unit == "" {
		return rateForms
	}
	for _, word := range []string{"seconds", "minutes", "hours"} {
		if strings.HasPrefix(word, unit) || unit == "hr" && word == "hours" {
			return fmt.Sprintf("did you mean \"%d/%s\"?", n, word[:1])
		}
	}
	return rateForms
}

func (d *decoder) hook(b *hclsyntax.Block) definition.Hook {
	nameAt := d.definition(b, "the hook")
	h := definition.Hook{
		Name: b.Labels[0], NameRange: nameAt,
		On: d.events(b.Body), Targets: d.targets(b.Body, rules["hook"]),
		Timeout: d.duration(b.Body, "timeout", definition.DefaultHookTimeout),
	}
	if attr := b.Body.Attributes["timeout"]; attr != nil {
		h.TimeoutRange = d.f.rng(attr.Expr.Range())
	}
	if allow := first(b.Body, "allow"); allow != nil {
		h.Grant, h.GrantRanges = d.allow(allow)
		if where, asks := h.GrantRanges["ask"]; asks {
			d.fail("bad-grant", where, "a hook cannot send input requests", "remove it: the call does not wait for the hook")
		}
		d.checkNoCaller(h.Grant, h.GrantRanges)
	}
	if run := d.run(b); run != nil {
		h.Run = *run
	}
	h.Hashes = d.hashes()
	return h
}

func (d *decoder) events(body *hclsyntax.Body) []string {
	if list, ok := d.stringList(body, "on"); ok && len(list) == 0 {
		d.fail("bad-value", d.f.rng(body.Attributes["on"].Expr.Range()), "the hook has no events", "add \"start\", \"end\" or \"error\"")
	}
	return textsOf(d.choices(body, "on", []string{definition.OnStart, definition.OnEnd, definition.OnError}, wrongWord{"bad-value", "there is no event %s", "the events are"}))
}
