package privdiff

import (
	"cmp"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/grant"
)

// Side is one state of all files, which have been found to be sound.
type Snapshot struct {
	Config *definition.Config
	Files  []*definition.Definitions
	// Tools and Operator are the folders of the tool files and of the operator's
	// file, absolute; empty when they are not on the disk.
	ToolsDir, ConfigDir string
	// Read are the hashes of the other files that definitions and bodies have read,
	// by their paths relative to the folder of the tools.
	FileHashes map[string][32]byte
	// Find returns a path without the links that it passes, "" when that cannot be known.
	ResolvePath func(path string) (string, error)
}

// led returns where links lead a path to, "" when it passes none. What is written
// as a relative path is told from the folder of the tools, so that two copies of
// that folder compare.
func (s *Snapshot) resolveLinks(path string, relative bool) string {
	if !filepath.IsAbs(path) || s.ResolvePath == nil {
		return ""
	}
	real, _ := s.ResolvePath(path)
	if !relative || s.ToolsDir == "" {
		return emptyIfEqual(real, path)
	}
	base, _ := s.ResolvePath(s.ToolsDir)
	written, err := filepath.Rel(s.ToolsDir, path)
	if err != nil {
		return emptyIfEqual(real, path)
	}
	to, err := filepath.Rel(base, real)
	if err != nil {
		return real
	}
	return emptyIfEqual(to, written)
}

// unless returns s when it is not other.
func emptyIfEqual(s, other string) string {
	if s == other {
		return ""
	}
	return s
}

// below returns a path from a folder when it lies in it, and as it is otherwise.
func relativeTo(path, folder string) string {
	if rest, ok := strings.CutPrefix(path, folder+string(filepath.Separator)); ok && folder != "" {
		return "./" + filepath.ToSlash(rest)
	}
	return filepath.ToSlash(path)
}

// accounts returns what all definitions say, by their kinds and names.
func (s *Snapshot) subjects() []subject {
	all := append(s.configured(), s.rules(s.Config.Policies, s.Config.RateLimits, s.Config.Hooks, true)...)
	for _, f := range s.Files {
		all = append(all, s.defined(f)...)
	}
	for name, hash := range s.FileHashes {
		a := subject{kind: "file", name: name, direction: grant.Neutral}
		a.encoded(grant.Neutral, "", hash)
		all = append(all, a)
	}
	slices.SortStableFunc(all, byName)
	return all
}

func byName(a, b subject) int {
	return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name))
}

// defined returns what the definitions of a tool file say.
func (s *Snapshot) defined(f *definition.Definitions) []subject {
	return slices.Concat(
		each(f.Tools, s.tool), each(f.Resources, s.resource), each(f.Folders, folder), each(f.Templates, s.template), each(f.Prompts, s.prompt),
		s.rules(f.Policies, f.Limits, f.Hooks, false),
	)
}

// rules returns what policies, limits and hooks say: those of the operator's file or of a
// tool file.
func (s *Snapshot) rules(policies []definition.Policy, limits []definition.Limit, hooks []definition.Hook, operators bool) []subject {
	return slices.Concat(
		each(policies, func(p *definition.Policy) subject { return s.policy(p, operators) }),
		each(limits, func(l *definition.Limit) subject { return limit(l, operators) }),
		each(hooks, func(h *definition.Hook) subject { return s.hook(h, operators) }),
	)
}

// each returns what each definition of a list says.
func each[T any](list []T, of func(*T) subject) []subject {
	all := make([]subject, len(list))
	for i := range list {
		all[i] = of(&list[i])
	}
	return all
}

// call adds what a definition says of every call of it.
func (s *Snapshot) call(a *subject, c *definition.Call) {
	a.encoded(grant.Opaque, "labels", c.Labels)
	a.bounds(c.Bounds, unknown)
	a.add(grant.TimeFact("", "ask_timeout", c.AskTimeout), a.where)
	a.grants(s, c.Grant, c.GrantRanges)
}

// configured returns what the operator's file says beside its rules.
func (s *Snapshot) configured() []subject {
	c := s.Config
	all := []subject{s.server(), s.listen(), s.reload(), s.limits(), s.ceiling(), s.audit()}
	for _, v := range c.Variables {
		all = append(all, variable(v))
	}
	all = slices.Concat(all, each(c.Auths, authOf), each(c.Secrets, secretOf), each(c.Upstreams, s.upstream))
	if c.Codeact != nil {
		all = append(all, codeact(c.Codeact))
	}
	return all
}

// authOf returns what an auth block says of who may call. One that goes may let
// everybody in, as one that comes lets somebody in: each has to be read.
func authOf(a *definition.Auth) subject {
	said := subject{kind: "auth", name: a.Name, where: a.Range, direction: grant.Opaque}
	said.addOption(grant.Opaque, "kind", a.Kind)
	said.encoded(grant.Opaque, "api_key", a.APIKeys)
	said.encoded(grant.Opaque, "oidc", a.JWT)
	said.encoded(grant.Opaque, "mtls", a.MTLS)
	said.encoded(grant.Opaque, "unix", a.UnixPeers)
	return said
}

// secretOf returns what a secret says: from where its value comes, and who may
// read it.
func secretOf(s *definition.Secret) subject {
	a := subject{kind: "secret", name: s.Name, where: s.Range}
	a.encoded(grant.Opaque, "source", []any{s.Env, s.File, s.Command})
	a.addIf(s.Reveal, grant.Increases, "reveal")
	if s.OAuth == nil {
		return a
	}
	o := *s.OAuth
	a.addIf(o.PrivateNetworks, grant.Increases, "oauth private_networks")
	for _, scope := range o.Scopes {
		a.addOption(grant.Increases, "oauth scopes", scope)
	}
	a.encoded(grant.Opaque, "oauth", []any{o.TokenURL, o.AuthorizeURL, o.RedirectURL, o.ClientID, o.ClientSecret, o.Params, o.CredentialsInBody})
	return a
}

// block begins the account of a block that stands at most once.
func (s *Snapshot) block(kind string, where diag.Range) subject {
	if where == noRange {
		where = diag.Range{File: s.Config.Range.File}
	}
	return subject{kind: kind, where: where}
}

func (s *Snapshot) server() subject {
	said := s.Config.Server
	a := s.block("server", said.Range)
	a.encoded(grant.Neutral, "name", said.Name)
	a.encoded(grant.Neutral, "title", said.Title)
	a.encoded(grant.Neutral, "version", said.Version)
	a.encoded(grant.Neutral, "description", said.Description)
	a.encoded(grant.Neutral, "instructions", said.Instructions)
	a.encoded(grant.Neutral, "icons", said.Icons)
	a.addIf(said.ExposeTraces, grant.Increases, "expose_traces")
	a.addIf(said.LenientLifecycle, grant.Increases, "strict_lifecycle = false")
	a.addIf(said.Mode == definition.Production, grant.Restricts, "mode production")
	a.addIf(s.deniesByDefault(), grant.Restricts, "denying what no policy covers")
	return a
}

func (s *Snapshot) listen() subject {
	said := s.Config.Listen
	a := s.block("listen", said.Range)
	a.addOption(grant.Opaque, "address", said.Address)
	if said.TLS != nil {
		a.encoded(grant.Opaque, "tls", []string{said.TLS.CertFile, said.TLS.KeyFile, said.TLS.ClientCAFile})
	}
	for _, host := range said.Hosts {
		a.addOption(grant.Increases, "hosts", host)
	}
	for _, origin := range said.Origins {
		a.addOption(grant.Increases, "origins", origin)
	}
	return a
}

func (s *Snapshot) reload() subject {
	said := s.Config.Reload
	a := s.block("reload", said.Range)
	a.encoded(grant.Neutral, "watch", said.Watch)
	a.addIf(said.RequireTests, grant.Restricts, "require_tests")
	return a
}

func (s *Snapshot) limits() subject {
	said := s.Config.Limits
	a := s.block("limits", said.Range)
	a.number("concurrency", said.Concurrency, unknown)
	a.add(grant.SizeFact("", "memory", said.Memory), a.where)
	return a
}

// ceiling returns what tool files can be granted at most. Places that it names
// may be granted even where mcpd refuses them otherwise, so that to name one is
// power too.
func (s *Snapshot) ceiling() subject {
	c := s.Config.Ceiling
	if c == nil {
		c = &definition.Ceiling{}
	}
	a := s.block("ceiling", c.Range)
	a.names(grant.Increases, "http_hosts", c.HTTPHosts)
	for _, n := range c.HTTPHosts {
		if grant.SharedDomain(n.Text) != "" { // it is refused unless it is named
			a.add(grant.Fact{Option: "http_hosts by name", Value: n.Text}, n.Range)
		}
	}
	a.names(grant.Increases, "private_networks", c.PrivateNetworks)
	a.names(grant.Increases, "env", c.Env)
	a.names(grant.Increases, "kv", c.KV)
	a.names(grant.Increases, "ask", c.Ask)
	a.names(grant.Increases, "sql_drivers", c.SQLDrivers)
	a.names(grant.Increases, "sql_hosts", c.SQLHosts)
	a.places("exec_paths", c.ExecPaths, "", false) // a name may run what a pattern does not let run
	a.places("modules", c.Modules, "", true)
	a.places("fs_roots", c.FSRoots, s.ConfigDir, false)
	a.places("sql_roots", c.SQLRoots, s.ConfigDir, false)
	a.bounds(c.Bounds, math.Inf(1))
	return a
}

// named adds names, those of places below the folder told from there. Patterns
// says that one which a pattern covers gives nothing more.
func (a *subject) places(option string, list []definition.Name, folder string, patterns bool) {
	if list == nil {
		a.addOption(grant.Increases, option, "what is refused nowhere")
	}
	for _, n := range list {
		a.add(grant.Fact{Option: option, Value: relativeTo(n.Text, folder), Pattern: patterns}, n.Range)
	}
}

// variable returns what a variable says. Its value is never told.
func variable(v definition.Variable) subject {
	a := subject{kind: "variable", name: v.Name, where: v.Range, direction: grant.Neutral}
	a.encoded(grant.Neutral, "description", v.Description)
	a.encoded(grant.Opaque, "type", v.Type)
	a.encoded(grant.Opaque, "value", v.Value)
	a.addIf(v.Sensitive, grant.Restricts, "sensitive")
	return a
}

// audit returns what is written down of calls. Nobody is seen where that goes, so
// an audit that goes, or is strict no longer, adds power; the rest is to be read.
func (s *Snapshot) audit() subject {
	said := s.Config.Audit
	if said == nil {
		return s.block("audit", noRange)
	}
	a := s.block("audit", said.Range)
	a.addOption(grant.Restricts, "records of calls", "")
	a.addIf(said.Mode == definition.AuditStrict, grant.Restricts, "mode strict")
	a.encoded(grant.Opaque, "path", said.Path)
	a.encoded(grant.Opaque, "retention", []any{said.MaxSize, said.MaxFiles, said.MaxAge})
	for _, n := range said.Capture {
		a.add(grant.Fact{Option: "capture", Direction: grant.Increases, Value: n.Text, Pattern: true}, n.Range)
	}
	return a
}
