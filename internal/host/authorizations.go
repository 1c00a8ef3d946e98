package host

import (
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mcpd/mcpd/internal/base/state"
	"github.com/mcpd/mcpd/internal/host/oauth"
)

// authorizationSpace is the space of the authorizations in progress that replicas share. A key
// is the key of the secret, a zero byte, and the locator of the user.
const authorizationSpace = "oauth.authorizations"

const (
	// maxSharedOfSecret bounds the shared authorizations of one secret. Starts at the same moment
	// at several replicas may exceed it by their number.
	maxSharedOfSecret = 1000
	// maxAuthorizationSize bounds one shared authorization, in bytes.
	maxAuthorizationSize = 1 << 20
)

// authorizationLimits bounds the shared authorizations of all secrets.
var authorizationLimits = state.Room{Keys: 10_000, Bytes: 64 << 20}

// Authorizations returns the authorizations of the secret if replicas share the store.
func (v tokenVault) Authorizations() (oauth.Authorizations, error) {
	store, err := v.open()
	if err != nil {
		return nil, fmt.Errorf("open user tokens: %w", err)
	}
	if _, shared := store.(state.Shared); !shared {
		return nil, nil
	}
	key, err := readVaultKey(store)
	if err != nil {
		return nil, err
	}
	seal, err := newVaultCipher(key)
	if err != nil {
		return nil, err
	}
	return sharedAuthorizations{store, seal, key, v}, nil
}

// sharedAuthorizations are the authorizations of one secret.
type sharedAuthorizations struct {
	store state.Store
	seal  cipher.AEAD
	key   []byte
	vault tokenVault
}

// Locator returns a keyed hash, so that authorization servers cannot guess users.
func (a sharedAuthorizations) Locator(user string) string {
	h := hmac.New(sha256.New, a.key)
	h.Write([]byte("locator\x00" + a.vault.name(user)))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:16])
}

func (a sharedAuthorizations) name(locator string) string { return a.vault.secret + "\x00" + locator }

func (a sharedAuthorizations) Changed(user string) { a.vault.changed(a.vault.name(user)) }

func (a sharedAuthorizations) Get(locator string) ([]byte, error) {
	row, err := a.store.Pair(authorizationSpace, a.name(locator))
	if err != nil {
		return nil, fmt.Errorf("read authorization: %w", err)
	}
	return openAuthorization(a.seal, a.name(locator), row), nil
}

func (a sharedAuthorizations) Full() (bool, error) {
	names, err := a.store.PairKeys(authorizationSpace, a.name(""), "", maxSharedOfSecret)
	if err != nil {
		return false, fmt.Errorf("read authorizations: %w", err)
	}
	return len(names) >= maxSharedOfSecret, nil
}

func (a sharedAuthorizations) Change(locator string, change func(old []byte, now time.Time) ([]byte, time.Time, error)) error {
	name := a.name(locator)
	err := a.store.ChangePair(authorizationSpace, name, authorizationLimits, func(old state.Pair, now time.Time) (state.Pair, error) {
		value, expires, err := change(openAuthorization(a.seal, name, old), now)
		switch {
		case err != nil || value == nil:
			return state.Pair{}, err
		case len(value) > maxAuthorizationSize:
			return state.Pair{}, oauth.ErrNoRoom
		}
		return state.Pair{Value: a.seal.Seal(nil, nil, value, authorizationName(name)), Expires: expires}, nil
	})
	if full := (*state.FullError)(nil); errors.Is(err, state.ErrRoom) || errors.As(err, &full) {
		return oauth.ErrNoRoom
	}
	return err
}

// authorizationName binds an encrypted authorization to its row.
func authorizationName(name string) []byte { return []byte(authorizationSpace + "\x00" + name) }

// openAuthorization decrypts an authorization. It returns nil for a damaged one, so that the
// user can start again.
func openAuthorization(seal cipher.AEAD, name string, row state.Pair) []byte {
	if row.Value == nil {
		return nil
	}
	value, err := seal.Open(nil, nil, row.Value, authorizationName(name))
	if err != nil {
		return nil
	}
	return value
}

// dropAuthorizations removes the shared authorizations of the matching users, and those that cannot be
// read: their users start again.
func dropAuthorizations(store state.Store, of func(key, user string) bool) error {
	if _, shared := store.(state.Shared); !shared {
		return nil
	}
	seal, err := vaultCipher(store)
	if err != nil {
		return err
	}
	for after := ""; ; {
		names, err := store.PairKeys(authorizationSpace, "", after, pageSize)
		if err != nil {
			return err
		}
		for _, name := range names {
			row, err := store.Pair(authorizationSpace, name)
			if err != nil {
				return err
			}
			key, _, _ := strings.Cut(name, "\x00")
			if user := oauth.AuthorizationUser(openAuthorization(seal, name, row)); user != "" && !of(key, user) {
				continue
			}
			if err := store.ChangePair(authorizationSpace, name, authorizationLimits, func(state.Pair, time.Time) (state.Pair, error) { return state.Pair{}, nil }); err != nil {
				return err
			}
		}
		if len(names) < pageSize {
			return nil
		}
		after = names[len(names)-1]
	}
}
