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

// The space of user tokens, and the row with their encryption key. No user has such a name.
const (
	vaultSpace = "oauth"
	vaultKey   = "\x00key"
)

// vaultLimits bounds the tokens of all users.
var vaultLimits = state.Room{Keys: 10_000, Bytes: 64 << 20}

// vaultTTL is how long a token is stored without renewal, so that tokens of users and secrets
// that do not return free their space.
const vaultTTL = 90 * 24 * time.Hour

// newVaultFunc returns a constructor of token vaults in the store that open returns. Each token
// is encrypted and bound to one user of one secret. changed is called with the rows that have
// changed.
func newVaultFunc(open func() (state.Store, error), changed func(row string)) func(key string) oauth.Vault {
	return func(key string) oauth.Vault { return tokenVault{open: open, changed: changed, secret: key} }
}

// tokenVault stores the user tokens of one secret.
type tokenVault struct {
	open    func() (state.Store, error)
	changed func(row string)
	secret  string
}

var errDamagedVault = errors.New("the stored token is damaged")

func (v tokenVault) Get(user string) ([]byte, error) {
	store, err := v.open()
	if err != nil {
		return nil, fmt.Errorf("open user tokens: %w", err)
	}
	row, err := store.Pair(vaultSpace, v.name(user))
	if err != nil || row.Value == nil {
		return nil, err
	}
	seal, err := vaultCipher(store)
	if err != nil {
		return nil, err
	}
	value, err := seal.Open(nil, nil, row.Value, []byte(v.name(user)))
	if err != nil {
		return nil, errDamagedVault
	}
	return value, nil
}

// Put stores a value of a user for vaultTTL.
func (v tokenVault) Put(user string, value []byte) error {
	store, err := v.open()
	if err != nil {
		return fmt.Errorf("open user tokens: %w", err)
	}
	if value == nil {
		there, err := deleteRow(store, v.name(user))
		if there {
			v.changed(v.name(user))
		}
		return err
	}
	return v.seal(store, user, value, func(state.Pair) bool { return true })
}

// Replace replaces a value of a user if follows accepts the old one, for vaultTTL; nil deletes it.
func (v tokenVault) Replace(user string, value []byte, follows func(old []byte) bool) (there bool, err error) {
	store, err := v.open()
	if err != nil {
		return false, fmt.Errorf("open user tokens: %w", err)
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

// seal encrypts and stores a value of a user for vaultTTL, or deletes it if it is nil, if may accepts
// the old one.
func (v tokenVault) seal(store state.Store, user string, value []byte, may func(old state.Pair) bool) error {
	seal, err := vaultCipher(store)
	if err != nil {
		return err
	}
	var sealed []byte
	if value != nil {
		sealed = seal.Seal(nil, nil, value, []byte(v.name(user)))
	}
	changed := false
	err = store.ChangePair(vaultSpace, v.name(user), vaultLimits, func(old state.Pair, now time.Time) (state.Pair, error) {
		if changed = may(old); !changed {
			return old, nil
		}
		if sealed == nil {
			return state.Pair{}, nil
		}
		return state.Pair{Value: sealed, Expires: now.Add(vaultTTL)}, nil
	})
	if changed {
		v.changed(v.name(user)) // after an error, too, as the change may have happened
	}
	return err
}

func deleteRow(store state.Store, name string) (there bool, err error) {
	err = store.ChangePair(vaultSpace, name, vaultLimits, func(old state.Pair, _ time.Time) (state.Pair, error) {
		there = old.Value != nil
		return state.Pair{}, nil
	})
	return there, err
}

// name returns the plaintext row name: the secret and the user. The key of a secret has no zero
// byte.
func (v tokenVault) name(user string) string { return v.secret + "\x00" + user }

// vaultCipher returns the cipher of a store.
func vaultCipher(store state.Store) (cipher.AEAD, error) {
	key, err := readVaultKey(store)
	if err != nil {
		return nil, err
	}
	return newVaultCipher(key)
}

func newVaultCipher(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, errDamagedVault
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// readVaultKey returns the key of a store. It creates the key on first use.
func readVaultKey(store state.Store) ([]byte, error) {
	key, err := store.Pair(vaultSpace, vaultKey)
	if err == nil && key.Value == nil {
		err = store.ChangePair(vaultSpace, vaultKey, vaultLimits, func(old state.Pair, _ time.Time) (state.Pair, error) {
			if old.Value == nil {
				old.Value = make([]byte, 32)
				rand.Read(old.Value)
			}
			key = old
			return old, nil
		})
	}
	if err != nil {
		return nil, fmt.Errorf("read token key: %w", err)
	}
	return key.Value, nil
}
