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

// ExternalName is an item that no file defines.
type ExternalName struct {
	// Kind is "tool", "resource" or "prompt", and Name the local name. The embedding program
	// has no resources.
	Kind, Name string
	// Upstream is the upstream of a tool that mcpd.lock accepts. It is empty for items of the
	// embedding program.
	Upstream string
	Range    diag.Range
}

// External holds the items that no file defines.
type External struct {
	// Names are the items of the embedding program, and the upstream tools that mcpd.lock
	// accepts.
	Names []ExternalName
	// Locked are the upstreams with tools in mcpd.lock: other tools of them do not exist. Other
	// upstreams, and other kinds, are unknown.
	Locked []string
	// Refer receives the names and patterns that only upstreams can resolve. If nil, they are
	// ignored.
	Refer func(Reference)
	// Modules are the modules of the program. If nil, the grants of modules are not checked.
	Modules ModuleRegistry
	// Incomplete means that files may define more, because a file could not be parsed.
	Incomplete bool
}

// Reference is a name or pattern in a file that may refer to items of upstreams.
type Reference struct {
	definition.Name
	Kind string
	// Of is the definition with the pattern, for messages.
	Of string
	// Upstreams are the upstreams that may provide it, in the order of their blocks.
	Upstreams []*definition.Upstream
}

// Listings are the current items of upstreams.
type Listings struct {
	// Names are all used names of a kind, sorted.
	Names map[string][]string
	// Listed reports whether an upstream has listed its items of a kind.
	Listed func(upstream, kind string) bool
}

// CheckReferences warns of references to items that no upstream provides now.
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
		d.Summary = fmt.Sprintf("there is no %s named %q; the upstream %q has not listed its items yet", r.Kind, r.Text, first.Name)
	case first.Prefix == "" && !first.HasAlias(r.Text):
		d.Summary = fmt.Sprintf("there is no %s named %q, and the upstream %q provides none", r.Kind, r.Text, first.Name)
	default:
		d.Summary = fmt.Sprintf("the upstream %q provides no %s %q", first.Name, r.Kind, r.Text)
	}
	return d
}

// IsPattern reports whether it is a pattern.
func (r *Reference) IsPattern() bool { return strings.Contains(r.Text, "*") }

// addExternal adds the external items. It returns the items of the embedding program.
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

// isLocked reports whether mcpd.lock lists all items of a kind of an upstream.
func (c *checker) isLocked(u *definition.Upstream, kind string) bool {
	return kind == "tool" && slices.Contains(c.locked, u.Name)
}

// upstreamsOf returns the upstreams that a name belongs to: those that rename an item to it, or
// else those with the longest matching prefix. Upstreams with an empty prefix are not included,
// because the name may belong to a file.
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

// checkUpstreamName checks a name that belongs to upstreams. A name that mcpd.lock lacks is an
// error if the lock lists all their tools; otherwise, only the upstreams know.
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

// upstreamsMatching returns the upstreams with items that a pattern may match and that
// mcpd.lock does not list.
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

// checkMocks reports mocks that can never be used, because the subject of the test lacks the
// grant.
func (c *checker) checkMocks(test *definition.Test) {
	what, granted, known := c.subject(test)
	if !known {
		return
	}
	objects := objectsOf(granted)
	for _, m := range test.Mocks {
		if m.Object == "tools" && len(granted.Call) > 0 && !mayCall(granted, m.Request) {
			c.fail("unknown-grant", m.Range, fmt.Sprintf("%s may not call tool %q, so this mock is never used", what, m.Request),
				cmp.Or(diag.DidYouMean(m.Request, granted.Call), "add it to the tools of its call block, or remove the mock"))
			continue
		}
		if m.Object == "" || slices.Contains(objects, m.Object) || m.Object == "elicit" && m.Request == suspend.ApprovalKey && (c.incomplete || c.mayRequireApproval(test)) {
			continue // the decoder has reported invalid objects
		}
		c.fail("unknown-grant", m.Range, fmt.Sprintf("%s is not granted %s, so this mock is never used", what, m.Object), mockAdvice(m.Object, objects))
	}
}

// mayRequireApproval reports whether a policy may require approval for the call of a test. The
// resource of a URI is not known yet, so any policy on resources may match.
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

// blocksOfObjects maps the first part of object names to the blocks that grant them.
var blocksOfObjects = map[string]string{
	"http": "http NAME { hosts = [...] }", "fs": "fs NAME { root = \"…\" }", "exec": "exec NAME { path = \"/…\" }", "sql": "sql NAME { … }",
	"kv": "kv NAME {}", "modules": "module NAME {}", "env": "env { names = [...] }", "secrets": "secrets { names = [...] }", "tools": "call { tools = [...] }",
}

// mockAdvice returns what to do about a mock of an object without a grant.
func mockAdvice(object string, granted []string) string {
	kind, name, _ := strings.Cut(object, ".")
	block := cmp.Or(blocksOfObjects[kind], "ask { "+object+" = true }")
	grants := strings.Replace(block, "NAME", strconv.Quote(name), 1)
	if guess := diag.DidYouMean(object, granted); guess != "" {
		return guess
	}
	if len(granted) > 0 {
		return fmt.Sprintf("it is granted %s; add %s to its allow block, or remove the mock", strings.Join(granted, ", "), grants)
	}
	return fmt.Sprintf("add an allow block with %s to it, or remove the mock", grants)
}

// subject returns the subject of a test and its grants, and false if no file defines it.
func (c *checker) subject(test *definition.Test) (what string, granted *grant.Set, known bool) {
	if test.Resource != "" && test.Complete != "" {
		granted, known = c.grantsOf("template", test.Resource)
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
	granted, known = c.grantsOf(kind, name)
	return fmt.Sprintf("%s %q", kind, name), granted, known
}

// objectsOf returns the names of the granted objects for mocks.
func objectsOf(granted *grant.Set) []string {
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

// checkCompletion reports a completion of an unknown prompt or template.
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
		c.fail("unknown-resource", test.TargetRange, fmt.Sprintf("there is no template %q", name), "write the uri_template of a resource_template exactly")
	case !slices.Contains(arguments, test.Complete):
		detail := diag.DidYouMean(test.Complete, arguments)
		if detail == "" && len(arguments) > 0 {
			detail = "there is " + strings.Join(arguments, ", ")
		}
		c.fail("unknown-argument", test.CompleteRange, fmt.Sprintf("the %s %q has no argument %q", kind, name, test.Complete), detail)
	}
}
