package configcheck

import (
	"fmt"
	"slices"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/internal/language/hclfile"
)

// revealed judges the secrets that one definition may read: the operator must
// have said of each that it may be read at all.
func (c *machine) revealed(what string, granted grant.Set, ranges map[string]diag.Range) {
	for _, name := range granted.Secrets {
		where, written := ranges["secrets."+name]
		i := slices.IndexFunc(c.config.Secrets, func(s hclfile.Secret) bool { return s.Name == name })
		if !written || i < 0 || c.config.Secrets[i].Reveal || c.config.Secrets[i].Range == (diag.Range{}) {
			continue // whoever decoded the files has told
		}
		c.report(diag.Diagnostic{
			Code: "over-ceiling", Range: where, Summary: fmt.Sprintf("%s is granted to read the secret %q, which the operator does not reveal", what, name),
			Detail: "use it in the header of a grant, or ask the operator to write reveal = true in its block",
			Notes:  []diag.Note{{Range: c.config.Secrets[i].Range, Message: "the secret"}},
		})
	}
}

// ofUsers judges where tokens of users go that one definition is granted: into
// the headers of requests, and only where a call has a user.
func (c *machine) ofUsers(kind, what string, granted grant.Set, ranges map[string]diag.Range) {
	judge := func(v grant.Value, object, problem, detail string) {
		v.EachSecret(func(name string) {
			secret := c.ofUser(name)
			if where, written := ranges[object]; written && secret != nil {
				c.report(diag.Diagnostic{
					Code: "bad-grant", Range: where, Summary: fmt.Sprintf("%s %s, %q", what, problem, name), Detail: detail,
					Notes: []diag.Note{{Range: secret.Range, Message: "the secret"}},
				})
			}
		})
	}
	const alone = "such a token goes into the headers of requests alone"
	for _, g := range granted.Exec {
		for _, v := range g.Env {
			judge(v.Value, "exec."+g.Name, "gives a program the token of a user", alone)
		}
	}
	for _, g := range granted.SQL {
		judge(g.DSN, "sql."+g.Name, "opens a database with the token of a user", alone)
	}
	for _, g := range granted.HTTP {
		for _, h := range g.Headers {
			if kind == "hook" {
				judge(h.Value, "http."+g.Name, "sends the token of a user", "a hook runs for no user; use a secret that is the server's own")
			}
		}
	}
}

// ofUpstreams reports tokens of users by which a server behind this one is reached, whose
// connection is of no user.
func (c *machine) ofUpstreams() {
	for i := range c.config.Upstreams {
		u := &c.config.Upstreams[i]
		judge := func(v grant.Value) {
			v.EachSecret(func(name string) {
				if secret := c.ofUser(name); secret != nil {
					c.report(diag.Diagnostic{
						Code: "bad-grant", Range: u.NameRange, Summary: fmt.Sprintf("the upstream %q gets the token of a user, %q", u.Name, name),
						Detail: "a server is reached as mcpd itself: use a secret of a client_id with its client_secret, or one that is the server's own",
						Notes:  []diag.Note{{Range: secret.Range, Message: "the secret"}},
					})
				}
			})
		}
		for _, h := range u.Grant.Headers {
			judge(h.Value)
		}
		for _, v := range u.Env {
			judge(v.Value)
		}
	}
}

// ofUser returns a secret of which every user has a token, nil when it is none.
func (c *machine) ofUser(name string) *hclfile.Secret {
	i := slices.IndexFunc(c.config.Secrets, func(s hclfile.Secret) bool {
		return s.Name == name && s.OAuth != nil && s.OAuth.AuthorizeURL != ""
	})
	if i < 0 {
		return nil
	}
	return &c.config.Secrets[i]
}

// shared reports a tool that would give to everybody what it was told with the
// token of one user.
func (c *machine) shared(t *hclfile.Tool) {
	if t.Cache == nil || t.Cache.Scope != hclfile.CacheServer {
		return
	}
	for _, name := range t.Grant.SecretNames() {
		if secret := c.ofUser(name); secret != nil {
			c.report(diag.Diagnostic{
				Code: "contradiction", Range: t.Cache.Range,
				Summary: fmt.Sprintf("the results of tool %q are given to every caller, and come by the token of a user, %q", t.Name, name),
				Detail:  "write scope = \"principal\"", Notes: []diag.Note{{Range: secret.Range, Message: "the secret"}},
			})
		}
	}
}
