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

// Snapshot is one version of all files. It must be free of errors.
type Snapshot struct {
	Config *definition.Config
	Files  []*definition.Definitions
	// ToolsDir and ConfigDir are the absolute paths of the tools directory and of the directory
	// of the config file. They are empty if not on disk.
	ToolsDir, ConfigDir string
	// FileHashes are the hashes of the other files that definitions and scripts have read, by
	// path relative to the tools directory.
	FileHashes map[string][32]byte
	// ResolvePath resolves the symbolic links of a path. The result is empty if unknown.
	ResolvePath func(path string) (string, error)
}

// resolveLinks returns the resolved path, or "" if the path has no links. A relative path stays
// relative to the tools directory, so that two copies of the directory compare equal.
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

// emptyIfEqual returns s, or "" if it equals other.
func emptyIfEqual(s, other string) string {
	if s == other {
		return ""
	}
	return s
}

// relativeTo returns a path relative to a directory that contains it, or else the path itself.
func relativeTo(path, folder string) string {
	if rest, ok := strings.CutPrefix(path, folder+string(filepath.Separator)); ok && folder != "" {
		return "./" + filepath.ToSlash(rest)
	}
	return filepath.ToSlash(path)
}

// subjects returns the facts of all definitions, by kind and name.
func (s *Snapshot) subjects() []subject {
	all := append(s.configured(), s.rules(s.Config.Policies, s.Config.RateLimits, s.Config.Hooks, true)...)
	for _, f := range s.Files {
		all = append(all, s.defined(f)...)
	}
	for name, hash := range s.FileHashes {
		sub := subject{kind: "file", name: name, direction: grant.Neutral}
		sub.encoded(grant.Neutral, "", hash)
		all = append(all, sub)
	}
	slices.SortStableFunc(all, byName)
	return all
}

func byName(a, b subject) int {
	return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name))
}

// defined returns the facts of the definitions of a tool file.
func (s *Snapshot) defined(f *definition.Definitions) []subject {
	return slices.Concat(
		each(f.Tools, s.tool), each(f.Resources, s.resource), each(f.Folders, folder), each(f.Templates, s.template), each(f.Prompts, s.prompt),
		s.rules(f.Policies, f.Limits, f.Hooks, false),
	)
}

// rules returns the facts of policies, limits and hooks, of the config file or of a tool file.
func (s *Snapshot) rules(policies []definition.Policy, limits []definition.Limit, hooks []definition.Hook, operators bool) []subject {
	return slices.Concat(
		each(policies, func(p *definition.Policy) subject { return s.policy(p, operators) }),
		each(limits, func(l *definition.Limit) subject { return limit(l, operators) }),
		each(hooks, func(h *definition.Hook) subject { return s.hook(h, operators) }),
	)
}

// each returns the facts of each definition in a list.
func each[T any](list []T, of func(*T) subject) []subject {
	all := make([]subject, len(list))
	for i := range list {
		all[i] = of(&list[i])
	}
	return all
}

// call adds the facts about each call of a definition.
func (s *Snapshot) call(sub *subject, c *definition.Call) {
	sub.encoded(grant.Opaque, "labels", c.Labels)
	sub.bounds(c.Bounds, unknown)
	sub.add(grant.TimeFact("", "ask_timeout", c.AskTimeout), sub.where)
	sub.grants(s, c.Grant, c.GrantRanges)
}

// configured returns the facts of the config file, except for its rules.
func (s *Snapshot) configured() []subject {
	c := s.Config
	all := []subject{s.server(), s.listen(), s.reload(), s.limits(), s.ceiling(), s.audit(), s.state(), s.report()}
	for _, v := range c.Variables {
		all = append(all, variable(v))
	}
	all = slices.Concat(all, each(c.Auths, authOf), each(c.Secrets, secretOf), each(c.Upstreams, s.upstream))
	if c.Codeact != nil {
		all = append(all, codeact(c.Codeact))
	}
	if c.Console != nil {
		all = append(all, console(c.Console))
	}
	return all
}

// authOf returns the facts of an auth block. Removing one may admit everyone, and adding one
// admits more callers, so both must be reviewed.
func authOf(a *definition.Auth) subject {
	sub := subject{kind: "auth", name: a.Name, where: a.Range, direction: grant.Opaque}
	sub.addOption(grant.Opaque, "kind", a.Kind)
	sub.encoded(grant.Opaque, "api_key", a.APIKeys)
	sub.encoded(grant.Opaque, "oidc", a.JWT)
	sub.encoded(grant.Opaque, "mtls", a.MTLS)
	sub.encoded(grant.Opaque, "unix", a.UnixPeers)
	return sub
}

// secretOf returns the facts of a secret: the source of its value, and who may read it.
func secretOf(s *definition.Secret) subject {
	sub := subject{kind: "secret", name: s.Name, where: s.Range}
	sub.encoded(grant.Opaque, "source", []any{s.Env, s.File, s.Command})
	sub.addIf(s.Reveal, grant.Increases, "reveal")
	if s.OAuth == nil {
		return sub
	}
	o := *s.OAuth
	sub.addIf(o.PrivateNetworks, grant.Increases, "oauth private_networks")
	for _, scope := range o.Scopes {
		sub.addOption(grant.Increases, "oauth scopes", scope)
	}
	sub.encoded(grant.Opaque, "oauth", []any{o.TokenURL, o.AuthorizeURL, o.RedirectURL, o.ClientID, o.ClientSecret, o.Params, o.CredentialsInBody})
	return sub
}

// block starts the facts of a block that occurs at most once.
func (s *Snapshot) block(kind string, where diag.Range) subject {
	if where == noRange {
		where = diag.Range{File: s.Config.Range.File}
	}
	return subject{kind: kind, where: where}
}

func (s *Snapshot) server() subject {
	block := s.Config.Server
	a := s.block("server", block.Range)
	a.encoded(grant.Neutral, "name", block.Name)
	a.encoded(grant.Neutral, "title", block.Title)
	a.encoded(grant.Neutral, "version", block.Version)
	a.encoded(grant.Neutral, "description", block.Description)
	a.encoded(grant.Neutral, "instructions", block.Instructions)
	a.encoded(grant.Neutral, "icons", block.Icons)
	a.addIf(block.ExposeTraces, grant.Increases, "expose_traces")
	a.addIf(block.LenientLifecycle, grant.Increases, "strict_lifecycle = false")
	a.addIf(block.Mode == definition.Production, grant.Restricts, "mode production")
	a.addIf(s.deniesByDefault(), grant.Restricts, "denying calls without a policy")
	return a
}

func (s *Snapshot) listen() subject {
	block := s.Config.Listen
	a := s.block("listen", block.Range)
	a.addOption(grant.Opaque, "address", block.Address)
	if block.TLS != nil {
		a.encoded(grant.Opaque, "tls", []string{block.TLS.CertFile, block.TLS.KeyFile, block.TLS.ClientCAFile})
	}
	for _, host := range block.Hosts {
		a.addOption(grant.Increases, "hosts", host)
	}
	for _, origin := range block.Origins {
		a.addOption(grant.Increases, "origins", origin)
	}
	return a
}

func (s *Snapshot) reload() subject {
	block := s.Config.Reload
	a := s.block("reload", block.Range)
	a.encoded(grant.Neutral, "watch", block.Watch)
	a.addIf(block.RequireTests, grant.Restricts, "require_tests")
	return a
}

func (s *Snapshot) limits() subject {
	block := s.Config.Limits
	a := s.block("limits", block.Range)
	a.number("concurrency", block.Concurrency, unknown)
	a.add(grant.SizeFact("", "memory", block.Memory), a.where)
	return a
}

// ceiling returns the maximum grants of tool files. A named place may be granted even if mcpd
// otherwise rejects it, so naming one gives privilege too.
func (s *Snapshot) ceiling() subject {
	c := s.Config.Ceiling
	if c == nil {
		c = &definition.Ceiling{}
	}
	a := s.block("ceiling", c.Range)
	a.names(grant.Increases, "http_hosts", c.HTTPHosts)
	for _, n := range c.HTTPHosts {
		if grant.SharedDomain(n.Text) != "" { // it is rejected unless it is named
			a.add(grant.Fact{Option: "http_hosts by name", Value: n.Text}, n.Range)
		}
	}
	a.names(grant.Increases, "private_networks", c.PrivateNetworks)
	a.names(grant.Increases, "env", c.Env)
	a.names(grant.Increases, "kv", c.KV)
	a.names(grant.Increases, "ask", c.Ask)
	a.names(grant.Increases, "sql_drivers", c.SQLDrivers)
	a.names(grant.Increases, "sql_hosts", c.SQLHosts)
	a.paths("exec_paths", c.ExecPaths, "", false) // a name may permit a program that a pattern does not
	a.paths("modules", c.Modules, "", true)
	a.paths("fs_roots", c.FSRoots, s.ConfigDir, false)
	a.paths("sql_roots", c.SQLRoots, s.ConfigDir, false)
	a.bounds(c.Bounds, math.Inf(1))
	return a
}

// paths adds names. Paths below folder become relative to it. patterns means that names
// covered by a pattern add nothing.
func (s *subject) paths(option string, list []definition.Name, folder string, patterns bool) {
	if list == nil {
		s.addOption(grant.Increases, option, "everything that is not rejected elsewhere")
	}
	for _, n := range list {
		s.add(grant.Fact{Option: option, Value: relativeTo(n.Text, folder), Pattern: patterns}, n.Range)
	}
}

// variable returns the facts of a variable. Its value is never shown.
func variable(v definition.Variable) subject {
	s := subject{kind: "variable", name: v.Name, where: v.Range, direction: grant.Neutral}
	s.encoded(grant.Neutral, "description", v.Description)
	s.encoded(grant.Opaque, "type", v.Type)
	s.encoded(grant.Opaque, "value", v.Value)
	s.addIf(v.Sensitive, grant.Restricts, "sensitive")
	return s
}

// state returns the facts of the state block. Another database has other waiting calls, tasks and values.
func (s *Snapshot) state() subject {
	block := s.Config.State
	if block == nil {
		return s.block("state", noRange)
	}
	sub := s.block("state", block.Range)
	sub.encoded(grant.Opaque, "url", block.URL)
	sub.encoded(grant.Opaque, "fleet", block.Fleet)
	sub.addIf(block.Key != "", grant.Restricts, "encryption")
	sub.encoded(grant.Opaque, "key", []string{block.Key, block.OldKey})
	if r := block.Replica; r != nil {
		sub.encoded(grant.Opaque, "replica listen", r.Listen)
		sub.encoded(grant.Opaque, "replica address", r.Address)
	}
	return sub
}

// report returns the facts of the report block. Another receiver learns the state of the server.
func (s *Snapshot) report() subject {
	block := s.Config.Report
	if block == nil {
		return s.block("report", noRange)
	}
	sub := s.block("report", block.Range)
	sub.encoded(grant.Opaque, "url", block.URL)
	sub.encoded(grant.Opaque, "token", block.Token)
	sub.encoded(grant.Neutral, "labels", block.Labels)
	sub.encoded(grant.Neutral, "every", block.Every)
	return sub
}

// audit returns the facts of the audit block. Unrecorded calls are not seen, so removing the
// audit, or strict mode, adds privilege. Other changes must be reviewed.
func (s *Snapshot) audit() subject {
	block := s.Config.Audit
	if block == nil {
		return s.block("audit", noRange)
	}
	a := s.block("audit", block.Range)
	a.addOption(grant.Restricts, "records of calls", "")
	a.addIf(block.Mode == definition.AuditStrict, grant.Restricts, "mode strict")
	a.encoded(grant.Opaque, "path", block.Path)
	a.encoded(grant.Opaque, "retention", []any{block.MaxSize, block.MaxFiles, block.MaxAge})
	for _, n := range block.Capture {
		a.add(grant.Fact{Option: "capture", Direction: grant.Increases, Value: n.Text, Pattern: true}, n.Range)
	}
	return a
}
