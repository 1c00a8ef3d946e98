package configcheck

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/internal/language/uritemplate"
)

// namespace holds the names of one kind of definition.
type namespace struct {
	kind   string
	places map[string]diag.Range
	// accepted are the names of upstream tools that mcpd.lock accepts.
	accepted map[string]bool
	// sorted caches the sorted names. It is valid if known equals their number.
	sorted []string
	known  int
}

func newNamespace(kind string) *namespace {
	return &namespace{kind: kind, places: map[string]diag.Range{}, accepted: map[string]bool{}}
}

func (n *namespace) names() []string {
	if known := len(n.places) + len(n.accepted); n.known != known {
		all := slices.AppendSeq(slices.Collect(maps.Keys(n.places)), maps.Keys(n.accepted))
		slices.Sort(all)
		n.sorted, n.known = slices.Compact(all), known
	}
	return n.sorted
}

// define adds a name, and reports a second definition in another file.
func (c *checker) define(n *namespace, name string, where diag.Range) {
	first, duplicate := n.places[name]
	if !duplicate {
		n.places[name] = where
		return
	}
	if first.File == where.File && where.File != "" {
		return // the decoder has reported it
	}
	c.fail("duplicate-"+n.kind, where, fmt.Sprintf("%s %q is defined twice", n.kind, name),
		"rename one of them or remove it", diag.Note{Range: first, Message: "it is first defined here"})
}

// checkTargets checks the names and patterns of targets.
func (c *checker) checkTargets(of string, about definition.Targets) {
	c.checkNames(c.tools, of, about.Tools)
	c.checkNames(c.resources, of, about.Resources)
	c.checkNames(c.prompts, of, about.Prompts)
}

func (c *checker) checkNames(n *namespace, of string, names []definition.Name) {
	for _, name := range names {
		switch {
		case name.Text == "*":
		case !strings.Contains(name.Text, "*"):
			c.checkDefined(n, name.Text, name.Range)
		case c.incomplete || slices.ContainsFunc(n.names(), name.Matches):
		default:
			if may := c.upstreamsMatching(n.kind, name.Text); may != nil {
				c.refer(Reference{Name: name, Kind: n.kind, Of: of, Upstreams: may})
				continue
			}
			c.report(unmatchedPattern(n.kind, name, of))
		}
	}
}

// unmatchedPattern warns of a pattern that matches nothing.
func unmatchedPattern(kind string, pattern definition.Name, of string) diag.Diagnostic {
	return diag.Diagnostic{
		Severity: diag.Warning, Code: "pattern-matches-nothing", Range: pattern.Range,
		Summary: fmt.Sprintf("no %s matches the pattern %q of %s", kind, pattern.Text, of),
		Detail:  fmt.Sprintf("it may match %ss that are added later; remove it if there will be none", kind),
	}
}

// checkDefined reports a name that does not exist.
func (c *checker) checkDefined(n *namespace, name string, where diag.Range) {
	if _, ok := n.places[name]; ok || c.incomplete {
		return
	}
	if offerers := c.upstreamsOf(name); len(offerers) > 0 && (n == c.tools || n == c.resources || n == c.prompts) {
		c.checkUpstreamName(n, name, where, offerers)
		return
	}
	c.fail("unknown-"+n.kind, where, fmt.Sprintf("there is no %s named %q", n.kind, name),
		cmp.Or(diag.DidYouMeanLonger(name, n.names()), "define it, or correct the name"))
}

// checkCalls checks the names and patterns of tools that the definitions of a file may call.
func (c *checker) checkCalls(f *definition.Definitions) {
	eachGrant(f, func(kind, name string, granted *grant.Set, ranges map[string]diag.Range) {
		c.checkNames(c.tools, fmt.Sprintf("%s %q", kind, name), callableNames(granted, ranges))
	})
}

// callableNames returns the callable tools of a grant that have a range, so an author has
// written them.
func callableNames(granted *grant.Set, ranges map[string]diag.Range) []definition.Name {
	var names []definition.Name
	for _, text := range granted.Call {
		if where, written := ranges["tools."+text]; written {
			names = append(names, definition.Name{Text: text, Range: where})
		}
	}
	return names
}

// mayCall reports whether a grant permits calls of a tool.
func mayCall(granted *grant.Set, tool string) bool {
	return slices.ContainsFunc(granted.Call, func(text string) bool { return definition.Name{Text: text}.Matches(tool) })
}

// maxCompared bounds the compared pairs of templates; maxSteps bounds the total steps. Beyond
// them, warnings may be missing.
const (
	maxCompared = 100_000
	maxSteps    = 2_000_000
)

// defineResources adds the resources, folders and templates of a file.
func (c *checker) defineResources(f *definition.Definitions) {
	for i := range f.Resources {
		r := &f.Resources[i]
		c.define(c.resources, r.Name, r.NameRange)
		c.checkCeiling("resource", r.Name, &r.Grant, r.GrantRanges)
		c.checkBounds("resource", r.Name, r.Bounds)
		c.claimURI(c.uris, r.URI, r.URIRange, "a second resource has the URI")
	}
	for i := range f.Folders {
		folder := &f.Folders[i]
		c.folders = append(c.folders, folder)
		c.define(c.resources, folder.Name, folder.NameRange)
		c.claimURI(c.prefixes, folder.URIPrefix, folder.PrefixRange, "a second folder has the URI prefix")
	}
	for i := range f.Templates {
		t := &f.Templates[i]
		c.define(c.resources, t.Name, t.NameRange)
		c.checkCeiling("template", t.Name, &t.Grant, t.GrantRanges)
		c.checkBounds("template", t.Name, t.Bounds)
		if t.URITemplate != nil {
			c.templates = append(c.templates, t)
			c.arguments["template "+t.URITemplate.String()] = t.URITemplate.Names()
		}
	}
}

// claimURI adds a URI, and reports a duplicate.
func (c *checker) claimURI(taken map[string]diag.Range, uri string, where diag.Range, summary string) {
	if uri == "" {
		return // the decoder has reported it
	}
	first, duplicate := taken[uri]
	if !duplicate {
		taken[uri] = where
		return
	}
	c.fail("duplicate-uri", where, fmt.Sprintf("%s %q", summary, uri), "change one of them", diag.Note{Range: first, Message: "it is first used here"})
}

// checkTemplates warns of templates that match the same URIs.
func (c *checker) checkTemplates() {
	compared, steps := 0, maxSteps
	for i, t := range c.templates {
		for _, earlier := range c.templates[:i] {
			if compared++; compared > maxCompared || steps == 0 {
				return
			}
			if !t.URITemplate.Overlaps(earlier.URITemplate, &steps) {
				continue
			}
			c.warn("overlapping-templates", t.URIRange, fmt.Sprintf("some URIs match template %q and template %q", t.Name, earlier.Name),
				"the first one is used; change one of them, or merge them", diag.Note{Range: earlier.URIRange, Message: fmt.Sprintf("template %q", earlier.Name)})
			break
		}
	}
}

// checkURI reports a URI that no resource, folder or template can have.
func (c *checker) checkURI(uri string, where diag.Range) {
	if _, known := c.grantOf(uri); known || c.incomplete {
		return
	}
	c.fail("unknown-resource", where, fmt.Sprintf("there is no resource with the URI %q", uri),
		cmp.Or(diag.DidYouMean(uri, slices.Collect(maps.Keys(c.uris))), "define it, or correct the URI"))
}

// grantOf returns the grants of the resource with a URI, and false if no resource, folder or
// template can have the URI.
func (c *checker) grantOf(uri string) (granted *grant.Set, known bool) {
	if granted, known = c.grantsOf("resource", uri); known {
		return granted, true
	}
	for _, folder := range c.folders {
		if _, known := folder.PathOf(uri); known {
			return &grant.Set{}, true
		}
	}
	read := uritemplate.NewURI(uri)
	for _, t := range c.templates {
		if _, known := t.URITemplate.Match(read); known {
			return &t.Grant, true
		}
	}
	return nil, false
}

// ModuleRegistry provides the modules of the embedding program.
type ModuleRegistry interface {
	// Names returns the names of all modules, sorted.
	Names() []string
	// Check returns an error if a grant passes invalid arguments to a module.
	Check(module string, options json.RawMessage) error
}

// checkModules reports errors in grants of modules.
func (c *checker) checkModules(hooks []definition.Hook, files []*definition.Definitions, modules ModuleRegistry) {
	look := func(kind, name string, granted *grant.Set, ranges map[string]diag.Range) {
		for _, g := range granted.Modules {
			if where, written := ranges["modules."+g.Name]; written {
				c.problems = append(c.problems, checkModule(fmt.Sprintf("%s %q", kind, name), g, where, modules)...)
			}
		}
	}
	eachHookGrant(hooks, look)
	for _, f := range files {
		eachGrant(f, look)
	}
}

func checkModule(what string, g grant.Module, where diag.Range, modules ModuleRegistry) diag.List {
	known := modules.Names()
	if !slices.Contains(known, g.Name) {
		return diag.List{{Code: "unknown-module", Range: where, Summary: fmt.Sprintf("there is no module %q", g.Name), Detail: moduleAdvice(g.Name, known)}}
	}
	if err := modules.Check(g.Name, g.Options); err != nil {
		return diag.List{{
			Code: "bad-grant", Range: where, Summary: fmt.Sprintf("%s grants the module %q with invalid arguments: %v", what, g.Name, err),
			Detail: "write the arguments in the documentation of the module",
		}}
	}
	return nil
}

// moduleAdvice returns what to write for an unknown module.
func moduleAdvice(name string, known []string) string {
	if guess := diag.DidYouMean(name, known); guess != "" {
		return guess
	}
	if len(known) == 0 {
		return "only Go programs that embed mcpd have modules; use http, fs, env, secrets, kv, exec, sql, call or ask"
	}
	return "there is " + strings.Join(known, ", ")
}
