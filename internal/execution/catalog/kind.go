package catalog

import (
	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/language/uritemplate"
)

// Kind is a kind of item.
type Kind = call.Kind

// The kinds. A template stands for the resources whose URIs match it.
const (
	Tools     = call.Tools
	Resources = call.Resources
	Templates = call.Templates
	Prompts   = call.Prompts

	kinds = 4
)

// maxName is how long the name of a tool may be, with the prefix of its upstream (2026-07-28
// server/tools, Tool Names). Files give shorter ones.
const maxName = 128

// MaxAddress is how long what anything of a kind is called by can be, in bytes.
func MaxAddress(k Kind) int {
	if k == Tools || k == Prompts {
		return maxName
	}
	return uritemplate.MaxURI
}
