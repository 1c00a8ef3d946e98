package configcheck

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/execution/suspend"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/grant"
)

// Offered is one thing that no file defines.
type ExternalName struct {
	// Kind is "tool", "resource" or "prompt", and Name what it is called here. The embedding
	// program has no resources.
	Kind, Name string
	// Upstream is the server whose tool mcpd.lock accepts, "" for the embedding program.
	Upstream string
	Range    diag.Range
}

// Elsewhere is what no file defines.
type External struct {
	// Offered are the items of the embedding program, and the tools of upstream servers that
	// mcpd.lock accepts.
	Names []ExternalName
	// Locked are the upstreams whose tools mcpd.lock has: what is not among Offered does not
	// exist. Of other upstreams, and of other kinds, nothing is known.
	Locked []string
	// Refer receives the names and patterns that only upstream servers can say something
	// about; nil ignores them.
	Refer func(Reference)
	// Incomplete says that files may define more, since one could not be parsed as a whole.
	Incomplete bool
}

// Reference is a name or a pattern in a file by which upstream servers may offer something.
type Reference struct {
	definition.Name
	Kind string
	// Of is the definition with the pattern, for messages.
	Of string
	// Upstreams are the servers that may offer it, in the order of their blocks.
	Upstreams []*definition.Upstream
}

// Offers is what upstream servers offer now.
type Listings struct {
	// Names are all names of a kind that are in use, in order.
	Names map[string][]string
	// Told reports whether a server has listed what it offers of a kind.
	Listed func(upstream, kind string) bool
}

// CheckReferences warns of references to things that no server offers now.
func CheckReferences(references []Reference, offers Listings) (problems diag.List) {
	for i := range references {
		if d := references[i].check(offers); d != nil {
			problems = append(problems, *d)
		}
	}
	return problems
}

func (r *Reference) check(offers Listings) *diag.Diagnostic {
	names := offers.Names[r.Kind]
	if slices.ContainsFunc(names, r.Matches) {
		return nil
	}
	silent := slices.IndexFunc(r.Upstreams, func(u *definition.Upstream) bool { return !offers.Listed(u.Name, r.Kind) })
	first := r.Upstreams[max(silent, 0)]
	if r.IsPattern() {
		if silent >= 0 {
			return nil
		}
		d := unmatchedPattern(r.Kind, r.Name, r.Of)
		return &d
	}
	d := &diag.Diagnostic{Severity: diag.Warning, Code: "unknown-" + r.Kind, Range: r.Range, Detail: diag.DidYouMeanLonger(r.Text, names)}
	switch {
	case silent >= 0 && first.Prefix != "":
		return nil
	case silent >= 0:
		d.Summary = fmt.Sprintf("there is no %s named %q, unless the upstream %q offers it, which has not told yet", r.Kind, r.Text, first.Name)
	case first.Prefix == "" && !first.HasAlias(r.Text):
		d.Summary = fmt.Sprintf("there is no %s named %q, and the upstream %q offers none now", r.Kind, r.Text, first.Name)
	default:
		d.Summary = fmt.Sprintf("the upstream %q offers no %s %q now", first.Name, r.Kind, r.Text)
	}
	return d
}

// IsPattern reports whether it is a pattern.
func (r *Reference) IsPattern() bool { return strings.Contains(r.Text, "*") }

// elsewhere remembers what no file defines, and returns what is the embedding program's.
func (c *checker) addExternal(e External) (builtin []definition.Name) {
	c.refer = e.Refer
	if c.refer == nil {
		c.refer = func(Reference) {}
	}
	c.locked = e.Locked
	spaces := map[string]*namespace{"tool": c.tools, "resource": c.resources, "prompt": c.prompts}
	for _, o := range e.Names {
		if o.Upstream != "" {
			spaces[o.Kind].accepted[o.Name] = true
			continue
		}
		c.define(spaces[o.Kind], o.Name, o.Range)
		if o.Kind == "tool" {
			builtin = append(builtin, definition.Name{Text: o.Name, Range: o.Range})
		}
	}
	return builtin
}

// isLocked reports whether mcpd.lock has all that an upstream may offer of a kind.
func (c *checker) isLocked(u *definition.Upstream, kind string) bool {
	return kind == "tool" && slices.Contains(c.locked, u.Name)
}

// offerers returns the upstreams that a name is of, if there is anything of it: those whose
// blocks give one of theirs that name, or else those whose prefix it begins with and is the
// longest. None but the last have a prefix that says nothing: what is of them may be meant
// for a file.
func (c *checker) upstreamsOf(name string) (offerers []*definition.Upstream) {
	longest := 0
	for i := range c.config.Upstreams {
		u := &c.config.Upstreams[i]
		switch {
		case u.HasAlias(name):
			return []*definition.Upstream{u}
		case !strings.HasPrefix(name, u.Prefix) || len(u.Prefix) < longest:
		case len(u.Prefix) > longest:
			longest, offerers = len(u.Prefix), []*definition.Upstream{u}
		default:
			offerers = append(offerers, u)
		}
	}
	return offerers
}

// offeredName checks a name that belongs to upstreams. One that mcpd.lock lacks is a mistake
// where the lock has all their tools; everything else is for the servers to say.
func (c *checker) checkUpstreamName(n *namespace, name string, where diag.Range, offerers []*definition.Upstream) {
	if n.accepted[name] || slices.ContainsFunc(offerers, func(u *definition.Upstream) bool { return !c.isLocked(u, n.kind) }) {
		c.refer(Reference{Name: definition.Name{Text: name, Range: where}, Kind: n.kind, Upstreams: offerers})
		return
	}
	first := offerers[0]
	d := diag.Diagnostic{
		Code: "unknown-" + n.kind, Range: where, Summary: fmt.Sprintf("mcpd.lock has no %s %q of the upstream %q", n.kind, name, first.Name),
		Detail: cmp.Or(diag.DidYouMeanLonger(name, n.names()), fmt.Sprintf("correct the name, or accept the tool: mcpd lock accept %s", first.Name)),
	}
	if first.Prefix == "" && !first.HasAlias(name) {
		d.Summary = fmt.Sprintf("there is no %s named %q, and mcpd.lock has none of the upstream %q", n.kind, name, first.Name)
	}
	c.report(d)
}

// mayOffer returns the upstreams that may offer something which a pattern covers, and of
// which mcpd.lock does not have all.
func (c *checker) upstreamsMatching(kind, pattern string) (may []*definition.Upstream) {
	head, _, _ := strings.Cut(pattern, "*")
	for i := range c.config.Upstreams {
		u := &c.config.Upstreams[i]
		if !c.isLocked(u, kind) && (strings.HasPrefix(u.Prefix, head) || strings.HasPrefix(head, u.Prefix)) {
			may = append(may, u)
		}
	}
	return may
}

// checkMocks reports mocks of what the subject of a test is not granted, which
// could never answer.
func (c *checker) checkMocks(test *definition.Test) {
	what, granted, known := c.subject(test)
	if !known {
		return
	}
	objects := objectsOf(granted)
	for _, m := range test.Mocks {
		if m.Object == "tools" && len(granted.Call) > 0 && !mayCall(granted, m.Request) {
			c.fail("unknown-grant", m.Range, fmt.Sprintf("%s may not call tool %q, so nothing asks this mock", what, m.Request),
				cmp.Or(diag.DidYouMean(m.Request, granted.Call), "add it to the tools of its call block, or remove the mock"))
			continue
		}
		if m.Object == "" || slices.Contains(objects, m.Object) || m.Object == "elicit" && m.Request == suspend.ConsentKey && (c.incomplete || c.mayRequireApproval(test)) {
			continue // whoever decoded the file has told what is no object
		}
		c.fail("unknown-grant", m.Range, fmt.Sprintf("%s is not granted %s, so nothing asks this mock", what, m.Object), mockAdvice(m.Object, objects))
	}
}

// approves reports whether the user may be asked to approve the call of a test. Which
// resource a URI is of is known later: any policy of resources may be of that.
func (c *checker) mayRequireApproval(test *definition.Test) bool {
	return test.Complete == "" && slices.ContainsFunc(c.approvals, func(t definition.Targets) bool {
		switch {
		case test.Resource != "":
			return t.Resources == nil || len(t.Resources) > 0
		case test.Prompt != "":
			return definition.MatchesAny(t.Prompts, test.Prompt)
		}
		return definition.MatchesAny(t.Tools, test.Tool)
	})
}

// blocksOfObjects are the blocks that grant objects, by what the names of these begin with.
var blocksOfObjects = map[string]string{
	"http": "http NAME { hosts = [...] }", "fs": "fs NAME { root = \"…\" }", "exec": "exec NAME { path = \"/…\" }", "sql": "sql NAME { … }",
	"kv": "kv NAME {}", "modules": "module NAME {}", "env": "env { names = [...] }", "secrets": "secrets { names = [...] }", "tools": "call { tools = [...] }",
}

// mockAdvice says what to do about a mock of an object that is none of the granted.
func mockAdvice(object string, granted []string) string {
	kind, name, _ := strings.Cut(object, ".")
	block := cmp.Or(blocksOfObjects[kind], "ask { "+object+" = true }")
	grants := strings.Replace(block, "NAME", strconv.Quote(name), 1)
	if guess := diag.DidYouMean(object, granted); guess != "" {
		return guess
	}
	if len(granted) > 0 {
		return fmt.Sprintf("granted is %s; add %s to its allow block, or remove the mock", strings.Join(granted, ", "), grants)
	}
	return fmt.Sprintf("add an allow block with %s to it, or remove the mock", grants)
}

// subject returns what a test is of and what that is granted, and false when
// no file defines it.
func (c *checker) subject(test *definition.Test) (what string, granted grant.Set, known bool) {
	if test.Resource != "" && test.Complete != "" {
		granted, known = c.grants["template "+test.Resource]
		return "the template", granted, known
	}
	if test.Resource != "" {
		granted, known = c.grantOf(test.Resource)
		return "the resource", granted, known
	}
	kind, name := "tool", test.Tool
	if test.Prompt != "" {
		kind, name = "prompt", test.Prompt
	}
	granted, known = c.grants[kind+" "+name]
	return fmt.Sprintf("%s %q", kind, name), granted, known
}

// objectsOf returns what mocks call the objects that are granted.
func objectsOf(granted grant.Set) []string {
	var objects []string
	for _, http := range granted.HTTP {
		objects = append(objects, "http."+http.Name)
	}
	for _, fs := range granted.FS {
		objects = append(objects, "fs."+fs.Name)
	}
	if len(granted.Env) > 0 {
		objects = append(objects, "env")
	}
	if len(granted.Call) > 0 {
		objects = append(objects, "tools")
	}
	for _, module := range granted.Modules {
		objects = append(objects, "modules."+module.Name)
	}
	if len(granted.Secrets) > 0 {
		objects = append(objects, "secrets")
	}
	for _, kv := range granted.KV {
		objects = append(objects, "kv."+kv.Name)
	}
	for _, exec := range granted.Exec {
		objects = append(objects, "exec."+exec.Name)
	}
	for _, sql := range granted.SQL {
		objects = append(objects, "sql."+sql.Name)
	}
	return append(objects, granted.Ask.Names()...)
}

// checkCompletion reports a completion of what does not exist.
func (c *checker) checkCompletion(test *definition.Test) {
	kind, name := "template", test.Resource
	if test.Prompt != "" {
		kind, name = "prompt", test.Prompt
	}
	arguments, known := c.arguments[kind+" "+name]
	switch {
	case !known && kind == "prompt":
		c.checkDefined(c.prompts, name, test.TargetRange)
	case !known && c.incomplete:
	case !known:
		c.fail("unknown-resource", test.TargetRange, fmt.Sprintf("there is no template %q", name), "write the uri_template of a resource_template, as it stands there")
	case !slices.Contains(arguments, test.Complete):
		detail := diag.DidYouMean(test.Complete, arguments)
		if detail == "" && len(arguments) > 0 {
			detail = "there is " + strings.Join(arguments, ", ")
		}
		c.fail("unknown-argument", test.CompleteRange, fmt.Sprintf("the %s %q has no argument %q", kind, name, test.Complete), detail)
	}
}
