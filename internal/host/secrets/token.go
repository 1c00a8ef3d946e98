package secrets

import (
	"context"
	"errors"
	"fmt"

	"github.com/mcpd/mcpd/internal/host/oauth"
)

// token returns a token as it is now, and hides it before anyone
// can use it.
func (s *Store) token(ctx context.Context, e *entry, from interface {
	Token(ctx context.Context) (string, error)
}) (string, error) {
	token, err := from.Token(ctx)
	switch {
	case err != nil:
		return "", err
	case len(token) > MaxValue:
		return "", fmt.Errorf("%s: the token is longer than %d bytes", e.def.OAuth.TokenURL, MaxValue)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hide(map[string]string{e.def.Name: token})
	return token, nil
}

// Refused says that somebody did not accept the value of a secret, which was asked
// for in a context. A token is then renewed, but not at will.
func (s *Store) Refused(ctx context.Context, id string) {
	s.mu.Lock()
	e, ok := s.entries[id]
	s.mu.Unlock()
	switch {
	case !ok:
	case e.tokens != nil:
		e.tokens.Refused()
	case e.users != nil:
		e.users.Refused(ctx)
	}
}

// UserOf names the token of a user: by the key of the secret, and the user.
type UserOf struct{ Key, User string }

// DropTokens drops the tokens of users of which the function says so by the key of
// their secret (see [oauth.Users.Drop]), also where calls that began before a reload
// use a definition that is gone. It returns those that it has found.
func (s *Store) DropTokens(of func(key, user string) bool) (dropped []UserOf, err error) {
	for key, users := range s.ofUsers() {
		had, failed := users.Drop(func(user string) bool { return of(key, user) })
		err = errors.Join(err, failed)
		for _, user := range had {
			dropped = append(dropped, UserOf{key, user})
		}
	}
	return dropped, err
}

// ofUsers returns the clients of users by the keys of their secrets.
func (s *Store) ofUsers() map[string]*oauth.Users {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := map[string]*oauth.Users{}
	for id, e := range s.entries {
		if e.users != nil && id == e.def.Key() {
			found[id] = e.users
		}
	}
	return found
}
