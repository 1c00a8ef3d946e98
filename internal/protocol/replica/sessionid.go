package replica

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"strings"

	"github.com/mcpd/mcpd/identity"
)

// SessionID says where a legacy session is, and whose it is.
type SessionID struct {
	// Owner is the [Options].Process of the owner. It is not state.Replica.ID, which changes after the
	// replica was presumed dead.
	Owner     string
	principal [sha256.Size]byte
}

// BelongsTo reports whether the session was opened by a principal, bound to the same agent.
func (id SessionID) BelongsTo(p identity.Principal) bool { return id.principal == digest(p) }

const (
	// idPrefix marks sealed ids: a server without replicas makes ids without a dot.
	idPrefix = "r1."
	// MaxOwner bounds the id of a process, in bytes.
	MaxOwner = 64
	// uniqueBytes make an id unique, and impossible to guess.
	uniqueBytes = 16
	// sealedOverhead is the size of the nonce and the tag.
	sealedOverhead = 12 + 16
	// maxID bounds an id, in bytes: longer ones are not decoded.
	maxID = len(idPrefix) + ((sealedOverhead+uniqueBytes+sha256.Size+MaxOwner)*4+2)/3
)

var idEncoding = base64.RawURLEncoding.Strict()

// SealSessionID returns a new id for a session of a process: printable ASCII that needs no escape in a
// header or a URL. ok is false if the owner is empty or longer than [MaxOwner].
func (k *Keys) SealSessionID(owner string, p identity.Principal) (id string, ok bool) {
	if owner == "" || len(owner) > MaxOwner {
		return "", false
	}
	plain := make([]byte, uniqueBytes, uniqueBytes+sha256.Size+len(owner))
	rand.Read(plain)
	whose := digest(p)
	plain = append(append(plain, whose[:]...), owner...)
	return idPrefix + idEncoding.EncodeToString(k.ids[0].Seal(nil, nil, plain, []byte(idPrefix))), true
}

// OpenSessionID returns what an id from a client says. ok is false unless a replica with one of the
// secrets has sealed it; the caller treats such an id as unknown.
func (k *Keys) OpenSessionID(id string) (opened SessionID, ok bool) {
	text, ok := strings.CutPrefix(id, idPrefix)
	if !ok || len(id) > maxID || strings.ContainsAny(text, "\r\n") { // the decoder skips line breaks
		return SessionID{}, false
	}
	sealed, err := idEncoding.DecodeString(text)
	if err != nil || len(sealed) <= sealedOverhead+uniqueBytes+sha256.Size {
		return SessionID{}, false
	}
	for _, key := range k.ids {
		plain, err := key.Open(nil, nil, sealed, []byte(idPrefix))
		if err != nil {
			continue
		}
		rest := plain[uniqueBytes:]
		return SessionID{Owner: string(rest[sha256.Size:]), principal: [sha256.Size]byte(rest)}, true
	}
	return SessionID{}, false
}

// digest identifies a principal. Names have lengths, so that no two principals share one.
func digest(p identity.Principal) [sha256.Size]byte {
	var text []byte
	for _, part := range []string{string(p.Kind), p.Issuer, p.ID, p.Agent} {
		text = append(binary.AppendUvarint(text, uint64(len(part))), part...)
	}
	return sha256.Sum256(text)
}
