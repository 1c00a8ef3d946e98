package privdiff

import (
	"math"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/internal/language/hclfile"
)

// configured returns what the operator's file says beside its rules.
func (s *Side) configured() []account {
	c := s.Config
	all := []account{s.server(), s.listen(), s.reload(), s.limits(), s.ceiling(), s.audit()}
	for _, auth := range c.Auths {
		all = append(all, authOf(auth))
	}
	for _, v := range c.Variables {
		all = append(all, variable(v))
	}
	for _, secret := range c.Secrets {
		all = append(all, secretOf(secret))
	}
	for _, u := range c.Upstreams {
		all = append(all, s.upstream(u))
	}
	if c.Codeact != nil {
		all = append(all, codeact(c.Codeact))
	}
	return all
}

// authOf returns what an auth block says of who may call. One that goes may let
// everybody in, as one that comes lets somebody in: each has to be read.
func authOf(a hclfile.Auth) account {
	said := account{kind: "auth", name: a.Name, where: a.Range, sense: grant.Judged}
	said.say(grant.Judged, "kind", a.Kind)
	said.encoded(grant.Judged, "api_key", a.Keys)
	said.encoded(grant.Judged, "oidc", a.Tokens)
	said.encoded(grant.Judged, "mtls", a.Certificates)
	said.encoded(grant.Judged, "unix", a.Peers)
	return said
}

// secretOf returns what a secret says: from where its value comes, and who may
// read it.
func secretOf(s hclfile.Secret) account {
	a := account{kind: "secret", name: s.Name, where: s.Range}
	a.encoded(grant.Judged, "source", []any{s.Env, s.File, s.Command})
	a.when(s.Reveal, grant.Gives, "reveal")
	if s.OAuth == nil {
		return a
	}
	o := *s.OAuth
	a.when(o.PrivateNetworks, grant.Gives, "oauth private_networks")
	for _, scope := range o.Scopes {
		a.say(grant.Gives, "oauth scopes", scope)
	}
	a.encoded(grant.Judged, "oauth", []any{o.TokenURL, o.AuthorizeURL, o.RedirectURL, o.ClientID, o.ClientSecret, o.Params, o.InBody})
	return a
}

// block begins the account of a block that stands at most once.
func (s *Side) block(kind string, where diag.Range) account {
	if where == noRange {
		where = diag.Range{File: s.Config.Range.File}
	}
	return account{kind: kind, where: where}
}

func (s *Side) server() account {
	said := s.Config.Server
	a := s.block("server", said.Range)
	a.encoded(grant.Told, "name", said.Name)
	a.encoded(grant.Told, "title", said.Title)
	a.encoded(grant.Told, "version", said.Version)
	a.encoded(grant.Told, "description", said.Description)
	a.encoded(grant.Told, "instructions", said.Instructions)
	a.encoded(grant.Told, "icons", icons(said.Icons))
	a.when(said.ExposeTraces, grant.Gives, "expose_traces")
	a.when(said.LenientLifecycle, grant.Gives, "strict_lifecycle = false")
	a.when(said.Mode == hclfile.Production, grant.Holds, "mode production")
	a.when(s.deniesByDefault(), grant.Holds, "denying what no policy covers")
	return a
}

func (s *Side) listen() account {
	said := s.Config.Listen
	a := s.block("listen", said.Range)
	a.say(grant.Judged, "address", said.Address)
	if said.TLS != nil {
		a.encoded(grant.Judged, "tls", []string{said.TLS.CertFile, said.TLS.KeyFile, said.TLS.ClientCAFile})
	}
	for _, host := range said.Hosts {
		a.say(grant.Gives, "hosts", host)
	}
	for _, origin := range said.Origins {
		a.say(grant.Gives, "origins", origin)
	}
	return a
}

func (s *Side) reload() account {
	said := s.Config.Reload
	a := s.block("reload", said.Range)
	a.encoded(grant.Told, "watch", said.Watch)
	a.when(said.RequireTests, grant.Holds, "require_tests")
	return a
}

func (s *Side) limits() account {
	said := s.Config.Limits
	a := s.block("limits", said.Range)
	a.number("concurrency", said.Concurrency, unknown)
	a.add(grant.SizeFact("", "memory", said.Memory), a.where)
	return a
}

// ceiling returns what tool files can be granted at most. Places that it names
// may be granted even where mcpd refuses them otherwise, so that to name one is
// power too.
func (s *Side) ceiling() account {
	c := s.Config.Ceiling
	if c == nil {
		c = &hclfile.Ceiling{}
	}
	a := s.block("ceiling", c.Range)
	a.names(grant.Gives, "http_hosts", c.HTTPHosts)
	for _, n := range c.HTTPHosts {
		if grant.OpenDomain(n.Text) != "" { // it is refused unless it is named
			a.add(grant.Fact{Option: "http_hosts by name", Value: n.Text}, n.Range)
		}
	}
	a.names(grant.Gives, "private_networks", c.PrivateNetworks)
	a.names(grant.Gives, "env", c.Env)
	a.names(grant.Gives, "kv", c.KV)
	a.names(grant.Gives, "ask", c.Ask)
	a.names(grant.Gives, "sql_drivers", c.SQLDrivers)
	a.names(grant.Gives, "sql_hosts", c.SQLHosts)
	a.named("exec_paths", c.ExecPaths, "", false) // a name may run what a pattern does not let run
	a.named("modules", c.Modules, "", true)
	a.named("fs_roots", c.FSRoots, s.Operator, false)
	a.named("sql_roots", c.SQLRoots, s.Operator, false)
	a.bounds(c.Bounds, math.Inf(1))
	return a
}

// named adds names, those of places below the folder told from there. Patterns
// says that one which a pattern covers gives nothing more.
func (a *account) named(option string, list []hclfile.Name, folder string, patterns bool) {
	if list == nil {
		a.say(grant.Gives, option, "what is refused nowhere")
	}
	for _, n := range list {
		a.add(grant.Fact{Option: option, Value: below(n.Text, folder), Pattern: patterns}, n.Range)
	}
}

// variable returns what a variable says. Its value is never told.
func variable(v hclfile.Variable) account {
	a := account{kind: "variable", name: v.Name, where: v.Range, sense: grant.Told}
	a.encoded(grant.Told, "description", v.Description)
	a.encoded(grant.Judged, "type", v.Type)
	a.encoded(grant.Judged, "value", v.Value)
	a.when(v.Sensitive, grant.Holds, "sensitive")
	return a
}
