package grant

import "time"

// The scopes of a [KV]: who shares the values.
const (
	// ScopeTool is the definition that holds the grant, alone.
	ScopeTool = "tool"
	// ScopePrincipal is all calls of one authenticated principal.
	ScopePrincipal = "principal"
	// ScopeSession is all calls in one MCP session.
	ScopeSession = "session"
	// ScopeServer is all that names the same values.
	ScopeServer = "server"
)

// Scopes are all scopes, the narrowest that need nothing of the caller first.
func Scopes() []string { return []string{ScopeTool, ScopePrincipal, ScopeSession, ScopeServer} }

// MaxKey is how long a key of a [KV] may be, in bytes.
const MaxKey = 512

// KV lets a script keep values under keys, as the object kv.NAME.
type KV struct {
	Name  string `json:"name"`
	Scope string `json:"scope"`
	// TTL is how long a value is kept at most; 0 means until it is removed.
	TTL time.Duration `json:"ttl,omitempty"`
	// MaxKeys bounds the keys, MaxValue the bytes of one value as JSON, and
	// MaxTotal those of all keys and values together.
	MaxKeys  int   `json:"max_keys"`
	MaxValue int64 `json:"max_value"`
	MaxTotal int64 `json:"max_total"`
}
