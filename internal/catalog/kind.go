package catalog

import "github.com/mcpd/mcpd/internal/uritemplate"

// Kind is a kind of item. The zero Kind is that of tools.
type Kind uint8

// The kinds. A template stands for the resources whose URIs match it.
const (
	Tools Kind = iota
	Resources
	Templates
	Prompts

	kinds = 4
)

// MaxAddress is how long what anything of the kind is called by can be, in bytes.
func (k Kind) MaxAddress() int {
	if k == Tools || k == Prompts {
		return 64
	}
	return uritemplate.MaxURI
}

// String returns what one item of the kind is called in events and messages.
func (k Kind) String() string {
	return [kinds]string{"tool", "resource", "resource", "prompt"}[k]
}
