package state

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"strings"
	"time"
)

const (
	// maxInline is the maximum size of asks and journal inside of a sealed state, in
	// bytes.
	maxInline = 8 << 10
	// maxSealed is the maximum length of a sealed state.
	maxSealed = 32 << 10
)

// sealVersion is the first byte of sealed text, before the id of the key. Both are
// authenticated.
const sealVersion = 1

// sealHead is the length of the clear-text part.
const sealHead = 1 + 4

// alphabet is unpadded base64url with exactly one encoding of the same bytes.
var alphabet = base64.RawURLEncoding.Strict()

// Sealer seals states with the keys of a store. The store also holds parts that are too
// large. It is safe for concurrent use.
type Sealer struct {
	store Store
	now   func() time.Time
}

// NewSealer returns a sealer with the clock now, unless the store has one ([Clock]). A nil
// now means [time.Now].
func NewSealer(s Store, now func() time.Time) *Sealer {
	if now == nil {
		now = time.Now
	}
	return &Sealer{s, Clock(s, now)}
}

// Want holds the required properties of a sealed state.
type Want struct {
	Owner                 Owner
	Definition, Arguments [32]byte
}

// Seal returns the state as text that only [Sealer.Open] can read. The text has its own
// nonce. It expires with the state, but after [MaxLife] at the latest. The error may be
// a [*FullError].
func (s *Sealer) Seal(state State) (string, error) {
	latest := s.now().Add(MaxLife)
	if state.Expires.IsZero() || state.Expires.After(latest) {
		state.Expires = latest
	}
	rand.Read(state.Nonce[:])
	var plain encoder
	state.encodeHead(&plain)
	if err := s.addBulk(&plain, &state); err != nil {
		return "", err
	}
	key, err := s.store.SealingKey()
	if err != nil {
		return "", err
	}
	head := binary.BigEndian.AppendUint32([]byte{sealVersion}, key.ID)
	sealed := alphabet.EncodeToString(key.aead().Seal(head, nil, plain, head))
	if len(sealed) > maxSealed {
		return "", errors.New("the principal or the call has too long a name to be sealed")
	}
	return sealed, nil
}

// addBulk appends the asks and the journal, or stores them and appends their digest.
func (s *Sealer) addBulk(plain *encoder, state *State) error {
	var bulk encoder
	state.encodeBulk(&bulk)
	if len(bulk) <= maxInline {
		plain.bytes(bulk)
		return nil
	}
	plain.bytes(nil)
	digest := sha256.Sum256(bulk)
	plain.fixed(digest[:])
	return s.store.PutJournal(state.Owner, state.Nonce, state.Expires, bulk)
}

// Open returns the state in a sealed text if it is what the caller wants and has not
// expired. Otherwise the error is [ErrTampered], [ErrForeign], [ErrExpired],
// [ErrChanged], [ErrArguments] or, if the stored part is missing, [ErrLost].
func (s *Sealer) Open(text string, want Want) (State, error) {
	plain, err := s.unseal(text)
	if err != nil {
		return State{}, err
	}
	var state State
	d := decoder{data: plain}
	state.decodeHead(&d)
	bulk := d.bytes()
	var digest [32]byte
	if len(bulk) == 0 {
		d.fixed(digest[:])
	}
	if d.end() != nil {
		return State{}, ErrTampered
	}
	if err := s.check(&state, want); err != nil {
		return State{}, err
	}
	if len(bulk) == 0 {
		if bulk, err = s.fetch(state.Nonce, digest); err != nil {
			return State{}, err
		}
	}
	d = decoder{data: bulk}
	if state.decodeBulk(&d); d.end() != nil {
		return State{}, ErrTampered
	}
	return state, nil
}

func (s *Sealer) unseal(text string) ([]byte, error) {
	// The decoder ignores line ends, which would allow several encodings.
	if len(text) > maxSealed || strings.ContainsAny(text, "\r\n") {
		return nil, ErrTampered
	}
	sealed, err := alphabet.DecodeString(text)
	if err != nil || len(sealed) < sealHead || sealed[0] != sealVersion {
		return nil, ErrTampered
	}
	head, rest := sealed[:sealHead], sealed[sealHead:]
	key, err := s.store.KeyByID(binary.BigEndian.Uint32(head[1:]))
	if err != nil {
		return nil, err
	}
	plain, err := key.aead().Open(nil, nil, rest, head)
	if err != nil {
		return nil, ErrTampered
	}
	return plain, nil
}

// check compares in constant time, so that timing reveals nothing about a guess.
func (s *Sealer) check(state *State, want Want) error {
	owner := subtle.ConstantTimeCompare([]byte(state.Owner.Key()), []byte(want.Owner.Key()))
	definition := subtle.ConstantTimeCompare(state.Definition[:], want.Definition[:])
	arguments := subtle.ConstantTimeCompare(state.Arguments[:], want.Arguments[:])
	switch {
	case owner != 1:
		return ErrForeign
	case !state.Expires.After(s.now()):
		return ErrExpired
	case definition != 1:
		return ErrChanged
	case arguments != 1:
		return ErrArguments
	}
	return nil
}

func (s *Sealer) fetch(nonce Nonce, digest [32]byte) ([]byte, error) {
	bulk, err := s.store.Journal(nonce)
	if err != nil {
		return nil, err
	}
	if sha256.Sum256(bulk) != digest {
		return nil, ErrTampered
	}
	return bytes.Clone(bulk), nil
}

// aead returns the cipher of the key. It uses random nonces; a key seals too few states
// for a collision.
func (k Key) aead() cipher.AEAD {
	block, err := aes.NewCipher(k.Secret[:])
	if err != nil {
		panic("state: a key of 32 bytes is refused: " + err.Error())
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic("state: AES is refused: " + err.Error())
	}
	return aead
}
