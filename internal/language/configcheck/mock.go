package configcheck

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/execution/suspend"
	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/internal/language/hclfile"
)

// checkMocks reports mocks of what the subject of a test is not granted, which
// could never answer.
func (c *checker) checkMocks(test *hclfile.Test) {
	what, granted, known := c.subject(test)
	if !known {
		return
	}
	objects := objectsOf(granted)
	for _, m := range test.Mocks {
		if m.Object == "tools" && len(granted.Call) > 0 && !mayCall(granted, m.Request) {
			c.report(diag.Diagnostic{
				Code: "unknown-grant", Range: m.Range,
				Summary: fmt.Sprintf("%s may not call tool %q, so nothing asks this mock", what, m.Request),
				Detail:  cmp.Or(diag.DidYouMean(m.Request, granted.Call), "add it to the tools of its call block, or remove the mock"),
			})
			continue
		}
		if m.Object == "" || slices.Contains(objects, m.Object) || m.Object == "elicit" && m.Request == suspend.ConsentKey && (c.incomplete || c.approves(test)) {
			continue // whoever decoded the file has told what is no object
		}
		c.report(diag.Diagnostic{
			Code: "unknown-grant", Range: m.Range,
			Summary: fmt.Sprintf("%s is not granted %s, so nothing asks this mock", what, m.Object),
			Detail:  mockAdvice(m.Object, objects),
		})
	}
}

// approves reports whether the user may be asked to approve the call of a test. Which
// resource a URI is of is known later: any policy of resources may be of that.
func (c *checker) approves(test *hclfile.Test) bool {
	return test.Complete == "" && slices.ContainsFunc(c.approvals, func(t hclfile.Targets) bool {
		switch {
		case test.Resource != "":
			return t.Resources == nil || len(t.Resources) > 0
		case test.Prompt != "":
			return hclfile.Covers(t.Prompts, test.Prompt)
		}
		return hclfile.Covers(t.Tools, test.Tool)
	})
}

// mockAdvice says what to do about a mock of an object that is none of the granted.
func mockAdvice(object string, granted []string) string {
	kind, name, _ := strings.Cut(object, ".")
	grants := fmt.Sprintf("ask { %s = true }", object)
	switch kind {
	case "http":
		grants = fmt.Sprintf("http %q { hosts = [...] }", name)
	case "fs":
		grants = fmt.Sprintf("fs %q { root = \"…\" }", name)
	case "env":
		grants = "env { names = [...] }"
	case "secrets":
		grants = "secrets { names = [...] }"
	case "sql":
		grants = fmt.Sprintf("sql %q { … }", name)
	case "kv":
		grants = fmt.Sprintf("kv %q {}", name)
	case "modules":
		grants = fmt.Sprintf("module %q {}", name)
	case "tools":
		grants = "call { tools = [...] }"
	case "exec":
		grants = fmt.Sprintf("exec %q { path = \"/…\" }", name)
	}
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
func (c *checker) subject(test *hclfile.Test) (what string, granted grant.Set, known bool) {
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
func (c *checker) checkCompletion(test *hclfile.Test) {
	kind, name := "template", test.Resource
	if test.Prompt != "" {
		kind, name = "prompt", test.Prompt
	}
	arguments, known := c.arguments[kind+" "+name]
	switch {
	case !known && kind == "prompt":
		c.known(c.prompts, name, test.TargetRange)
	case !known && c.incomplete:
	case !known:
		c.report(diag.Diagnostic{
			Code: "unknown-resource", Range: test.TargetRange, Summary: fmt.Sprintf("there is no template %q", name),
			Detail: "write the uri_template of a resource_template, as it stands there",
		})
	case !slices.Contains(arguments, test.Complete):
		detail := diag.DidYouMean(test.Complete, arguments)
		if detail == "" && len(arguments) > 0 {
			detail = "there is " + strings.Join(arguments, ", ")
		}
		c.report(diag.Diagnostic{
			Code: "unknown-argument", Range: test.CompleteRange, Detail: detail,
			Summary: fmt.Sprintf("the %s %q has no argument %q", kind, name, test.Complete),
		})
	}
}
