package apikey

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"errors"
	"strings"
)

// Prefix begins every key, so that a scanner of files knows one by sight.
const Prefix = "mcpd_"

const (
	idBytes     = 10 // 16 characters
	randomBytes = 20 // 160 bits
	sumBytes    = 5
	idLen       = idBytes * 8 / 5
	secretLen   = (randomBytes + sumBytes) * 8 / 5
	keyLen      = len(Prefix) + idLen + len("_") + secretLen
)

// alphabet is that of base32 (RFC 4648 section 6) in lower case. The lengths are those at
// which a text has one reading only, and no padding.
const alphabet = "abcdefghijklmnopqrstuvwxyz234567"

// encode writes bytes in that alphabet.
func encode(b []byte) string {
	return base32.NewEncoding(alphabet).WithPadding(base32.NoPadding).EncodeToString(b)
}

// ErrMalformed is what [Parse] says of a text that is no key. It repeats nothing of it.
var ErrMalformed = errors.New("not an API key, or one with a mistake in it")

// Key is an API key: mcpd_ID_SECRET. It prints without its secret.
type Key struct {
	// ID is no secret: logs and lists show it.
	ID     string
	secret string
}

// New returns a key that nobody has.
func New() Key {
	id := make([]byte, idBytes)
	secret := make([]byte, randomBytes, randomBytes+sumBytes)
	rand.Read(id) // never fails: crypto/rand ends the process rather
	rand.Read(secret)
	k := Key{ID: encode(id)}
	sum := checksum(k.ID, secret)
	k.secret = encode(append(secret, sum[:]...))
	return k
}

// Parse reads a key. The checksum is right in what it returns: whatever is not
// is a typing error or no key at all, and never worth a look at the records.
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

// decode fills b with what a text of the right length stands for. Unlike the
// library it allocates nothing, and takes no line breaks.
func decode(b []byte, text string) bool {
	bits, held := uint(0), 0
	b = b[:0]
	for i := range len(text) {
		value := strings.IndexByte(alphabet, text[i])
		if value < 0 {
			return false
		}
		bits, held = bits<<5|uint(value), held+5
		if held >= 8 {
			held -= 8
			b = append(b, byte(bits>>held))
		}
	}
	return true
}

// Text returns the key with its secret, for the one who is to hold it.
func (k Key) Text() string { return Prefix + k.ID + "_" + k.secret }

// String returns the key without its secret.
func (k Key) String() string { return Prefix + k.ID + "_…" }

// GoString is String, for who prints with %#v.
func (k Key) GoString() string { return k.String() }

func checksum(id string, secret []byte) [sumBytes]byte {
	var buffer [len(Prefix) + idLen + randomBytes]byte
	text := append(append(append(buffer[:0], Prefix...), id...), secret...)
	sum := sha256.Sum256(text)
	return [sumBytes]byte(sum[:])
}
