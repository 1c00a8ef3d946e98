package engine

import (
	"cmp"
	"errors"
	"log/slog"
	"time"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/host"
)

// UserToken says whose OAuth token there is, which a user has let the server have, and
// nothing of the token.
type UserToken struct {
	// Secret is the name of the secret that it is the value of, and Definition tells
	// definitions of that name apart, of which files have one at most.
	Secret, Definition string
	// Kind, Issuer and ID are those of the principal.
	Kind   identity.Kind
	Issuer string
	ID     string
	// Given is when the user let the server have it, Renewed when it was last kept, and
	// Until when it is forgotten unless it is renewed. What is not known is zero.
	Given, Renewed, Until time.Time
}

// UserTokenFilter says of which tokens something is meant. Empty members mean any.
type UserTokenFilter struct {
	// Secret is the name of a secret, of every definition that it has had.
	Secret string
	// Principal is the id of a principal; Kind and Issuer tell those of one id apart.
	Principal, Kind, Issuer string
}

// tokenDropped is the event of the audit log that a token was dropped.
const tokenDropped = "token.dropped"

// UserTokens returns whose tokens there are in [Options.StatePath], of secrets that are
// gone too. Nothing needs to be loaded.
func (s *Server) UserTokens() ([]UserToken, error) {
	tokens, err := s.brokers.UserTokens()
	return tokensOf(tokens), err
}

// DropUserTokens drops tokens, and returns whose: no call is given one of them from then
// on, and their users are asked again. Who has let the server have one keeps that with
// the authorization server, which is not told. What was dropped is returned beside an
// error, too. A filter that names neither a secret nor a principal drops nothing, and is an
// error.
func (s *Server) DropUserTokens(of UserTokenFilter) ([]UserToken, error) {
	if of.Secret == "" && of.Principal == "" {
		return nil, errors.New("drop the tokens of users: the filter names neither a secret nor a principal")
	}
	dropped, err := s.brokers.DropUserTokens(of.covers)
	for _, t := range dropped {
		s.options.Logger.Info("dropped the token of a user", slog.String("secret", t.Secret), slog.String("principal", t.ID), slog.String("kind", string(t.Kind)), slog.String("issuer", t.Issuer))
		s.Audit(tokenDropped, map[string]string{"name": t.Secret, "principal": t.ID, "kind": string(t.Kind), "issuer": t.Issuer})
	}
	return tokensOf(dropped), err
}

func tokensOf(tokens []host.UserToken) []UserToken {
	var all []UserToken
	for _, t := range tokens {
		all = append(all, UserToken(t))
	}
	return all
}

// covers reports whether a token is meant.
func (f UserTokenFilter) covers(t host.UserToken) bool {
	meant := UserTokenFilter{
		Secret: cmp.Or(f.Secret, t.Secret), Principal: cmp.Or(f.Principal, t.ID),
		Kind: cmp.Or(f.Kind, string(t.Kind)), Issuer: cmp.Or(f.Issuer, t.Issuer),
	}
	return meant == UserTokenFilter{Secret: t.Secret, Principal: t.ID, Kind: string(t.Kind), Issuer: t.Issuer}
}
