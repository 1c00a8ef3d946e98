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
