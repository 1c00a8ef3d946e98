package mcp

import (
	"github.com/mcpd/mcpd/call"
)

// kinds is the number of values of [call.Kind].
const kinds = 4

// listMember is the name of the list in the answer that lists the kind.
func listMember(k call.Kind) string {
	return [kinds]string{"tools", "resources", "resourceTemplates", "prompts"}[k]
}
