package crossref

import (
	"fmt"
	"slices"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/grant"
	"github.com/mcpd/mcpd/internal/hclfile"
)

// checkCalls checks the names and patterns of the tools that the definitions of
// a file may call.
func (c *checker) checkCalls(f *hclfile.Definitions) {
	eachGrant(f, func(kind, name string, granted grant.Set, ranges map[string]diag.Range) {
		c.existIn(c.tools, fmt.Sprintf("%s %q", kind, name), callable(granted, ranges))
	})
}

// callable returns what a grant lets be called. What has no place nobody has written.
func callable(granted grant.Set, ranges map[string]diag.Range) []hclfile.Name {
	var names []hclfile.Name
	for _, text := range granted.Call {
		if where, written := ranges["tools."+text]; written {
			names = append(names, hclfile.Name{Text: text, Range: where})
		}
	}
	return names
}

// mayCall reports whether a grant lets a tool be called.
func mayCall(granted grant.Set, tool string) bool {
	return slices.ContainsFunc(granted.Call, func(text string) bool { return hclfile.Name{Text: text}.Matches(tool) })
}
