package mcp

// Kind is a kind of what a server lists, and of what clients call for. The
// zero Kind is that of tools.
type Kind uint8

// The kinds. Templates are listed and completed; to read what one stands for
// is to read a resource.
const (
	Tools Kind = iota
	Resources
	Templates
	Prompts

	kinds = 4
)

// listMember is the name of the list in the answer that lists the kind.
func listMember(k Kind) string {
	return [kinds]string{"tools", "resources", "resourceTemplates", "prompts"}[k]
}
