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
	if value, ok := s.known(e); !ok || value != token {
		s.keep(e, token)
	}
	return token, nil
}

// Refused says that somebody did not accept the value of a secret. A token is
// then renewed, but not at will.
func (s *Store) Refused(id string) {
	s.mu.Lock()
	e, ok := s.entries[id]
	s.mu.Unlock()
	if ok && e.tokens != nil {
		e.tokens.Refused()
	}
}
