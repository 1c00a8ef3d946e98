// Package apikey creates, stores and checks API keys.
//
// A [Key] is the credential of a caller: an id and a secret of 160 random bits
// with a checksum. A [Record] is the stored form of a key, with a hash instead
// of the secret. A [KeySet] holds the records of one file and returns the
// principal of a key. [Add] and [Revoke] edit a file.
//
// The hash is one SHA-256 over a salt and the secret. A slow hash protects
// secrets that people choose; 160 random bits cannot be guessed at any speed,
// and a slow hash would let unauthenticated clients keep the server busy.
//
// A file holds one record per line, as JSON. Only its owner may access it. It
// is always replaced, never modified. An invalid file is rejected, but the
// revocations in its valid lines apply.
//
// The package has no access to requests, reads no clock and watches no files.
package apikey

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"errors"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/mcpd/mcpd/identity"
)

// Prefix is the prefix of every key, so that secret scanners recognize one.
const Prefix = "mcpd_"

const (
	idBytes     = 10 // 16 characters
	randomBytes = 20 // 160 bits
	sumBytes    = 5
	idLen       = idBytes * 8 / 5
	secretLen   = (randomBytes + sumBytes) * 8 / 5
	keyLen      = len(Prefix) + idLen + len("_") + secretLen
)

// alphabet is the alphabet of base32 (RFC 4648 section 6) in lower case. With
// the lengths used here, each text has one encoding, without padding.
const alphabet = "abcdefghijklmnopqrstuvwxyz234567"

// encode encodes bytes in the alphabet.
func encode(b []byte) string {
	return base32.NewEncoding(alphabet).WithPadding(base32.NoPadding).EncodeToString(b)
}

// ErrMalformed is the error of [Parse]. It contains nothing of the text.
var ErrMalformed = errors.New("not a valid API key")

// Key is an API key: mcpd_ID_SECRET. It prints without its secret.
type Key struct {
	// ID is not secret: logs and lists show it.
	ID     string
	secret string
}

// New returns a new random key.
func New() Key {
	id := make([]byte, idBytes)
	secret := make([]byte, randomBytes, randomBytes+sumBytes)
	rand.Read(id) // never fails: crypto/rand ends the process instead
	rand.Read(secret)
	k := Key{ID: encode(id)}
	sum := checksum(k.ID, secret)
	k.secret = encode(append(secret, sum[:]...))
	return k
}

// Parse parses a key and verifies its checksum: a typing error or another text
// is rejected without reading the records.
func Parse(text string) (Key, error) {
	if len(text) != keyLen || !strings.HasPrefix(text, Prefix) || text[len(Prefix)+idLen] != '_' {
		return Key{}, ErrMalformed
	}
	k := Key{ID: text[len(Prefix):][:idLen], secret: text[keyLen-secretLen:]}
	var id [idBytes]byte
	var secret [randomBytes + sumBytes]byte
	if !decode(id[:], k.ID) || !decode(secret[:], k.secret) {
		return Key{}, ErrMalformed
	}
	sum := checksum(k.ID, secret[:randomBytes])
	if subtle.ConstantTimeCompare(sum[:], secret[randomBytes:]) != 1 {
		return Key{}, ErrMalformed
	}
	return k, nil
}

// decode decodes a text of the right length into b. Unlike encoding/base32, it
// does not allocate, and rejects line breaks.
func decode(b []byte, text string) bool {
	bits, pending := uint(0), 0
	b = b[:0]
	for i := range len(text) {
		value := strings.IndexByte(alphabet, text[i])
		if value < 0 {
			return false
		}
		bits, pending = bits<<5|uint(value), pending+5
		if pending >= 8 {
			pending -= 8
			b = append(b, byte(bits>>pending))
		}
	}
	return true
}

// Plaintext returns the key with its secret, for its holder.
func (k Key) Plaintext() string { return Prefix + k.ID + "_" + k.secret }

// String returns the key without its secret.
func (k Key) String() string { return Prefix + k.ID + "_…" }

// GoString returns String, so that %#v prints no secret.
func (k Key) GoString() string { return k.String() }

func checksum(id string, secret []byte) [sumBytes]byte {
	var buffer [len(Prefix) + idLen + randomBytes]byte
	text := append(append(append(buffer[:0], Prefix...), id...), secret...)
	sum := sha256.Sum256(text)
	return [sumBytes]byte(sum[:])
}

const (
	saltBytes = 16
	// maxText bounds a name, an id, a scope and a group, in bytes; maxList bounds
	// the scopes and groups of a record.
	maxText, maxList = 256, 64
)

// Record is the stored form of a key. It is immutable.
type Record struct {
	ID string `json:"id"`
	// Name describes the purpose of the key.
	Name string `json:"name"`
	// Principal is the id of the caller with the key. Keys may share one.
	Principal string   `json:"principal"`
	Scopes    []string `json:"scopes,omitempty"`
	Groups    []string `json:"groups,omitempty"`
	// Agent is the id of the agent that the key is bound to; empty for none.
	Agent   string    `json:"agent,omitempty"`
	Created time.Time `json:"created"`
	// Expires and Revoked are zero for never.
	Expires time.Time `json:"expires,omitzero"`
	Revoked time.Time `json:"revoked,omitzero"`
	Salt    []byte    `json:"salt"`
	Hash    []byte    `json:"hash"`
}

// NewRecord returns the record of a key, with the other fields of known.
func NewRecord(k Key, known Record) Record {
	r := known
	r.ID, r.Salt = k.ID, make([]byte, saltBytes)
	rand.Read(r.Salt)
	sum := hash(r.Salt, k.secret)
	r.Hash = sum[:]
	return r
}

// hash returns the stored hash of a secret.
func hash(salt []byte, secret string) [sha256.Size]byte {
	var buffer [saltBytes + secretLen]byte
	return sha256.Sum256(append(append(buffer[:0], salt...), secret...))
}

// verify reports whether a secret matches the record, in constant time.
func (r *Record) verify(secret string) bool {
	sum := hash(r.Salt, secret)
	return subtle.ConstantTimeCompare(sum[:], r.Hash) == 1
}

// checkValid returns an error if the key has expired or was revoked.
func (r *Record) checkValid(now time.Time) error {
	switch {
	case !r.Revoked.IsZero():
		return ErrRevoked
	case !r.Expires.IsZero() && !now.Before(r.Expires):
		return ErrExpired
	}
	return nil
}

// AsPrincipal returns the principal of the key.
func (r *Record) AsPrincipal() identity.Principal {
	return identity.Principal{
		ID: r.Principal, Kind: identity.KindKey, Agent: r.Agent,
		Scopes: append([]string{}, r.Scopes...), Groups: append([]string{}, r.Groups...),
		Claims: map[string]any{"key": r.ID, "name": r.Name},
	}
}

// check returns an error if the record is invalid. It contains nothing of the
// record.
func (r *Record) check() error {
	var id [idBytes]byte
	switch {
	case len(r.ID) != idLen || !decode(id[:], r.ID):
		return errors.New("the id is not a key id")
	case len(r.Salt) != saltBytes || len(r.Hash) != sha256.Size:
		return errors.New("the salt or the hash has the wrong length")
	case r.Created.IsZero():
		return errors.New("the creation time is missing")
	case r.Principal == identity.Anonymous().ID:
		return errors.New("the principal of a key cannot be anonymous; use another principal")
	case r.Agent == identity.AnonymousAgent:
		return errors.New("a key cannot be bound to the anonymous agent; use another agent")
	case len(r.Scopes) > maxList || len(r.Groups) > maxList:
		return errors.New("there are more than 64 scopes or groups")
	case !isText(r.Name) || !isText(r.Principal) || r.Agent != "" && !isText(r.Agent):
		return errors.New("the name, the principal or the agent is empty, longer than 256 bytes or has control characters")
	}
	for _, list := range [][]string{r.Scopes, r.Groups} {
		for _, word := range list {
			if !isWord(word) {
				return errors.New("a scope or a group is empty, longer than 256 bytes or has spaces or control characters")
			}
		}
	}
	return nil
}

func isText(text string) bool {
	if text == "" || len(text) > maxText || !utf8.ValidString(text) {
		return false
	}
	for _, r := range text {
		if !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}

func isWord(text string) bool {
	for _, r := range text {
		if unicode.IsSpace(r) {
			return false
		}
	}
	return isText(text)
}
