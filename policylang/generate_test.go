package policylang

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// generator writes random expressions that are well typed for the refund tool.
type generator struct{ *rand.Rand }

func (g generator) pick(choices ...string) string { return choices[g.IntN(len(choices))] }

func (g generator) boolean(depth int) string {
	if depth <= 0 {
		return g.pick(
			"true", "false", "args.any", "has(args.note)", "has(args.nope)", "has(args.filters.deep)", "has(principal.claims.tenant)",
			"has(principal.claims.nope)", "principal.claims.nope == 'x'", "principal.claims.flag", "tool.read_only", "tool.destructive",
			"agent.verified", "agent.model == null", "args.maybe == null", "vars.stage == 'prod'", "principal.claims.tenant", "args.any.x",
		)
	}
	a, b := g.boolean(depth-1), g.boolean(depth-1)
	switch g.IntN(14) {
	case 0, 1, 2:
		return fmt.Sprintf("(%s && %s)", a, b)
	case 3, 4, 5:
		return fmt.Sprintf("(%s || %s)", a, b)
	case 6:
		return "!" + a
	case 7:
		return fmt.Sprintf("(%s ? %s : %s)", g.boolean(depth-2), a, b)
	case 8:
		return fmt.Sprintf("(%s %s %s)", g.number(depth-1), g.pick("<", "<=", "==", "!=", ">"), g.number(depth-1))
	case 9:
		return fmt.Sprintf("(%s %s %s)", g.text(depth-1), g.pick("==", "!=", "<"), g.text(depth-1))
	case 10:
		x := fmt.Sprintf("x%d", depth)
		body := g.pick(fmt.Sprintf("%s == %s", x, g.text(depth-2)), g.boolean(depth-2))
		return fmt.Sprintf("%s.%s(%s, %s)", g.list(depth-1), g.pick("exists", "all", "exists_one"), x, body)
	case 11:
		return fmt.Sprintf("(%s in %s)", g.text(depth-1), g.list(depth-1))
	case 12:
		return fmt.Sprintf("%s.%s(%s)", g.text(depth-1), g.pick("startsWith", "contains", "endsWith"), g.text(0))
	default:
		return fmt.Sprintf("(size(%s) %s %d)", g.list(depth-1), g.pick("<", "==", ">="), g.IntN(4))
	}
}

func (g generator) number(depth int) string {
	if depth <= 0 {
		return g.pick("args.amount", "args.cents", "args.count", "args.quota", "1", "2.5", "0", "vars.retries", "vars.ceiling",
			"principal.claims.limit", "args.any", "call.depth", "args.filters.deep.x", "principal.claims.nope")
	}
	if g.IntN(4) == 0 {
		return fmt.Sprintf("(%s ? %s : %s)", g.boolean(depth-2), g.number(0), g.number(0))
	}
	return fmt.Sprintf("(%s %s %s)", g.number(depth-1), g.pick("+", "-", "*", "/"), g.number(depth-1))
}

func (g generator) text(depth int) string {
	if depth <= 0 {
		return g.pick("args.status", "args.note", "args.filters.status", "'active'", "'crm'", "''", "principal.id", "vars.stage", "tool.name", "args.labels.a")
	}
	switch g.IntN(4) {
	case 0:
		return fmt.Sprintf("(%s + %s)", g.text(0), g.text(0))
	case 1:
		return fmt.Sprintf("(%s ? %s : %s)", g.boolean(depth-2), g.text(0), g.text(0))
	case 2:
		return fmt.Sprintf("%s[%d]", g.list(depth-1), g.IntN(3))
	default:
		return g.text(0) + ".lowerAscii()"
	}
}

func (g generator) list(depth int) string {
	if depth <= 0 {
		return g.pick("args.tags", "principal.scopes", "principal.groups", "vars.hosts", "['active', 'crm']", "[args.status, 'x']")
	}
	switch g.IntN(3) {
	case 0:
		return fmt.Sprintf("(%s + %s)", g.list(0), g.list(0))
	case 1:
		return fmt.Sprintf("%s.filter(f%d, f%d != %s)", g.list(0), depth, depth, g.text(0))
	default:
		return fmt.Sprintf("%s.map(m%d, %s)", g.list(0), depth, g.text(depth-1))
	}
}

// args makes random arguments, in the form that validation leaves them in.
func (g generator) args() map[string]any {
	words := []string{"", "active", "suspended", "crm", "x", "prod"}
	word := func() any { return words[g.IntN(len(words))] }
	args := map[string]any{
		"amount": float64(g.IntN(5)) / 2, "cents": int64(g.IntN(4)), "count": int64(g.IntN(4)), "status": word(),
		"maybe": nil, "quota": nil, "tags": []any{}, "amounts": []any{}, "labels": map[string]any{}, "content-type": "text",
		"any":     []any{nil, true, false, 1.0, "x", map[string]any{"x": true}, []any{"a"}}[g.IntN(7)],
		"filters": map[string]any{"status": word()},
	}
	for range g.IntN(3) {
		args["tags"] = append(args["tags"].([]any), word())
		args["amounts"] = append(args["amounts"].([]any), float64(g.IntN(3)))
	}
	maybe := map[string]func(){
		"note": func() { args["note"] = word() }, "maybe": func() { args["maybe"] = word() }, "quota": func() { args["quota"] = 2.0 },
		"a":    func() { args["labels"] = map[string]any{"a": word()} },
		"deep": func() { args["filters"].(map[string]any)["deep"] = map[string]any{"x": int64(g.IntN(3))} },
	}
	for _, name := range strings.Fields("note maybe quota a deep") {
		if g.IntN(2) == 0 {
			maybe[name]()
		}
	}
	return args
}

// caller changes the input in what is known before the arguments are.
func (g generator) caller(in *Input) {
	in.Tool.ReadOnly, in.Tool.Destructive = g.IntN(2) == 0, g.IntN(2) == 0
	in.Caller.Agent.Verified = g.IntN(2) == 0
	in.Caller.Principal.Scopes = []string{"crm", "active", "admin"}[:g.IntN(4)]
	in.Caller.Principal.Claims = map[string]any{"limit": float64(g.IntN(3)), "tenant": "acme", "flag": g.IntN(2) == 0}
}
