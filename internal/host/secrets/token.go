package secrets

import (
	"context"
	"fmt"
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
