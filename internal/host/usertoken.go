package host

import (
	"cmp"
	"encoding/json"
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

// UserToken describes a stored OAuth token without the token.
type UserToken struct {
	// Secret is the name of the secret. Definition distinguishes definitions with that name;
	// the files have at most one.
	Secret, Definition string
	Kind               identity.Kind
	Issuer             string
	ID                 string
	// GrantedAt is the time when the user granted access, RefreshedAt the time of the last
	// refresh, and ExpiresAt the time of the deletion unless it is refreshed. Unknown times are
	// zero.
	GrantedAt, RefreshedAt, ExpiresAt time.Time
}

// The audit events for a token that is stored after consent, and for one that was lost without
// being dropped. Their attributes are name (the secret), principal, kind and issuer, and for a
// loss why (see [oauth.LossReason]).
const (
	EventTokenJoined = "token.joined"
	EventTokenLost   = "token.lost"
)

func (o Options) tokenLost(client, user string, why oauth.LossReason) {
	attributes := tokenAttributes(client, user)
	attributes["why"] = string(why)
	if err := o.Audit(EventTokenLost, attributes); err != nil {
		o.Logger.Error("write audit event", slog.String("event", EventTokenLost), slog.String("error", err.Error()))
	}
}

// tokenAttributes returns the audit attributes of a token, by client key and user.
func tokenAttributes(client, user string) map[string]string {
	t, _ := parseRow(client + "\x00" + user) // client and user form the row name
	return map[string]string{"name": t.Secret, "principal": t.ID, "kind": string(t.Kind), "issuer": t.Issuer}
}

const pageSize = 1000

// UserTokens returns the stored tokens, sorted by secret and principal, including tokens of
// removed secrets.
func (b Brokers) UserTokens() ([]UserToken, error) {
	store, err := b.open()
	if err != nil {
		return nil, fmt.Errorf("open user tokens: %w", err)
	}
	var tokens []UserToken
	for after := ""; ; {
		names, err := store.PairKeys(vaultSpace, "", after, pageSize)
		if err != nil {
			return nil, fmt.Errorf("read user tokens: %w", err)
		}
		for _, name := range names {
			t, ok, err := b.userToken(store, name)
			if err != nil {
				return nil, fmt.Errorf("read user tokens: %w", err)
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

// userToken returns the token in a row. It returns false if the row is not a token or has gone.
func (b Brokers) userToken(store state.Store, name string) (UserToken, bool, error) {
	t, ok := parseRow(name)
	if !ok {
		return UserToken{}, false, nil
	}
	row, err := store.Pair(vaultSpace, name)
	if err != nil || row.Value == nil {
		return UserToken{}, false, err
	}
	t.RefreshedAt, t.ExpiresAt = row.Expires.Add(-vaultTTL), row.Expires
	key, user, _ := strings.Cut(name, "\x00")
	value, err := tokenVault{open: b.open, secret: key}.Get(user)
	if err != nil && !errors.Is(err, errDamagedVault) { // damaged tokens are listed, so that they can be dropped
		return UserToken{}, false, err
	}
	t.GrantedAt = oauth.TokenCreatedAt(value)
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

// TokenFilter selects tokens. An empty field matches any.
type TokenFilter struct {
	Secret string        `json:"secret,omitempty"`
	Kind   identity.Kind `json:"kind,omitempty"`
	Issuer string        `json:"issuer,omitempty"`
	ID     string        `json:"id,omitempty"`
}

func (f TokenFilter) matches(t UserToken) bool {
	return (f.Secret == "" || f.Secret == t.Secret) && (f.ID == "" || f.ID == t.ID) && (f.Kind == "" || f.Kind == t.Kind) && (f.Issuer == "" || f.Issuer == t.Issuer)
}

// name returns the filter as the name in a message.
func (f TokenFilter) name() string {
	text, _ := json.Marshal(f) // plain data always encodes
	return string(text)
}

// DropUserTokens drops the matching tokens and returns them. No later call uses them. Calls at other
// replicas may use them until the message of the drop arrives.
func (b Brokers) DropUserTokens(f TokenFilter) (dropped []UserToken, err error) {
	// Even if there is no token: a user may be giving consent at another replica.
	defer b.publish(state.TokenDropped, f.name())
	store, err := b.open()
	if err != nil {
		return nil, fmt.Errorf("open user tokens: %w", err)
	}
	// First, so that a replica that stores a token of one finds it gone and removes the token.
	err = dropAuthorizations(store, func(key, user string) bool {
		t, ok := parseRow(key + "\x00" + user)
		return ok && f.matches(t)
	})
	if err != nil {
		return nil, fmt.Errorf("drop authorizations: %w", err)
	}
	all, err := b.UserTokens()
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	// Rows first, so that they cannot be loaded into memory again.
	for _, t := range all {
		if !f.matches(t) {
			continue
		}
		there, failed := deleteRow(store, t.row())
		if err = errors.Join(err, failed); there && failed == nil {
			known[t.row()], dropped = true, append(dropped, t)
		}
	}
	names, failed := b.Secrets.DropTokens(func(key, user string) bool {
		t, ok := parseRow(key + "\x00" + user)
		return ok && f.matches(t)
	})
	for _, name := range names {
		if t, ok := parseRow(name.Key + "\x00" + name.User); ok && !known[t.row()] { // its row had expired, or is new
			dropped = append(dropped, t)
		}
	}
	if err = errors.Join(err, failed); err != nil {
		return sortTokens(dropped), fmt.Errorf("drop user tokens: %w", err)
	}
	return sortTokens(dropped), nil
}

// Receive makes the next call read the tokens that another replica has changed or dropped.
func (b Brokers) Receive(m state.Message) {
	var f TokenFilter
	switch {
	case m == (state.Message{}):
		b.Secrets.ReloadTokens(func(string, string) bool { return true }, true)
	case m.Topic == state.TokenChanged:
		b.Secrets.ReloadTokens(func(key, user string) bool { return m.Name == "" || m.Name == key+"\x00"+user }, false)
	case m.Topic == state.TokenDropped:
		all := json.Unmarshal([]byte(m.Name), &f) != nil // without a name, or of another version
		b.Secrets.ReloadTokens(func(key, user string) bool {
			t, ok := parseRow(key + "\x00" + user)
			return all || ok && f.matches(t)
		}, true)
	}
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
