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

// UserToken describes an OAuth token that a user has granted to the server. It does not contain the
// token. A token belongs to one secret and one principal.
type UserToken struct {
	// Secret is the name of the secret block. Definition distinguishes definitions with the same
	// name, such as those before and after a change.
	Secret, Definition string
	// Kind, Issuer and ID identify the principal; see [identity.Principal].
	Kind   identity.Kind
	Issuer string
	ID     string
	// GrantedAt is the time when the user granted access, and RefreshedAt the time of the last
	// refresh. The server deletes the token at ExpiresAt unless it is refreshed before. An unknown
	// time is zero.
	GrantedAt, RefreshedAt, ExpiresAt time.Time
}

// tokenDropped is the audit event for a deleted token.
const tokenDropped = "token.dropped"

// UserTokens returns the tokens in [Options.StatePath], including tokens of removed secrets. The
// server need not be loaded.
func (s *Server) UserTokens() ([]UserToken, error) {
	tokens, err := s.brokers.UserTokens()
	return tokensOf(tokens), err
}

// DropUserTokens deletes the tokens that match Secret, Kind, Issuer and ID, where an empty field
// matches any, and returns them. Later calls cannot use them, so their users must grant access
// again. The authorization server is not informed, and keeps the user's consent. Deleted tokens are
// returned even with an error. If both Secret and ID are empty, it deletes nothing and returns an
// error.
func (s *Server) DropUserTokens(of UserToken) ([]UserToken, error) {
	if of.Secret == "" && of.ID == "" {
		return nil, errors.New("drop user tokens: name a secret or a principal")
	}
	dropped, err := s.brokers.DropUserTokens(host.TokenFilter{Secret: of.Secret, Kind: of.Kind, Issuer: of.Issuer, ID: of.ID})
	for _, t := range dropped {
		s.options.Logger.Info("drop user token", slog.String("secret", t.Secret), slog.String("principal", t.ID), slog.String("kind", string(t.Kind)), slog.String("issuer", t.Issuer))
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

// LogRedactor redacts the secrets of one server in loggers that are created before it, such as the
// logger of its executor. It redacts resolved values, and their encodings in base64, hexadecimal,
// URLs, HTML and JSON. The zero LogRedactor redacts nothing until it is set in [Options]. It is
// safe for concurrent use, and must not be copied.
type LogRedactor struct {
	// store redacts the secrets. It is set once.
	store atomic.Pointer[secrets.Store]
}

// Logger returns a logger that redacts secrets and passes records to l. A record is redacted when
// it is written.
func (v *LogRedactor) Logger(l *slog.Logger) *slog.Logger {
	return slog.New(redact.NewHandler(l.Handler(), redactor{v}))
}

// redactor adapts a LogRedactor for log handlers.
type redactor struct{ *LogRedactor }

// Redact redacts the secrets in a text.
func (d redactor) Redact(text string) string {
	if store := d.store.Load(); store != nil {
		return store.Redact(text)
	}
	return text
}

// RedactJSON redacts the secrets in a JSON value.
func (d redactor) RedactJSON(raw json.RawMessage) json.RawMessage {
	if store := d.store.Load(); store != nil {
		return store.RedactJSON(raw)
	}
	return raw
}
