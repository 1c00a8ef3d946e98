package engine

import (
	"encoding/json"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/base/redact"
	"github.com/mcpd/mcpd/internal/host"
	"github.com/mcpd/mcpd/internal/host/secrets"
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

// tokenDropped is the event of the audit log that a token was dropped.
const tokenDropped = "token.dropped"

// UserTokens returns whose tokens there are in [Options.StatePath], of secrets that are
// gone too. Nothing needs to be loaded.
func (s *Server) UserTokens() ([]UserToken, error) {
	tokens, err := s.brokers.UserTokens()
	return tokensOf(tokens), err
}

// DropUserTokens drops the tokens whose Secret, Kind, Issuer and ID are those of a token, of
// which empty ones match any, and returns them: no call is given one of them from then on,
// and their users are asked again. The authorization server is not informed, and keeps the
// consent of the user. Beside an error it returns what was dropped. If Secret and ID are
// empty it drops nothing, and returns an error.
func (s *Server) DropUserTokens(of UserToken) ([]UserToken, error) {
	if of.Secret == "" && of.ID == "" {
		return nil, errors.New("drop the tokens of users: neither a secret nor a principal is named")
	}
	dropped, err := s.brokers.DropUserTokens(of.matches)
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

// matches reports whether a token is one that t names.
func (t UserToken) matches(other host.UserToken) bool {
	return (t.Secret == "" || t.Secret == other.Secret) && (t.ID == "" || t.ID == other.ID) && (t.Kind == "" || t.Kind == other.Kind) && (t.Issuer == "" || t.Issuer == other.Issuer)
}

// Veil hides the secrets of one server in logs that are begun before it is made, such
// as that of its executor: values that were resolved, and their forms in base64,
// hexadecimal, URLs, HTML and JSON. The zero Veil hides nothing until it is the one of
// [Options]. It is safe for concurrent use, and must not be copied.
type LogRedactor struct {
	// over hides what is to be hidden. It is stored once.
	store atomic.Pointer[secrets.Store]
}

// Logger returns a logger that writes what another would, without secrets. What it
// is told is looked at when a record is written.
func (v *LogRedactor) Logger(l *slog.Logger) *slog.Logger {
	return slog.New(redact.NewHandler(l.Handler(), redactor{v}))
}

// drawn is a veil as handlers see it.
type redactor struct{ *LogRedactor }

// Redact hides the secrets in a text.
func (d redactor) Redact(text string) string {
	if store := d.store.Load(); store != nil {
		return store.Redact(text)
	}
	return text
}

// RedactJSON hides the secrets in a JSON value.
func (d redactor) RedactJSON(raw json.RawMessage) json.RawMessage {
	if store := d.store.Load(); store != nil {
		return store.RedactJSON(raw)
	}
	return raw
}
