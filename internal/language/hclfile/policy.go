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
	if d.decision(b); len(decisionBodies(&p)) != 1 {
		p.Allow, p.Deny, p.Approval = nil, denyAll(p.NameRange), nil
	}
	p.OnResult = d.enumAttr(b.Body, "on", "call", "result") == "result"
	if approval := b.Body.Attributes["requires_approval"]; p.OnResult && approval != nil {
		d.fail("contradiction", d.f.rng(approval.NameRange), "what has been done needs no approval", "remove on = \"result\", or write allow or deny")
	}
	d.reason(b, &p)
	p.Disclose = cmp.Or(d.enumAttr(b.Body, "disclose", definition.DiscloseReason, definition.DiscloseGeneric, definition.DiscloseHide), definition.DiscloseReason)
	p.Hashes = d.hashes()
	return p
}

// denial stands in for the decision of a policy whose mistake was told, so
// that nobody tells it again in other words. It denies every call.
func denyAll(where diag.Range) *definition.Body {
	return &definition.Body{Language: definition.CEL, Text: diag.NewText(where.File, "tool.name == tool.name", where.Start)}
}

func (d *decoder) cel(body *hclsyntax.Body, name string) *definition.Body {
	if attr := body.Attributes[name]; attr != nil {
		return d.code(attr, definition.CEL)
	}
	return nil
}

// decides returns what a policy decides by: one body, unless it is wrong.
func decisionBodies(p *definition.Policy) []*definition.Body {
	return slices.DeleteFunc([]*definition.Body{p.Allow, p.Deny, p.Approval}, func(b *definition.Body) bool { return b == nil })
}

// verdicts are the arguments of which a policy has one.
var decisionNames = [...]string{"allow", "deny", "requires_approval"}

// decision reports a policy that decides nothing, or in several ways.
func (d *decoder) decision(b *hclsyntax.Block) {
	var written []*hclsyntax.Attribute
	for _, name := range decisionNames {
		if attr := b.Body.Attributes[name]; attr != nil {
			written = append(written, attr)
		}
	}
	switch {
	case len(written) > 1:
		said := fmt.Sprintf("the policy has both %q and %q", written[0].Name, written[1].Name)
		slices.SortFunc(written, func(a, b *hclsyntax.Attribute) int { return a.NameRange.Start.Byte - b.NameRange.Start.Byte })
		earlier, later := written[0], written[1]
		d.fail("contradiction", d.f.rng(later.NameRange), said, "write two policies: all of them must allow a call",
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
		d.fail("unknown-name", d.f.rng(attr.Expr.Range()), fmt.Sprintf("a reason that uses %s is computed for each call", root), "write reason = <<CEL … CEL")
		return
	}
	text, ok := d.text(b.Body, "reason")
	if ok && text == "" {
		d.fail("bad-value", d.f.rng(attr.Expr.Range()), "the reason is empty", "say why a call is denied; the caller reads it")
	}
	if seemsComputed(text) {
		d.warn("bad-value", d.f.rng(attr.Expr.Range()), "the caller reads this reason as it stands, though it looks like CEL",
			"write reason = <<CEL … CEL to compute it")
	}
	p.Reason = text
}

// ofCall returns the first name in an expression of HCL that only CEL knows.
func celNameIn(x hclsyntax.Expression) string {
	for _, v := range x.Variables() {
		if root := v.RootName(); slices.Contains(celNames, root) {
			return root
		}
	}
	return ""
}

// seemsComputed reports whether a text looks like CEL that joins strings with
// what a call says.
func seemsComputed(text string) bool {
	packed := strings.ReplaceAll(text, " ", "")
	joins := func(part string) bool { return strings.Contains(packed, part) }
	if !slices.ContainsFunc([]string{"'+", "+'", `"+`, `+"`}, joins) {
		return false
	}
	return slices.ContainsFunc([]string{"args.", "args[", "principal.", "agent.", "tool.", "call.", "vars."}, joins)
}

// targets decodes what a policy, a limit or a hook, whose rule is r, is about. One whose
// list is written wrong covers nothing: it was not meant to cover everything.
func (d *decoder) targets(body *hclsyntax.Body, r *rule) definition.Targets {
	t := definition.Targets{
		Tools:     d.names(body, "tools", patternCharacters),
		Resources: d.names(body, "resources", "write the name of a resource block, not its URI, with * for any run of characters"),
		Prompts:   d.names(body, "prompts", "use the characters A-Z a-z 0-9 _ . - and * for any run of them"),
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
		wrong: "this is not the name of a " + strings.TrimSuffix(argument, "s"), characters: characters,
		empty: "the list of " + argument + " is empty", detail: fmt.Sprintf("name %s or patterns, or remove it: a block without lists covers everything", argument),
	})
}

func (d *decoder) toolPatterns(body *hclsyntax.Body, argument, characters string) []definition.Name {
	return d.patterns(body, argument, patternTexts{
		wrong: "this is not the name of a tool", characters: characters,
		empty: fmt.Sprintf("the list %q is empty", argument), detail: "name tools or patterns of them, or remove it",
	})
}

// patternCharacters says what a name or a pattern of tools holds.
const patternCharacters = "use the characters A-Z a-z 0-9 _ . - / and * for any run of them"

// patternTexts say what is wrong with an item of a list, and with a list without items.
type patternTexts struct{ wrong, characters, empty, detail string }

// patterns decodes names and patterns, nil when the argument is absent.
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

// rateForms says how a rate is written.
const rateForms = `write calls and a time, such as "10/s", "60/m" or "1000/h"`

func (d *decoder) limit(b *hclsyntax.Block) definition.Limit {
	nameAt := d.definition(b, "the limit")
	l := definition.Limit{
		Name: b.Labels[0], NameRange: nameAt,
		Targets: d.targets(b.Body, rules["limit"]), Key: d.cel(b.Body, "key"),
	}
	l.Calls, l.Per = d.rate(b.Body)
	l.Burst = cmp.Or(d.intAttr(b.Body, "burst", 1, maxCalls), l.Calls)
	l.Concurrency = d.intAttr(b.Body, "concurrency", 1, maxConcurrency)
	l.Reason = d.matchingText(b.Body, "reason", isFilled, "the reason is empty", "say why a call is refused, or remove it; the wait is told in any case")
	switch {
	case !d.hasSimilar(b.Body, rules["limit"], "rate", "concurrency"):
		d.fail("missing-argument", d.f.rng(b.DefRange()), "the limit limits nothing", "write rate = \"60/m\", concurrency = 4, or both")
	case b.Body.Attributes["burst"] != nil && !d.hasSimilar(b.Body, rules["limit"], "rate"):
		d.fail("missing-argument", d.f.rng(b.Body.Attributes["burst"].NameRange), "a burst is one of a rate, and there is none", "write a rate beside it, such as rate = \"60/m\", or remove it")
	}
	l.Hashes = d.hashes()
	return l
}

// rate decodes a rate, 0 when there is none or it was reported.
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
		d.fail("bad-value", where, "\"rate\" is out of bounds", fmt.Sprintf("write 1 to %d calls", maxCalls))
	default:
		return calls, per
	}
	return 0, 0
}

// meantRate asks whether a rate was meant by what is none, such as "60 per minute".
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
			d.fail("bad-grant", where, "a hook has nobody to ask", "remove it: the call that a hook is told of does not wait for it")
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
		d.fail("bad-value", d.f.rng(body.Attributes["on"].Expr.Range()), "the hook waits for nothing", "name some of \"start\", \"end\" and \"error\"")
	}
	return textsOf(d.choices(body, "on", []string{definition.OnStart, definition.OnEnd, definition.OnError}, wrongWord{"bad-value", "there is no event %s", "the events are"}))
}
