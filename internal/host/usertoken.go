package host

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/base/state"
	"github.com/mcpd/mcpd/internal/host/oauth"
	"github.com/mcpd/mcpd/internal/host/secrets"
)

// UserToken says whose token there is, and nothing of the token.
type UserToken struct {
	// Secret is the name of the secret that it is the value of, and Definition tells
	// definitions of that name apart, of which files have one at most.
	Secret, Definition string
	Kind               identity.Kind
	Issuer             string
	ID                 string
	// Given is when the user let the server have it, Renewed when it was last kept, and
	// Until when it is forgotten unless it is renewed. What is not known is zero.
	Given, Renewed, Until time.Time
}

// The events of the audit log that a user has let the server have a token, which is used
// and kept afterwards, and that it has one no more, though nobody has dropped it: name is
// that of the secret, principal, kind and issuer are those of the user, and why says how
// it was lost (see [oauth.Loss]).
const (
	EventTokenJoined = "token.joined"
	EventTokenLost   = "token.lost"
)

func (o Options) tokenLost(client, user string, why oauth.LossReason) {
	attributes := tokenAttributes(client, user)
	attributes["why"] = string(why)
	if err := o.Audit(EventTokenLost, attributes); err != nil {
		o.Logger.Error("that the token of a user is lost cannot be written down", slog.String("error", err.Error()))
	}
}

// attributesOf returns what the audit log says of the token of a user, by the keys of its
// client and of the user.
func tokenAttributes(client, user string) map[string]string {
	t, _ := parseRow(client + "\x00" + user) // which is its row
	return map[string]string{"name": t.Secret, "principal": t.ID, "kind": string(t.Kind), "issuer": t.Issuer}
}

const pageSize = 1000

// UserTokens returns whose tokens there are, of secrets that are gone too, by secret
// and principal.
func (b Brokers) UserTokens() ([]UserToken, error) {
	store, err := b.open()
	if err != nil {
		return nil, fmt.Errorf("open the tokens of users: %w", err)
	}
	var tokens []UserToken
	for after := ""; ; {
		names, err := store.PairKeys(vaultSpace, "", after, pageSize)
		if err != nil {
			return nil, fmt.Errorf("read the tokens of users: %w", err)
		}
		for _, name := range names {
			t, ok, err := b.userToken(store, name)
			if err != nil {
				return nil, fmt.Errorf("read the tokens of users: %w", err)
			}
			if ok {
				tokens = append(tokens, t)
			}
		}
		if len(names) < pageSize {
			return sortTokens(tokens), nil
		}
		after = names[len(names)-1]
	}
}

// userToken returns what a row says. It reports false of one that is no token, or gone.
func (b Brokers) userToken(store state.Store, name string) (UserToken, bool, error) {
	t, ok := parseRow(name)
	if !ok {
		return UserToken{}, false, nil
	}
	row, err := store.Pair(vaultSpace, name)
	if err != nil || row.Value == nil {
		return UserToken{}, false, err
	}
	t.Renewed, t.Until = row.Expires.Add(-vaultTTL), row.Expires
	key, user, _ := strings.Cut(name, "\x00")
	value, err := tokenVault{open: b.open, secret: key}.Get(user)
	if err != nil && !errors.Is(err, errDamagedVault) { // what is damaged is listed, and can be dropped
		return UserToken{}, false, err
	}
	t.Given = oauth.TokenCreatedAt(value)
	return t, true, nil
}

func parseRow(name string) (UserToken, bool) {
	parts := strings.SplitN(name, "\x00", 4)
	if len(parts) != 4 || parts[0] == "" {
		return UserToken{}, false
	}
	secret, definition := secrets.SplitKey(parts[0])
	return UserToken{Secret: secret, Definition: definition, Kind: identity.Kind(parts[1]), Issuer: parts[2], ID: parts[3]}, true
}

// DropUserTokens drops the tokens of which the function says so, and returns them: no
// call is given one of them from then on.
func (b Brokers) DropUserTokens(of func(UserToken) bool) (dropped []UserToken, err error) {
	all, err := b.UserTokens()
	if err != nil {
		return nil, err
	}
	store, err := b.open()
	if err != nil {
		return nil, fmt.Errorf("open the tokens of users: %w", err)
	}
	known := map[string]bool{}
	// The rows go first: what is in memory then can come from there no more.
	for _, t := range all {
		if !of(t) {
			continue
		}
		there, failed := deleteRow(store, t.row())
		if err = errors.Join(err, failed); there && failed == nil {
			known[t.row()], dropped = true, append(dropped, t)
		}
	}
	names, failed := b.Secrets.DropTokens(func(key, user string) bool {
		t, ok := parseRow(key + "\x00" + user)
		return ok && of(t)
	})
	for _, name := range names {
		if t, ok := parseRow(name.Key + "\x00" + name.User); ok && !known[t.row()] { // its row had expired, or has just come
			dropped = append(dropped, t)
		}
	}
	if err = errors.Join(err, failed); err != nil {
		return sortTokens(dropped), fmt.Errorf("drop tokens of users: %w", err)
	}
	return sortTokens(dropped), nil
}

func (t UserToken) row() string {
	return strings.Join([]string{secrets.JoinKey(t.Secret, t.Definition), string(t.Kind), t.Issuer, t.ID}, "\x00")
}

func sortTokens(tokens []UserToken) []UserToken {
	slices.SortFunc(tokens, func(a, b UserToken) int {
		return cmp.Or(cmp.Compare(a.Secret, b.Secret), cmp.Compare(a.ID, b.ID), cmp.Compare(a.row(), b.row()))
	})
	return tokens
}
