package console

import (
	"net/url"
	"strings"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/ops/control"
)

// asForm is the part of a form that chooses the caller.
type asForm struct {
	Other            bool // not the operator
	ID, Kind, Issuer string
	Scopes           string // separated by spaces
	Groups           string // separated by commas
	Bound            string
	AgentID, Model   string
	Error            string
}

// Kinds are the kinds of principals in the form.
func (a asForm) Kinds() []identity.Kind {
	return []identity.Kind{identity.KindKey, identity.KindToken, identity.KindCertificate, identity.KindLocal, identity.KindAnonymous}
}

// asFormOf reads the caller of a posted form. A name keeps all of its characters but spaces around it:
// one that ends in a character that cannot be seen is another name.
func asFormOf(posted url.Values) asForm {
	name := func(field string) string { return strings.Trim(posted.Get(field), " \t\n") }
	return asForm{
		Other: posted.Get("as") == "other", ID: name("as_id"), Kind: posted.Get("as_kind"), Issuer: name("as_issuer"),
		Scopes: posted.Get("as_scopes"), Groups: posted.Get("as_groups"), Bound: name("as_bound"), AgentID: name("as_agent"), Model: name("as_model"),
	}
}

// groupsIn returns the groups in a field. Groups may contain spaces.
func groupsIn(text string) []string {
	groups := []string{}
	for group := range strings.SplitSeq(text, ",") {
		if group = strings.TrimSpace(group); group != "" {
			groups = append(groups, group)
		}
	}
	return groups
}

// caller returns the caller that the form chooses. ok is false if it lacks a name.
func (a *asForm) caller() (as control.As, ok bool) {
	if a.AgentID != "" || a.Model != "" {
		as.Agent = &control.Agent{AgentID: a.AgentID, Model: a.Model}
	}
	if !a.Other {
		return as, true
	}
	p := identity.Principal{
		ID: a.ID, Kind: identity.Kind(a.Kind), Issuer: a.Issuer, Scopes: append([]string{}, strings.Fields(a.Scopes)...),
		Groups: groupsIn(a.Groups), Claims: map[string]any{}, Agent: a.Bound,
	}
	if p.Kind == identity.KindAnonymous {
		p = identity.Anonymous()
	}
	if p.ID == "" || p.Kind == "" {
		a.Error = "Name the principal and its kind."
		return as, false
	}
	as.Principal = &p
	return as, true
}
