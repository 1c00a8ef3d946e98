package crossref

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/hclfile"
)

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
