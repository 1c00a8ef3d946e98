package call

// Kind is a kind of what can be called. The zero Kind is that of tools.
type Kind uint8

// The kinds. A read names the URI of a resource, and is of kind Resources
// whatever answers it; Templates is for completions alone.
const (
	Tools Kind = iota
	Resources
	Templates
	Prompts
)

// String returns what one item of the kind is called in events and messages.
func (k Kind) String() string {
	return [...]string{"tool", "resource", "resource", "prompt"}[k]
}
