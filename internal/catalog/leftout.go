package catalog

import "github.com/mcpd/mcpd/internal/clip"

// LeftOut is one thing that an upstream server offers and that is not served.
type LeftOut struct {
	leftKey
	// Upstream is the name of the server, and Why says why, for the operator.
	Upstream, Why string
	// Quarantined says that it is a tool that nobody has accepted as it is.
	Quarantined bool
	// Unruled says that a rule which covers it does not fit it, and Taken that it would be
	// called as something that is served.
	Unruled, Taken bool
}

// Quarantined is the code of warnings of tools that nobody has accepted as they are. The log
// has each of them with what has become of it.
const Quarantined = "quarantined"

// NewLeftOut returns what is left out before it is an item: address is what callers would
// call it by.
func NewLeftOut(kind Kind, address, upstream, why string) LeftOut {
	return LeftOut{leftKey: leftKey{kind, clipped(address)}, Upstream: upstream, Why: why}
}

// leftKey is what callers would call it by.
type leftKey struct {
	Kind    Kind
	Address string
}

// clipped bounds a name that a server gives, in bytes. It breaks no character.
func clipped(name string) string {
	if len(name) > maxName {
		return clip.Start(name, maxName) + "…"
	}
	return name
}
