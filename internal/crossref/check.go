package crossref

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/hclfile"
)

// Check returns every mistake between the operator's file and the tool files.
// builtin are tools that no file defines; their ranges say where they are from.
func Check(config *hclfile.Config, files []*hclfile.Definitions, builtin []hclfile.Name) diag.List {
	c := &checker{config: config, tools: map[string]diag.Range{}, policies: map[string]diag.Range{}}
	for _, name := range builtin {
		c.define("tool", name.Text, name.Range, c.tools)
	}
	for _, f := range files {
		for i := range f.Tools {
			tool := &f.Tools[i]
			c.define("tool", tool.Name, tool.NameRange, c.tools)
			c.ceiling("tool", tool.Name, tool.Grant, tool.GrantRanges)
		}
		for i := range f.Resources {
			c.ceiling("resource", f.Resources[i].Name, f.Resources[i].Grant, f.Resources[i].GrantRanges)
		}
		for i := range f.Templates {
			c.ceiling("template", f.Templates[i].Name, f.Templates[i].Grant, f.Templates[i].GrantRanges)
		}
		for i := range f.Prompts {
			c.ceiling("prompt", f.Prompts[i].Name, f.Prompts[i].Grant, f.Prompts[i].GrantRanges)
		}
	}
	c.names = slices.Sorted(maps.Keys(c.tools))
	c.checkPolicies(config.Policies)
	hooks := map[string]diag.Range{}
	c.checkHooks(config.Hooks, hooks)
	for _, f := range files {
		c.checkPolicies(f.Policies)
	}
	for _, f := range files {
		c.checkHooks(f.Hooks, hooks)
		for i := range f.Hooks {
			c.ceiling("hook", f.Hooks[i].Name, f.Hooks[i].Grant, f.Hooks[i].GrantRanges)
		}
		c.checkTests(f.Tests)
	}
	if config.Server.Mode == hclfile.Production {
		c.checkProduction(files)
	}
	return c.problems
}

type checker struct {
	config          *hclfile.Config
	tools, policies map[string]diag.Range
	names           []string
	problems        diag.List
}

func (c *checker) report(d diag.Diagnostic) { c.problems = append(c.problems, d) }

// define remembers where a name is defined, and reports a second definition in
// another file.
func (c *checker) define(kind, name string, where diag.Range, known map[string]diag.Range) {
	first, twice := known[name]
	if !twice {
		known[name] = where
		return
	}
	if first.File == where.File && where.File != "" {
		return // whoever decoded the file has told
	}
	c.report(diag.Diagnostic{
		Code: "duplicate-" + kind, Range: where,
		Summary: fmt.Sprintf("%s %q is defined twice", kind, name),
		Detail:  "rename one of them or remove it",
		Notes:   []diag.Note{{Range: first, Message: "it is first defined here"}},
	})
}

func (c *checker) checkPolicies(policies []hclfile.Policy) {
	for i := range policies {
		p := &policies[i]
		c.define("policy", p.Name, p.NameRange, c.policies)
		c.exist("policy", p.Name, p.Tools)
	}
}

func (c *checker) checkHooks(hooks []hclfile.Hook, known map[string]diag.Range) {
	for i := range hooks {
		h := &hooks[i]
		c.define("hook", h.Name, h.NameRange, known)
		c.exist("hook", h.Name, h.Tools)
	}
}

func (c *checker) checkTests(tests []hclfile.Test) {
	for i := range tests {
		test := &tests[i]
		// A test may call a tool that is not there, in order to show that it is not.
		if test.Expect.Error != "TOOL_NOT_FOUND" {
			c.exist("test", test.Name, []hclfile.Name{{Text: test.Tool, Range: test.ToolRange}})
		}
		if by := test.Expect.DeniedBy; by != "" {
			if _, known := c.policies[by]; !known {
				c.unknown("policy", by, test.Expect.DeniedByRange, slices.Sorted(maps.Keys(c.policies)))
			}
		}
	}
}

// exist checks a list of tool names and patterns.
func (c *checker) exist(kind, name string, tools []hclfile.Name) {
	for _, tool := range tools {
		_, known := c.tools[tool.Text]
		switch {
		case known, tool.Text == "*":
		case !strings.Contains(tool.Text, "*"):
			c.unknown("tool", tool.Text, tool.Range, c.names)
		case !slices.ContainsFunc(c.names, tool.Matches):
			c.report(diag.Diagnostic{
				Severity: diag.Warning, Code: "pattern-matches-nothing", Range: tool.Range,
				Summary: fmt.Sprintf("no tool matches the pattern %q of %s %q", tool.Text, kind, name),
				Detail:  "the pattern covers tools that are added later; remove it if none will be",
			})
		}
	}
}

func (c *checker) unknown(kind, name string, where diag.Range, known []string) {
	detail := diag.DidYouMean(name, known)
	if detail == "" {
		detail = "define it, or correct the name"
	}
	c.report(diag.Diagnostic{
		Code: "unknown-" + kind, Range: where,
		Summary: fmt.Sprintf("there is no %s named %q", kind, name), Detail: detail,
	})
}
