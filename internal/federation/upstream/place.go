package upstream

import (
	"crypto/sha256"
	"encoding/json"
	"time"

	"github.com/mcpd/mcpd/internal/language/grant"
)

// Place says where a server is, and how to speak to it. Exactly one of Command and URL
// is set.
type Place struct {
	// Name is that of the upstream block, for the log.
	Name string
	// Command is a program, by its absolute path, and its arguments; Dir is the folder
	// that it runs in. Env holds its variables.
	Command []string
	Dir     string
	Env     []grant.Variable
	// URL is that of a server over HTTP, which is reached under the grant.
	URL   string
	Grant grant.HTTP
	// Transport is [Streamable] or [Events], "" where it is found out.
	Transport string
	// Ask is what the server may ask of the clients of its calls.
	Ask Asks
	// Start is how long the server may take until it is ready, and MaxMessage what it may
	// send at once, in bytes.
	Start      time.Duration
	MaxMessage int
	// Lazy has the server reached when it is called first. It is no part of the hash: one
	// that is reached goes on.
	Lazy bool `json:"-"`
}

// The values of [Place.Transport].
const (
	// Streamable is Streamable HTTP, of all revisions since 2025-03-26.
	Streamable = "streamable"
	// Events is HTTP with SSE, of revision 2024-11-05.
	Events = "sse"
)

// Hash is that of everything that the place says.
func (p Place) Hash() [32]byte {
	// Plain data always encodes.
	text, _ := json.Marshal(p)
	return sha256.Sum256(text)
}
