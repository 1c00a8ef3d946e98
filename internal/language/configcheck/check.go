// Package configcheck checks the definitions of several files against each other: names are
// unique, referenced names exist, and no tool file grants more than the ceiling. It compiles no
// scripts.
package configcheck

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/grant"
)

// Check returns all errors between the config file and the tool files. If either is incomplete,
// it does not report missing names and policies.
func Check(config *definition.Config, files []*definition.Definitions, elsewhere External) diag.List {
	c := &checker{
		config: config, incomplete: elsewhere.Incomplete || config.Incomplete, uris: map[string]diag.Range{}, prefixes: map[string]diag.Range{}, arguments: map[string][]string{}, files: files,
		tools: newNamespace("tool"), resources: newNamespace("resource"), prompts: newNamespace("prompt"),
		policies: newNamespace("policy"), limits: newNamespace("limit"), hooks: newNamespace("hook"),
	}
	c.tools.places = make(map[string]diag.Range, len(files))
	builtin := c.addExternal(elsewhere)
	var granting []*definition.Definitions
	for _, f := range files {
		c.defineAll(f)
		if grantsAny(f) {
			granting = append(granting, f)
		}
	}
	c.checkTemplates()
	c.checkPolicies(config.Policies)
	c.checkLimits(config.RateLimits)
	c.checkHooks(config.Hooks)
	if config.Codeact != nil {
		c.checkNames(c.tools, "the codeact block", config.Codeact.Tools)
	}
	for _, f := range files {
		c.checkPolicies(f.Policies)
		c.checkLimits(f.Limits)
	}
	for _, f := range files {
		c.checkHooks(f.Hooks)
		for i := range f.Hooks {
			c.hookCeiling(&f.Hooks[i])
		}
		c.checkTests(f.Tests)
	}
	for _, f := range granting {
		c.checkCalls(f)
	}
	if elsewhere.Modules != nil {
		c.checkModules(config.Hooks, granting, elsewhere.Modules)
	}
	c.checkEncryption()
	if config.Server.Mode == definition.Production {
		c.checkProduction(files, builtin)
	}
	if config.Server.Mode == definition.Production || config.Server.DefaultDecision == definition.DecideDeny {
		c.warnOfDenied(files, builtin)
	}
	return c.problems
}

// subject is a definition that tests run: a tool or prompt by its name, or a resource or
// template by its URI.
type subject struct{ kind, name string }

type checker struct {
	config *definition.Config
	// resources, resource folders and resource templates share the namespace resources.
	tools, resources, prompts, policies, limits, hooks *namespace
	// uris are the URIs of resources; prefixes are the URI prefixes of folders.
	uris, prefixes map[string]diag.Range
	folders        []*definition.Folder
	templates      []*definition.Template
	// files are the checked files, and grants the grants of their definitions, once a test needs
	// them.
	files  []*definition.Definitions
	grants map[subject]*grant.Set
	// arguments are the arguments of prompts by "prompt " and name, and the variables of
	// templates by "template " and text.
	arguments map[string][]string
	// approvals are the targets of policies that may require approval.
	approvals []definition.Targets
	// locked and refer are from [External].
	locked   []string
	refer    func(Reference)
	problems diag.List
	// incomplete means that there may be unknown definitions.
	incomplete bool
}

func (c *checker) report(d diag.Diagnostic) { c.problems = append(c.problems, d) }

func (c *checker) fail(code string, where diag.Range, summary, detail string, notes ...diag.Note) {
	c.report(diag.Diagnostic{Code: code, Range: where, Summary: summary, Detail: detail, Notes: notes})
}

func (c *checker) warn(code string, where diag.Range, summary, detail string, notes ...diag.Note) {
	c.report(diag.Diagnostic{Severity: diag.Warning, Code: code, Range: where, Summary: summary, Detail: detail, Notes: notes})
}

// defineAll adds the definitions of a file.
func (c *checker) defineAll(f *definition.Definitions) {
	for i := range f.Tools {
		tool := &f.Tools[i]
		c.define(c.tools, tool.Name, tool.NameRange)
		c.checkCeiling("tool", tool.Name, &tool.Grant, tool.GrantRanges)
		c.checkBounds("tool", tool.Name, tool.Bounds)
	}
	c.defineResources(f)
	for i := range f.Prompts {
		prompt := &f.Prompts[i]
		c.define(c.prompts, prompt.Name, prompt.NameRange)
		c.checkCeiling("prompt", prompt.Name, &prompt.Grant, prompt.GrantRanges)
		c.checkBounds("prompt", prompt.Name, prompt.Bounds)
		c.arguments["prompt "+prompt.Name] = []string{}
		for _, a := range prompt.Arguments {
			c.arguments["prompt "+prompt.Name] = append(c.arguments["prompt "+prompt.Name], a.Name)
		}
	}
}

func (c *checker) checkPolicies(policies []definition.Policy) {
	for i := range policies {
		p := &policies[i]
		c.define(c.policies, p.Name, p.NameRange)
		c.checkTargets(fmt.Sprintf("policy %q", p.Name), p.Targets)
		if p.Approval != nil {
			c.approvals = append(c.approvals, p.Targets)
		}
	}
}

func (c *checker) checkLimits(limits []definition.Limit) {
	for i := range limits {
		l := &limits[i]
		c.define(c.limits, l.Name, l.NameRange)
		c.checkTargets(fmt.Sprintf("limit %q", l.Name), l.Targets)
	}
}

func (c *checker) checkHooks(hooks []definition.Hook) {
	for i := range hooks {
		h := &hooks[i]
		c.define(c.hooks, h.Name, h.NameRange)
		c.checkTargets(fmt.Sprintf("hook %q", h.Name), h.Targets)
	}
}

func (c *checker) checkTests(tests []definition.Test) {
	for i := range tests {
		test := &tests[i]
		// A test may call a missing tool to show that it is missing.
		if test.Expect.Error != "TOOL_NOT_FOUND" {
			c.checkTarget(test)
		}
		c.checkMocks(test)
		if by := test.Expect.DeniedBy; by != "" {
			c.checkDefined(c.policies, by, test.Expect.DeniedByRange)
		}
	}
}

func (c *checker) checkTarget(test *definition.Test) {
	switch {
	case test.Complete != "":
		c.checkCompletion(test)
	case test.Resource != "":
		c.checkURI(test.Resource, test.TargetRange)
	case test.Prompt != "":
		c.checkDefined(c.prompts, test.Prompt, test.TargetRange)
	case test.Tool != "":
		c.checkDefined(c.tools, test.Tool, test.TargetRange)
	}
}

// checkProduction reports missing definitions that production mode requires. Builtin tools have
// the output schema of their type.
func (c *checker) checkProduction(files []*definition.Definitions, builtin []definition.Name) {
	policies := c.callPolicies(files)
	if c.config.Audit == nil && !c.config.Incomplete {
		c.fail("production-no-audit", c.config.Server.Range, "there is no audit block, which production mode requires", "add audit { path = \"…\" }")
	}
	var open uncoveredList
	eachServed(files, builtin, func(kind, name string, where diag.Range, names func(*definition.Policy) []definition.Name) {
		if !c.incomplete && !slices.ContainsFunc(policies, func(p definition.Policy) bool { return definition.MatchesAny(names(&p), name) }) {
			open.add(kind, name, where)
		}
	})
	for _, l := range open {
		what, them := l.words()
		c.fail("production-no-policy", l.where, fmt.Sprintf("no policy covers %s, which production mode requires", what),
			fmt.Sprintf("add a policy block whose %ss match %s", l.kind, them))
	}
	for _, f := range files {
		for i := range f.Tools {
			c.checkOutput(&f.Tools[i])
		}
	}
}

// warnOfDenied warns of items with calls that are always denied, if the default decision is deny. In
// production mode, an item without any policy is already an error.
func (c *checker) warnOfDenied(files []*definition.Definitions, builtin []definition.Name) {
	policies := c.callPolicies(files)
	production := c.config.Server.Mode == definition.Production
	var denied uncoveredList
	eachServed(files, builtin, func(kind, name string, where diag.Range, names func(*definition.Policy) []definition.Name) {
		covered, allowed := false, false
		for i := range policies {
			if definition.MatchesAny(names(&policies[i]), name) {
				covered, allowed = true, allowed || policies[i].Allow != nil
			}
		}
		if !c.incomplete && !allowed && (covered || !production) {
			denied.add(kind, name, where)
		}
	})
	for _, l := range denied {
		what, them := l.words()
		c.warn("production-no-allow", l.where, fmt.Sprintf("no allow policy covers %s: every call of %s is denied", what, them),
			fmt.Sprintf("add a policy block whose %ss match %s, with allow = \"…\"", l.kind, them))
	}
}

// uncoveredList lists items without a policy. Items of one block form one entry.
type uncoveredList []uncovered

type uncovered struct {
	kind  string
	where diag.Range
	names []string
}

func (l *uncoveredList) add(kind, name string, where diag.Range) {
	if last := len(*l) - 1; last >= 0 && (*l)[last].where == where && (*l)[last].kind == kind {
		(*l)[last].names = append((*l)[last].names, name)
		return
	}
	*l = append(*l, uncovered{kind, where, []string{name}})
}

// words returns the names of the items and their pronoun.
func (l uncovered) words() (what, them string) {
	if len(l.names) == 1 {
		return fmt.Sprintf("%s %q", l.kind, l.names[0]), "it"
	}
	quoted := make([]string, len(l.names))
	for i, name := range l.names {
		quoted[i] = strconv.Quote(name)
	}
	last := len(quoted) - 1
	return fmt.Sprintf("%ss %s and %s", l.kind, strings.Join(quoted[:last], ", "), quoted[last]), "them"
}

// callPolicies returns the policies that decide before a call. Policies on results are not
// included.
func (c *checker) callPolicies(files []*definition.Definitions) []definition.Policy {
	policies := slices.Clone(c.config.Policies)
	for _, f := range files {
		policies = append(policies, f.Policies...)
	}
	return slices.DeleteFunc(policies, func(p definition.Policy) bool { return p.OnResult })
}

// eachServed calls see with each tool, resource and prompt, and a function that returns the
// names of its kind in a policy.
func eachServed(files []*definition.Definitions, builtin []definition.Name, see func(kind, name string, where diag.Range, names func(*definition.Policy) []definition.Name)) {
	inTools := func(p *definition.Policy) []definition.Name { return p.Tools }
	inResources := func(p *definition.Policy) []definition.Name { return p.Resources }
	inPrompts := func(p *definition.Policy) []definition.Name { return p.Prompts }
	for _, name := range builtin {
		see("tool", name.Text, name.Range, inTools)
	}
	for _, f := range files {
		for i := range f.Tools {
			see("tool", f.Tools[i].Name, f.Tools[i].NameRange, inTools)
		}
		for i := range f.Resources {
			see("resource", f.Resources[i].Name, f.Resources[i].NameRange, inResources)
		}
		for i := range f.Folders {
			see("resource", f.Folders[i].Name, f.Folders[i].NameRange, inResources)
		}
		for i := range f.Templates {
			see("resource", f.Templates[i].Name, f.Templates[i].NameRange, inResources)
		}
		for i := range f.Prompts {
			see("prompt", f.Prompts[i].Name, f.Prompts[i].NameRange, inPrompts)
		}
	}
}

func (c *checker) checkOutput(tool *definition.Tool) {
	if tool.Output == nil && tool.OutputOrigin == nil {
		c.fail("production-no-output", tool.NameRange, fmt.Sprintf("tool %q declares no output, which production mode requires", tool.Name),
			"add output blocks for its result")
	}
}

// checkEncryption reports upstreams with a header that sends a secret over an unencrypted
// connection. In production mode, this is an error.
func (c *checker) checkEncryption() {
	d := diag.Diagnostic{Severity: diag.Warning, Code: "unencrypted-secret", Detail: "write https://, or set private_networks = true if the host is in your own network"}
	demanded := ""
	if c.config.Server.Mode == definition.Production {
		d.Severity, demanded = diag.Error, ", which production mode forbids"
	}
	for i := range c.config.Upstreams {
		u := &c.config.Upstreams[i]
		if header := u.PlaintextSecretHeader(); header != "" {
			d.Range, d.Summary = u.AddressRange, fmt.Sprintf("the header %q sends a secret to this server unencrypted%s", header, demanded)
			c.report(d)
		}
	}
}
