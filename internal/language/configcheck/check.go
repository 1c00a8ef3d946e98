package configcheck

import (
	"fmt"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/internal/language/hclfile"
)

// Check returns every mistake between the operator's file and the tool files. When
// either is incomplete, no name and no policy is reported as missing.
func Check(config *hclfile.Config, files []*hclfile.Definitions, elsewhere Elsewhere) diag.List {
	c := &checker{
		config: config, incomplete: elsewhere.Incomplete || config.Incomplete, uris: map[string]diag.Range{}, prefixes: map[string]diag.Range{}, grants: map[string]grant.Set{}, arguments: map[string][]string{},
		tools: newNamespace("tool"), resources: newNamespace("resource"), prompts: newNamespace("prompt"),
		policies: newNamespace("policy"), limits: newNamespace("limit"), hooks: newNamespace("hook"),
	}
	builtin := c.elsewhere(elsewhere)
	for _, f := range files {
		c.defineAll(f)
	}
	c.checkTemplates()
	c.checkPolicies(config.Policies)
	c.checkLimits(config.RateLimits)
	c.checkHooks(config.Hooks)
	if config.Codeact != nil {
		c.existIn(c.tools, "the codeact block", config.Codeact.Tools)
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
		c.checkCalls(f)
		c.checkTests(f.Tests)
	}
	c.checkEncryption()
	if config.Server.Mode == hclfile.Production {
		c.checkProduction(files, builtin)
	}
	if config.Server.Mode == hclfile.Production || config.Server.DefaultDecision == hclfile.DecideDeny {
		c.warnOfDenied(files, builtin)
	}
	return c.problems
}

type checker struct {
	config *hclfile.Config
	// resources are resources, folders and templates, which share their names.
	tools, resources, prompts, policies, limits, hooks *namespace
	// uris are those of resources, prefixes those of folders.
	uris, prefixes map[string]diag.Range
	folders        []*hclfile.Folder
	templates      []*hclfile.Template
	// grants are those of tools and prompts by their kind and name, and of
	// resources by their URI. What is written in Go has none here.
	grants map[string]grant.Set
	// arguments are those of prompts by "prompt " and their name, and of
	// templates by "template " and their text.
	arguments map[string][]string
	// approvals are what policies that may ask the user cover.
	approvals []hclfile.Targets
	// locked and refer are those of [Elsewhere].
	locked   []string
	refer    func(Reference)
	problems diag.List
	// incomplete says that more may be defined than is known.
	incomplete bool
}

func (c *checker) report(d diag.Diagnostic) { c.problems = append(c.problems, d) }

// defineAll remembers what a file defines.
func (c *checker) defineAll(f *hclfile.Definitions) {
	for i := range f.Tools {
		tool := &f.Tools[i]
		c.define(c.tools, tool.Name, tool.NameRange)
		c.ceiling("tool", tool.Name, tool.Grant, tool.GrantRanges)
		c.bounds("tool", tool.Name, tool.Bounds)
		c.grants["tool "+tool.Name] = tool.Grant
	}
	c.defineResources(f)
	for i := range f.Prompts {
		prompt := &f.Prompts[i]
		c.define(c.prompts, prompt.Name, prompt.NameRange)
		c.ceiling("prompt", prompt.Name, prompt.Grant, prompt.GrantRanges)
		c.bounds("prompt", prompt.Name, prompt.Bounds)
		c.grants["prompt "+prompt.Name] = prompt.Grant
		c.arguments["prompt "+prompt.Name] = []string{}
		for _, a := range prompt.Arguments {
			c.arguments["prompt "+prompt.Name] = append(c.arguments["prompt "+prompt.Name], a.Name)
		}
	}
}

func (c *checker) checkPolicies(policies []hclfile.Policy) {
	for i := range policies {
		p := &policies[i]
		c.define(c.policies, p.Name, p.NameRange)
		c.exist(fmt.Sprintf("policy %q", p.Name), p.Targets)
		if p.Approval != nil {
			c.approvals = append(c.approvals, p.Targets)
		}
	}
}

func (c *checker) checkLimits(limits []hclfile.Limit) {
	for i := range limits {
		l := &limits[i]
		c.define(c.limits, l.Name, l.NameRange)
		c.exist(fmt.Sprintf("limit %q", l.Name), l.Targets)
	}
}

func (c *checker) checkHooks(hooks []hclfile.Hook) {
	for i := range hooks {
		h := &hooks[i]
		c.define(c.hooks, h.Name, h.NameRange)
		c.exist(fmt.Sprintf("hook %q", h.Name), h.Targets)
	}
}

func (c *checker) checkTests(tests []hclfile.Test) {
	for i := range tests {
		test := &tests[i]
		// A test may call what is not there, in order to show that it is not.
		if test.Expect.Error != "TOOL_NOT_FOUND" {
			c.checkTarget(test)
		}
		c.checkMocks(test)
		if by := test.Expect.DeniedBy; by != "" {
			c.known(c.policies, by, test.Expect.DeniedByRange)
		}
	}
}

func (c *checker) checkTarget(test *hclfile.Test) {
	switch {
	case test.Complete != "":
		c.checkCompletion(test)
	case test.Resource != "":
		c.checkURI(test.Resource, test.TargetRange)
	case test.Prompt != "":
		c.known(c.prompts, test.Prompt, test.TargetRange)
	case test.Tool != "":
		c.known(c.tools, test.Tool, test.TargetRange)
	}
}
