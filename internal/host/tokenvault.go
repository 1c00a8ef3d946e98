package host

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/mcpd/mcpd/internal/base/state"
	"github.com/mcpd/mcpd/internal/host/oauth"
)

// The space of what users have let clients have, and the key in it under which
// the key stands that seals all of it. No user has such a name.
const (
	vaultSpace = "oauth"
	vaultKey   = "\x00key"
)

// vaultRoom bounds the tokens of all users.
var vaultRoom = state.Room{Keys: 10_000, Bytes: 64 << 20}

// vaultLife is how long a token is kept that nobody renews. Each one makes room
// then: also when its user, or the definition of its secret, does not come back.
const vaultTTL = 90 * 24 * time.Hour

// vaults returns where the tokens of users are kept: in the store that open
// returns, sealed for one user of one secret.
func newVaultFunc(open func() (state.Store, error)) func(key string) oauth.Vault {
	return func(key string) oauth.Vault { return tokenVault{open: open, secret: key} }
}

// vault keeps tokens of the users of one secret.
type tokenVault struct {
	open   func() (state.Store, error)
	secret string
}

var errDamagedVault = errors.New("what is kept of a user is damaged")

func (v tokenVault) Get(user string) ([]byte, error) {
	store, err := v.open()
	if err != nil {
		return nil, fmt.Errorf("open the tokens of users: %w", err)
	}
	kept, err := store.Pair(vaultSpace, v.name(user))
	if err != nil || kept.Value == nil {
		return nil, err
	}
	seal, err := vaultCipher(store)
	if err != nil {
		return nil, err
	}
	value, err := seal.Open(nil, nil, kept.Value, []byte(v.name(user)))
	if err != nil {
		return nil, errDamagedVault
	}
	return value, nil
}

// Put keeps a value of a user, for vaultLife.
func (v tokenVault) Put(user string, value []byte) error {
	store, err := v.open()
	if err != nil {
		return fmt.Errorf("open the tokens of users: %w", err)
	}
	if value == nil {
		_, err := deleteRow(store, v.name(user))
		return err
	}
	return v.seal(store, user, value, func(state.Pair) bool { return true })
}

// Replace keeps a value of a user in the place of one that it follows, for vaultLife.
func (v tokenVault) Replace(user string, value []byte, follows func(old []byte) bool) (there bool, err error) {
	store, err := v.open()
	if err != nil {
		return false, fmt.Errorf("open the tokens of users: %w", err)
	}
	seal, err := vaultCipher(store)
	if err != nil {
		return false, err
	}
	err = v.seal(store, user, value, func(old state.Pair) bool {
		text, err := seal.Open(nil, nil, old.Value, []byte(v.name(user)))
		there = old.Value != nil && err == nil && follows(text)
		return there
	})
	return there, err
}

// seal keeps a value of a user, for vaultLife, if it may take the place of what there is.
func (v tokenVault) seal(store state.Store, user string, value []byte, may func(old state.Pair) bool) error {
	seal, err := vaultCipher(store)
	if err != nil {
		return err
	}
	sealed := seal.Seal(nil, nil, value, []byte(v.name(user)))
	return store.ChangePair(vaultSpace, v.name(user), vaultRoom, func(old state.Pair, now time.Time) (state.Pair, error) {
		if !may(old) {
			return old, nil
		}
		return state.Pair{Value: sealed, Expires: now.Add(vaultTTL)}, nil
	})
}

func deleteRow(store state.Store, name string) (there bool, err error) {
	err = store.ChangePair(vaultSpace, name, vaultRoom, func(old state.Pair, _ time.Time) (state.Pair, error) {
		there = old.Value != nil
		return state.Pair{}, nil
	})
	return there, err
}

// name is what stands in the clear: the secret and the user, of which the key
// of the secret has no zero byte.
func (v tokenVault) name(user string) string { return v.secret + "\x00" + user }

// sealOf returns the seal of a store, which it makes at first use.
func vaultCipher(store state.Store) (cipher.AEAD, error) {
	key, err := store.Pair(vaultSpace, vaultKey)
	if err == nil && key.Value == nil {
		err = store.ChangePair(vaultSpace, vaultKey, vaultRoom, func(old state.Pair, _ time.Time) (state.Pair, error) {
			if old.Value == nil {
				old.Value = make([]byte, 32)
				rand.Read(old.Value)
			}
			key = old
			return old, nil
		})
	}
	if err != nil {
		return nil, fmt.Errorf("read the key of the tokens: %w", err)
	}
	block, err := aes.NewCipher(key.Value)
	if err != nil {
		return nil, errDamagedVault
	}
	return cipher.NewGCMWithRandomNonce(block)
}
