package secrets

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
)

// keyMark parts the name from the rest of a key. No name holds it.
const keyMark = "#"

// Key names this very definition: another source of the same name has another
// key. A call that began before a reload asks for its secrets by key, so that
// the new value never goes where only the old one was meant to go.
func (d Def) Key() string {
	h := sha256.New()
	for _, part := range append([]string{d.Env, d.File}, d.Command...) {
		h.Write([]byte(part + "\x00"))
	}
	if d.Reveal {
		h.Write([]byte("reveal"))
	}
	if d.OAuth != nil {
		// Plain data always encodes, and maps in the order of their keys.
		client, _ := json.Marshal(d.OAuth)
		h.Write(client)
	}
	return d.Name + keyMark + hex.EncodeToString(h.Sum(nil)[:8])
}

func nameOf(id string) string {
	name, _, _ := strings.Cut(id, keyMark)
	return name
}

// SplitKey returns the name of a secret, and what tells definitions of that name
// apart, of which [Def.Key] is made.
func SplitKey(key string) (name, definition string) {
	name, definition, _ = strings.Cut(key, keyMark)
	return name, definition
}

// JoinKey is the key of which SplitKey returns these parts.
func JoinKey(name, definition string) string { return name + keyMark + definition }
