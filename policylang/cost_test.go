package policylang

import (
	"strings"
	"testing"
)

func TestOrdinaryPoliciesNeedNoBoundsInTheSchema(t *testing.T) {
	e := newEnv(t)
	for _, expr := range []string{
		"has(args.note) && args.note.contains('secret')",
		"has(args.note) && args.note.matches('^[a-z]+@example[.]com$')",
		"has(args.note) && args.note.lowerAscii().startsWith('http')",
		"has(args.note) && args.note.trim().replace(' ', '').size() > 100",
		"has(args.note) && args.note == principal.id",
		"args.tags.exists(t, t.startsWith('internal') || t in ['a', 'b'])",
		"args.tags.all(t, t in principal.scopes)",
		"principal.scopes.exists(s, principal.groups.exists(g, g == s))",
		"args.tags.join(', ').contains('x')",
		"sets.intersects(args.tags, principal.groups)",
		"args.labels.exists(k, args.labels[k] == 'x')",
		"principal.claims.roles.filter(r, r != 'x').size() > 0",
		"string(args.cents) + ' ' + principal.id == 'x'",
	} {
		if p, diags := e.Compile(denying(expr), refund()); p == nil {
			t.Errorf("%s: %v", expr, diags)
		}
	}
}

func TestWhatNoBoundHoldsIsRefusedUntilTheSchemaHasOne(t *testing.T) {
	e := newEnv(t)
	for _, expr := range []string{
		"args.tags.all(a, args.tags.all(b, a != b))",
		"has(args.note) && args.note.replace('', args.note).size() > 3",
		"has(args.note) && args.status.matches(args.note)",
		"has(args.note) && matches(args.status, args.note)",
		"has(args.note) && args.note.split('/').exists(p, p == '..')",
		"has(args.note) && args.tags.join(args.note).size() > 3",
		"has(args.note) && args.tags.map(t, t + args.note).map(t, t + t).exists(t, t.contains('x'))",
	} {
		p, diags := e.Compile(denying(expr), refund())
		if p != nil || diags[0].Code != codeCost {
			t.Errorf("%s is not refused for its cost: %v", expr, diags)
		}
		if p, diags := e.Compile(denying(expr), smallRefund()); p == nil {
			t.Errorf("%s is refused with bounds: %v", expr, diags)
		}
	}
}

func TestTypesInWords(t *testing.T) {
	tests := map[string]string{
		"list(int)": "a list of integers", "map(string, list(string))": "a map", "map(string, string)": "a map of strings",
		"wrapper(string)": "a string or null", "map": "a map", "list": "a list", "@object7": "an object", "": "an object",
		"optional_type(int)": "an optional value", "net.IP": "an IP address", "google.protobuf.Timestamp": "a timestamp",
		"map(": "a map", ")": "an object", "wrapper": "an object or null",
	}
	for in, want := range tests {
		if got := typeWords(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
	if got := typeWords(strings.Repeat("wrapper(", 5) + "int" + strings.Repeat(")", 5)); !strings.HasPrefix(got, "an integer or null") {
		t.Errorf("got %q", got)
	}
}
