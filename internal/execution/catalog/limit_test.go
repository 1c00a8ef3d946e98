package catalog

import (
	"fmt"
	"iter"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/execution/ratelimit"
	"github.com/mcpd/mcpd/policylang"
)

// files returns tool files, and mcpd.hcl.
func files(contents map[string]string) fstest.MapFS {
	out := fstest.MapFS{}
	for name, text := range contents {
		out[name] = &fstest.MapFile{Mode: 0o644, Data: []byte(text)}
	}
	return out
}

const limited = `
tool "a" {
  input "n" { type = integer }
  run = "return 1"
}
tool "b" {
  input "n" { type = integer }
  input "who" {
    type     = string
    required = true
  }
  run = "return 2"
}
resource "r" {
  uri  = "x://r"
  text = "r"
}
resource_folder "f" {
  root       = "data"
  uri_prefix = "data:///"
}
prompt "p" {
  message "user" { text = "hi" }
}
`

// limitsOf returns the names of the limits of an entry.
func limitsOf(c *Catalog, k Kind, address string) string {
	var names []string
	for _, l := range c.Entry(k, address).Limits {
		names = append(names, l.Name)
	}
	return strings.Join(names, " ")
}

func TestLimits_targetsAndOrder(t *testing.T) {
	tools := files(map[string]string{
		"t.hcl": limited + `
limit "everything" { rate = "1/s" }
limit "some" {
  tools     = ["b"]
  resources = ["f"]
  rate      = "1/s"
}
limit "prompts" {
  prompts = ["*"]
  rate    = "1/s"
}
`, "data/one.txt": "1", "data/two.txt": "2",
	})
	config := files(map[string]string{"mcpd.hcl": "limit \"first\" { rate = \"1/s\" }\n"})
	built := New(Options{Tools: tools, Config: config, ConfigPath: "mcpd.hcl"}).Build(Change{All: true}, nil)
	if built.Problems.HasErrors() {
		t.Fatal(built.Problems)
	}
	for _, test := range []struct {
		kind          Kind
		address, want string
	}{
		{Tools, "a", "first everything"}, {Tools, "b", "first everything some"}, {Resources, "x://r", "first everything"},
		{Resources, "data:///one.txt", "first everything some"}, {Resources, "data:///two.txt", "first everything some"}, {Prompts, "p", "first everything prompts"},
	} {
		if got := limitsOf(built.Base.Catalog, test.kind, test.address); got != test.want {
			t.Errorf("%s has the limits %q, want %q", test.address, got, test.want)
		}
	}
	for i, l := range built.Base.RateLimits {
		if l.Operator != (i == 0) {
			t.Errorf("limit %s: the operator's is %v", l.Name, l.Operator)
		}
	}
}

func TestLimits_keyCache(t *testing.T) {
	tools := files(map[string]string{"t.hcl": limited + `
tool "c" {
  input "n" { type = integer }
  run = "return 3"
}
limit "all" {
  key  = "principal.id"
  rate = "1/s"
}
limit "args" {
  tools = ["*"]
  key   = "has(args.n) ? string(args.n) : ''"
  rate  = "1/s"
}
`})
	b := New(Options{Tools: tools})
	first := b.Build(Change{All: true}, nil).Base.Catalog
	key := func(c *Catalog, tool string, i int) *policylang.Key { return c.Entry(Tools, tool).Limits[i].key }
	if key(first, "a", 0) != key(first, "b", 0) {
		t.Error("a key that reads no args is compiled for each input")
	}
	if key(first, "a", 1) != key(first, "c", 1) || key(first, "a", 1) == key(first, "b", 1) {
		t.Error("a key that reads args should be compiled once for a and c, and once for b")
	}
	second := b.Build(Change{All: true}, nil).Base.Catalog
	if key(first, "a", 0) != key(second, "a", 0) || key(first, "b", 1) != key(second, "b", 1) {
		t.Error("an unchanged key is compiled again by a reload")
	}
}

func TestLimits_revision(t *testing.T) {
	revision := func(rate string) string {
		tools := files(map[string]string{"t.hcl": limited + fmt.Sprintf("limit \"l\" { rate = %q }\n", rate)})
		return New(Options{Tools: tools}).Build(Change{All: true}, nil).Base.Revision
	}
	first, again, other := revision("1/s"), revision("1/s"), revision("2/s")
	if first != again || first == other {
		t.Error("equal limits must have equal revisions, and other limits other ones")
	}
}

func TestLimits_keyErrors(t *testing.T) {
	for _, test := range []struct{ name, limit, want string }{
		{"of an input that no tool has", `tools = ["a"]` + "\n" + `key = "args.m"`, `tool "a" has no argument "m"`},
		{"of a limit that covers nothing", `tools = ["x*"]` + "\n" + `key = "principal.name"`, `principal has no "name"`},
		{"of no string", `key = "call.depth"`, "key must be a string, but this is an integer"},
		{"of a tool that is not there", `tools = ["aa"]`, `there is no tool named "aa"`},
		{"of a pattern that fits nothing", `tools = ["x*"]`, `no tool matches the pattern "x*" of limit "l"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			tools := files(map[string]string{"t.hcl": limited + "limit \"l\" {\nrate = \"1/s\"\n" + test.limit + "\n}\n"})
			built := New(Options{Tools: tools}).Build(Change{All: true}, nil)
			var found []string
			for _, p := range built.Problems {
				found = append(found, p.Summary)
			}
			if !strings.Contains(strings.Join(found, "\n"), test.want) {
				t.Errorf("found %q, want %q", found, test.want)
			}
		})
	}
}

func TestLimits_maxKeys(t *testing.T) {
	var text strings.Builder
	for i := range 4 {
		fmt.Fprintf(&text, "tool \"t%d\" {\n  input \"n\" { type = integer }\n  input \"i%[1]d\" { type = integer }\n  run = \"return 1\"\n}\n", i)
		fmt.Fprintf(&text, "limit \"l%d\" {\n  tools = [\"*\"]\n  rate = \"1/s\"\n  key = \"has(args.n) ? string(args.n) : '%[1]d'\"\n}\n", i)
	}
	b := New(Options{Tools: files(map[string]string{"t.hcl": text.String()})})
	b.maxPolicies = 15
	if built := b.Build(Change{All: true}, nil); len(built.Problems) != 1 || built.Problems[0].Code != "too-many" {
		t.Errorf("found %v", built.Problems)
	}
	b.maxPolicies = 16
	if built := b.Build(Change{All: true}, nil); len(built.Problems) != 0 {
		t.Errorf("found %v", built.Problems)
	}
}

func TestCharges_keys(t *testing.T) {
	built := New(Options{Tools: files(map[string]string{"t.hcl": limited + `
limit "together" { rate = "1/s" }
limit "apart" {
  tools = ["b"]
  key   = "principal.id + args.who"
  rate  = "1/s"
}
`})}).Build(Change{All: true}, nil)
	facts := policylang.Input{Caller: identity.Caller{Principal: identity.Principal{ID: "ada"}}, Args: map[string]any{"who": strings.Repeat("x", 1000)}}
	charges, _, err := built.Base.Entry(Tools, "b").Charges(t.Context(), facts)
	if err != nil || len(charges) != 2 || charges[0].Key != "" || len(charges[1].Key) != 32 {
		t.Errorf("the charges are %+v (%v)", charges, err)
	}
	facts.Args = map[string]any{}
	if _, name, err := built.Base.Entry(Tools, "b").Charges(t.Context(), facts); err == nil || name != "apart" {
		t.Errorf("a key that cannot be evaluated: limit %q, error %v", name, err)
	}
}

// Callers with the same id but other kinds or issuers are counted separately.
func TestLimitKey_principalsOfOneID(t *testing.T) {
	tools := files(map[string]string{"t.hcl": limited + `
limit "caller" {
  key  = "principal.id"
  rate = "1/s"
}
limit "tenant" {
  key  = "string(principal.claims.tenant)"
  rate = "1/s"
}
`, "data/one.txt": "1"})
	built := New(Options{Tools: tools}).Build(Change{All: true}, nil)
	if len(built.Problems) > 0 {
		t.Fatal(built.Problems)
	}
	callers, tenants := map[string]bool{}, map[string]bool{}
	for _, p := range []identity.Principal{
		{ID: "ada", Kind: identity.KindKey}, {ID: "ada", Kind: identity.KindLocal}, {ID: "ada", Kind: identity.KindToken, Issuer: "https://a.example"},
		{ID: "ada", Kind: identity.KindToken, Issuer: "https://b.example"}, {ID: "bob", Kind: identity.KindKey}, {ID: "ada", Kind: identity.KindKey},
	} {
		p.Claims = map[string]any{"tenant": "acme"}
		charges, name, err := built.Base.Entry(Tools, "a").Charges(t.Context(), policylang.Input{Caller: identity.Caller{Principal: p}})
		if err != nil {
			t.Fatal(name, err)
		}
		callers[charges[0].Key], tenants[charges[1].Key] = true, true
	}
	if len(callers) != 5 || len(tenants) != 1 {
		t.Errorf("5 callers have %d keys, and their tenant %d", len(callers), len(tenants))
	}
}

// listingStore returns the known keys of each limit.
type listingStore struct{ ratelimit.Store }

func (listingStore) Usage(limits []*ratelimit.Limit, _ int, known func(*ratelimit.Limit) iter.Seq[string]) []ratelimit.Usage {
	usages := make([]ratelimit.Usage, len(limits))
	for i, l := range limits {
		usages[i].Shared = true
		for key := range known(l) {
			usages[i].Rate = append(usages[i].Rate, ratelimit.KeyShare{Key: key, Share: 0.5})
		}
		usages[i].Rate = append(usages[i].Rate, ratelimit.KeyShare{Key: "a hash", Hashed: true, Share: 0.1}, ratelimit.KeyShare{Rest: true})
	}
	return usages
}

// A store with hashes of keys knows those of principals, and none that may have arguments.
func TestLimitUses_knownKeys(t *testing.T) {
	tools := files(map[string]string{"t.hcl": limited + `
limit "caller" {
  key  = "principal.id"
  rate = "1/s"
}
limit "argument" {
  tools = ["b"]
  key   = "principal.id + string(args.n)"
  rate  = "1/s"
}
limit "tenant" {
  key  = "string(principal.claims.tenant)"
  rate = "1/s"
}
limit "together" { rate = "1/s" }
`, "data/one.txt": "1"})
	built := New(Options{Tools: tools}).Build(Change{All: true}, nil)
	if len(built.Problems) > 0 {
		t.Fatal(built.Problems)
	}
	asked := 0
	principals := func() []identity.Principal {
		asked++
		return []identity.Principal{{ID: "ada", Kind: identity.KindKey}, {ID: "bob", Kind: identity.KindToken, Issuer: "https://a.example"}}
	}
	got := map[string]string{}
	for _, u := range built.Base.LimitUses(t.Context(), listingStore{}, 10, principals) {
		var keys []string
		for _, k := range u.Most {
			keys = append(keys, fmt.Sprintf("%s/%s/%s/%t", k.AuthKind, k.Issuer, k.Text, k.Hidden))
		}
		got[u.Name] = strings.Join(keys, " ")
	}
	const others = "///true ///false" // the hash and the rest
	for name, want := range map[string]string{
		"caller":   "key//ada/false jwt/https://a.example/bob/false " + others,
		"argument": others,
		"tenant":   others,
		"together": "///false " + others,
	} {
		if got[name] != want {
			t.Errorf("%s: got %s, want %s", name, got[name], want)
		}
	}
	if asked != 1 {
		t.Errorf("principals are read %d times", asked)
	}
}
