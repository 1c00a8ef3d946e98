package authn

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"strings"
	"unicode"

	"github.com/mcpd/mcpd/identity"
)

// maxID bounds the id of a principal or an agent, in bytes.
const maxID = 256

// principal returns who the claims of a token are about, once they are proved.
func (m *tokenMethod) principal(claims map[string]any) (identity.Principal, error) {
	id, ok := claim(claims, m.ID).(string)
	if !ok || !isID(id) {
		return identity.Principal{}, errSubject
	}
	scopes, ok := m.scopesOf(claims)
	if !ok {
		return identity.Principal{}, errSubject
	}
	groups, ok := words(claim(claims, m.Groups))
	if !ok {
		return identity.Principal{}, errSubject
	}
	p := identity.Principal{ID: id, Kind: identity.KindToken, Issuer: m.Issuer, Scopes: m.withImplied(scopes), Groups: groups, Claims: claims}
	if m.Agent == "" {
		return p, nil
	}
	if bound := claim(claims, m.Agent); bound != nil {
		if p.Agent, ok = bound.(string); !ok || !isID(p.Agent) {
			return identity.Principal{}, errSubject
		}
	}
	return p, nil
}

// withImplied returns scopes with those that they imply, which imply others in turn.
func (m *tokenMethod) withImplied(scopes []string) []string {
	if len(m.ImpliedScopes) == 0 {
		return scopes
	}
	all, known := scopes, make(map[string]bool, len(scopes))
	for _, scope := range scopes {
		known[scope] = true
	}
	for i := 0; i < len(all); i++ {
		for _, implied := range m.ImpliedScopes[all[i]] {
			if !known[implied] {
				known[implied] = true
				all = append(all, implied)
			}
		}
	}
	return all
}

// scopesOf returns the scopes of a token: a text of words, as in RFC 9068 section
// 2.2.3, or a list of them.
func (m *tokenMethod) scopesOf(claims map[string]any) (scopes []string, ok bool) {
	found := claims["scope"]
	if found == nil {
		found = claims["scp"]
	}
	if m.Scopes != "" {
		found = claim(claims, m.Scopes)
	}
	if text, isText := found.(string); isText {
		return append([]string{}, strings.Fields(text)...), true
	}
	return words(found)
}

// words returns a claim that is a list of texts, one of them, or not there.
func words(claim any) (list []string, ok bool) {
	list = []string{}
	switch claim := claim.(type) {
	case nil:
		return list, true
	case string:
		return append(list, claim), true
	case []any:
		for _, item := range claim {
			text, ok := item.(string)
			if !ok {
				return nil, false
			}
			list = append(list, text)
		}
		return list, true
	}
	return nil, false
}

// claim returns the claim of a name, or the one that dots lead to; nil for none.
// Names with dots of their own, such as URLs, come first.
func claim(claims map[string]any, name string) any {
	for {
		if found, ok := claims[name]; ok {
			return found
		}
		first, rest, dotted := strings.Cut(name, ".")
		inner, ok := claims[first].(map[string]any)
		if !dotted || !ok {
			return nil
		}
		claims, name = inner, rest
	}
}

// isID reports whether a text may be the id of a principal or an agent.
func isID(text string) bool {
	if text == "" || len(text) > maxID || text == identity.AnonymousAgent {
		return false
	}
	return !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}

// checkHolder refuses a token that is bound to a key (RFC 7800), unless it is
// that of the client certificate of the connection (RFC 8705 section 3.1).
func (t jwt) checkHolder(leaf *x509.Certificate) error {
	bound, present := t.claims["cnf"]
	if !present {
		return nil
	}
	cnf, _ := bound.(map[string]any)
	thumbprint, ok := cnf["x5t#S256"].(string)
	if !ok || leaf == nil || len(cnf) != 1 {
		return errHolder
	}
	sum := sha256.Sum256(leaf.Raw)
	if base64.RawURLEncoding.EncodeToString(sum[:]) != thumbprint {
		return errHolder
	}
	return nil
}
