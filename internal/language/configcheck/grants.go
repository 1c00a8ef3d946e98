package configcheck

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/grant"
)

// HostPaths are the paths on the host that grants are checked against.
type HostPaths struct {
	// Tools, Config and State are the absolute paths of the tools directory, of the directory
	// of the config file, and of the state directory. They are empty if not on disk.
	Tools, Config, State string
	// Home is the home directory of the user of mcpd. It may be empty.
	Home string
	// Find resolves the symbolic links of a path. The path is empty if unknown. The error says
	// why it is not a directory: [fs.ErrNotExist] if it does not exist.
	Find func(path string) (string, error)
	// Program resolves the symbolic links of a path. The error says why it is not a program
	// that only its owner and group can change: [fs.ErrNotExist] if it does not exist.
	Program func(path string) (string, error)
	// NoDriver maps the missing drivers of sql grants to the package to import for each.
	NoDriver map[string]string
}

// CheckHost returns all errors in grants of host resources: files, programs and environment
// variables. It also reports grants that are unsafe, unless the ceiling names them.
func CheckHost(config *definition.Config, files []*definition.Definitions, paths HostPaths) diag.List {
	c := &hostChecker{checker: checker{config: config}, paths: paths}
	c.gatherReserved()
	granting := slices.DeleteFunc(slices.Clone(files), func(f *definition.Definitions) bool {
		for i := range f.Tools {
			c.checkSharedCache(&f.Tools[i])
		}
		return !grantsAny(f)
	})
	c.gatherWritten(granting)
	eachHookGrant(config.Hooks, func(kind, name string, granted *grant.Set, ranges map[string]diag.Range) {
		c.checkGrants(kind, name, granted, ranges, false)
	})
	c.checkUpstreamTokens()
	for _, f := range granting {
		eachGrant(f, func(kind, name string, granted *grant.Set, ranges map[string]diag.Range) {
			c.checkGrants(kind, name, granted, ranges, true)
		})
	}
	return c.problems
}

// hostChecker checks grants against the host.
type hostChecker struct {
	checker
	paths HostPaths
	// reserved are the directories that no root may contain, unless the ceiling names it.
	reserved []reserved
	// written are the directories that scripts may write to.
	written []string
}

// grantFunc is called with the grants of one definition.
type grantFunc = func(kind, name string, granted *grant.Set, ranges map[string]diag.Range)

// eachGrant calls do with the grants of each definition of a file that has any.
func eachGrant(f *definition.Definitions, do grantFunc) {
	each := func(kind, name string, granted *grant.Set, ranges map[string]diag.Range) {
		if !granted.IsEmpty() {
			do(kind, name, granted, ranges)
		}
	}
	for i := range f.Tools {
		each("tool", f.Tools[i].Name, &f.Tools[i].Grant, f.Tools[i].GrantRanges)
	}
	for i := range f.Resources {
		each("resource", f.Resources[i].Name, &f.Resources[i].Grant, f.Resources[i].GrantRanges)
	}
	for i := range f.Templates {
		each("template", f.Templates[i].Name, &f.Templates[i].Grant, f.Templates[i].GrantRanges)
	}
	for i := range f.Prompts {
		each("prompt", f.Prompts[i].Name, &f.Prompts[i].Grant, f.Prompts[i].GrantRanges)
	}
	eachHookGrant(f.Hooks, each)
}

// grantsAny reports whether [eachGrant] calls its function for a file.
func grantsAny(f *definition.Definitions) (any bool) {
	eachGrant(f, func(string, string, *grant.Set, map[string]diag.Range) { any = true })
	return any
}

// grantsOf returns the grants of a definition, and false if no file defines it.
func (c *checker) grantsOf(kind, name string) (granted *grant.Set, known bool) {
	if c.grants == nil {
		c.grants = map[subject]*grant.Set{}
		for _, f := range c.files {
			for i := range f.Tools {
				c.grants[subject{"tool", f.Tools[i].Name}] = &f.Tools[i].Grant
			}
			for i := range f.Resources {
				c.grants[subject{"resource", f.Resources[i].URI}] = &f.Resources[i].Grant
			}
			for i := range f.Templates {
				if t := &f.Templates[i]; t.URITemplate != nil {
					c.grants[subject{"template", t.URITemplate.String()}] = &t.Grant
				}
			}
			for i := range f.Prompts {
				c.grants[subject{"prompt", f.Prompts[i].Name}] = &f.Prompts[i].Grant
			}
		}
	}
	granted, known = c.grants[subject{kind, name}]
	return granted, known
}

func eachHookGrant(hooks []definition.Hook, do grantFunc) {
	for i := range hooks {
		do("hook", hooks[i].Name, &hooks[i].Grant, hooks[i].GrantRanges)
	}
}

// checkGrants checks the grants of one definition. bounded means that the ceiling applies; it
// does not apply to the config file.
func (c *hostChecker) checkGrants(kind, name string, granted *grant.Set, ranges map[string]diag.Range, bounded bool) {
	what := fmt.Sprintf("%s %q", kind, name)
	for _, g := range granted.FS {
		where, written := ranges["fs."+g.Name+".root"]
		if written && g.Root != "" {
			c.checkRoot(what, grantedPath{path: g.Root, write: g.Write, named: c.ceilingOf(fsRoots), list: fsRoots, where: where, bounded: bounded})
		}
	}
	for _, g := range granted.SQL {
		if where, written := ranges["sql."+g.Name+".driver"]; written && c.paths.NoDriver[g.Driver] != "" {
			c.fail("missing-extension", where, fmt.Sprintf("this program contains no driver for %s databases", g.Driver),
				"import github.com/mcpd/mcpd/"+c.paths.NoDriver[g.Driver]+" into the program, and put its New() into engine.Options.Extensions")
		}
		where, written := ranges["sql."+g.Name+".path"]
		if written && g.Path != "" {
			c.checkRoot(what, grantedPath{path: g.Path, write: g.Write, file: !g.PathFromCall, named: c.ceilingOf(sqlRoots), list: sqlRoots, where: where, bounded: bounded})
		}
	}
	for _, g := range granted.Exec {
		if where, written := ranges["exec."+g.Name+".path"]; written && g.Path != "" {
			c.checkProgram(what, g, where, ranges, bounded)
		}
	}
	c.checkDomains(what, granted, ranges)
	c.checkSecrets(what, granted, ranges)
	c.checkUserTokens(kind, what, granted, ranges)
	for _, variable := range granted.Env {
		if where, written := ranges["env."+variable]; written {
			c.checkVariable(what, variable, where, bounded)
		}
	}
}

// grantedPath is a granted directory or file.
type grantedPath struct {
	path        string
	write, file bool
	// named are the paths in the list of the ceiling; nil means no limit.
	named   []definition.Name
	list    string
	where   diag.Range
	bounded bool
}

// The lists of the ceiling that limit paths.
const (
	fsRoots  = "fs_roots"
	sqlRoots = "sql_roots"
)

// ceilingOf returns a list of the ceiling.
func (c *hostChecker) ceilingOf(list string) []definition.Name {
	switch {
	case c.config.Ceiling == nil:
		return nil
	case list == sqlRoots:
		return c.config.Ceiling.SQLRoots
	}
	return c.config.Ceiling.FSRoots
}

// checkRoot checks the path of one grant.
func (c *hostChecker) checkRoot(what string, p grantedPath) {
	where := p.where
	real, err := c.paths.Find(p.path)
	if why := c.unsafeRoot(p, real); why != "" && !c.ceilingUnknown() && !p.isNamed(real) {
		c.fail("bad-grant", where, fmt.Sprintf("%s gives scripts %s", what, why),
			"use a directory that contains only what the script needs, or ask the operator to add this one to ceiling."+p.list)
		return
	}
	if p.bounded && p.named != nil && !c.isCovered(p, real) {
		c.fail("over-ceiling", where, what+" has a root that the ceiling does not allow",
			"use a directory in ceiling."+p.list+", or ask the operator to add this one", diag.Note{Range: c.config.Ceiling.Range, Message: "the ceiling"})
		return
	}
	if p.file {
		c.checkDatabaseFile(where, err)
		return
	}
	switch {
	case err == nil:
	case errors.Is(err, fs.ErrNotExist):
		c.warn("missing-root", where, "the root does not exist yet", "create the directory, or correct the path")
	default:
		c.warn("missing-root", where, "the root is not a usable directory: "+err.Error(), "correct the path, or create the directory")
	}
}

// checkDatabaseFile warns of a missing database file. A path that is not a directory may be a file.
func (c *hostChecker) checkDatabaseFile(where diag.Range, err error) {
	switch {
	case err == nil:
		c.warn("missing-root", where, "the dsn is a directory", "write the path of a file, or use root and glob")
	case errors.Is(err, fs.ErrNotExist):
		c.warn("missing-root", where, "the database file does not exist yet", "create it, or correct the path")
	}
}

// isNamed reports whether the ceiling names exactly this path, not only a parent.
func (p grantedPath) isNamed(real string) bool {
	return slices.ContainsFunc(p.named, func(n definition.Name) bool { return n.Text == p.path || n.Text == real })
}

// isCovered reports whether a path is in a directory of the ceiling, after links are resolved.
// An unresolved path is never covered.
func (c *hostChecker) isCovered(p grantedPath, real string) bool {
	return real != "" && slices.ContainsFunc(p.named, func(n definition.Name) bool {
		bound, _ := c.paths.Find(n.Text)
		return bound != "" && within(real, bound)
	})
}

// checkVariable checks one environment variable.
func (c *hostChecker) checkVariable(what, name string, where diag.Range, bounded bool) {
	for _, secret := range c.config.Secrets {
		if strings.EqualFold(secret.Env, name) { // names are case-insensitive on some systems
			c.fail("bad-grant", where, fmt.Sprintf("%s is granted env.%s, which contains the secret %q", what, name, secret.Name),
				"use the secret in a header of a grant, or grant it with secrets { names = [...] }", diag.Note{Range: secret.Range, Message: "the secret"})
			return
		}
	}
	if bounded && c.config.Ceiling != nil {
		c.checkWithin(c.config.Ceiling.Env, name, where, fmt.Sprintf("%s is granted env.%s", what, name), "use a variable of ceiling.env, or ask the operator to add this one")
	}
}

// checkDomains checks the host patterns of one definition.
func (c *hostChecker) checkDomains(what string, granted *grant.Set, ranges map[string]diag.Range) {
	for _, g := range granted.HTTP {
		for i, host := range g.Hosts {
			where, written := ranges[fmt.Sprintf("http.%s.hosts.%d", g.Name, i)]
			domain := grant.SharedDomain(host)
			if !written || domain == "" || c.isNamedHost(host) {
				continue
			}
			c.fail("bad-grant", where, fmt.Sprintf("%s may reach any host below %s, where anyone can register a name", what, domain),
				`name the hosts, or a domain with one owner, as in "*.example.com:443", or ask the operator to add it to ceiling.http_hosts`)
		}
	}
}

// ceilingUnknown reports whether the ceiling is unknown, because the config could not be
// parsed. It may contain anything.
func (c *hostChecker) ceilingUnknown() bool { return c.config.Ceiling == nil && c.config.Incomplete }

// isNamedHost reports whether the ceiling names exactly this host pattern.
func (c *hostChecker) isNamedHost(host string) bool {
	return c.ceilingUnknown() || c.config.Ceiling != nil && slices.ContainsFunc(c.config.Ceiling.HTTPHosts, func(n definition.Name) bool { return n.Text == host })
}

// checkSecrets checks the secrets that a definition may read. The operator must permit this for
// each secret.
func (c *hostChecker) checkSecrets(what string, granted *grant.Set, ranges map[string]diag.Range) {
	for _, name := range granted.Secrets {
		where, written := ranges["secrets."+name]
		i := slices.IndexFunc(c.config.Secrets, func(s definition.Secret) bool { return s.Name == name })
		if !written || i < 0 || c.config.Secrets[i].Reveal || c.config.Secrets[i].Range == (diag.Range{}) {
			continue // the decoder has reported it
		}
		c.fail("over-ceiling", where, fmt.Sprintf("%s may read the secret %q, which has no reveal = true", what, name),
			"use it in a header of a grant, or ask the operator to set reveal = true", diag.Note{Range: c.config.Secrets[i].Range, Message: "the secret"})
	}
}

// checkUserTokens checks the uses of user tokens in the grants of a definition. They are
// allowed only in headers of requests, and only if the call has a user.
func (c *hostChecker) checkUserTokens(kind, what string, granted *grant.Set, ranges map[string]diag.Range) {
	check := func(v grant.Value, object, problem, detail string) {
		v.EachSecret(func(name string) {
			secret := c.userTokenSecret(name)
			if where, written := ranges[object]; written && secret != nil {
				c.fail("bad-grant", where, fmt.Sprintf("%s %s, %q", what, problem, name), detail, diag.Note{Range: secret.Range, Message: "the secret"})
			}
		})
	}
	const alone = "use such a token only in headers of requests"
	for _, g := range granted.Exec {
		for _, v := range g.Env {
			check(v.Value, "exec."+g.Name, "passes a user token to a program", alone)
		}
	}
	for _, g := range granted.SQL {
		check(g.DSN, "sql."+g.Name, "opens a database with a user token", alone)
	}
	for _, g := range granted.HTTP {
		for _, h := range g.Headers {
			if kind == "hook" {
				check(h.Value, "http."+g.Name, "sends a user token", "a hook has no user; use a secret of the server")
			}
		}
	}
}

// checkUpstreamTokens reports upstreams that use a user token. The connection to an upstream
// has no user.
func (c *hostChecker) checkUpstreamTokens() {
	for i := range c.config.Upstreams {
		u := &c.config.Upstreams[i]
		check := func(v grant.Value) {
			v.EachSecret(func(name string) {
				if secret := c.userTokenSecret(name); secret != nil {
					c.fail("bad-grant", u.NameRange, fmt.Sprintf("the upstream %q uses a user token, %q", u.Name, name),
						"use a secret with client_id and client_secret, or another secret of the server", diag.Note{Range: secret.Range, Message: "the secret"})
				}
			})
		}
		for _, h := range u.Grant.Headers {
			check(h.Value)
		}
		for _, v := range u.Env {
			check(v.Value)
		}
	}
}

// userTokenSecret returns a secret that holds a token per user, or nil if it does not.
func (c *hostChecker) userTokenSecret(name string) *definition.Secret {
	i := slices.IndexFunc(c.config.Secrets, func(s definition.Secret) bool {
		return s.Name == name && s.OAuth != nil && s.OAuth.AuthorizeURL != ""
	})
	if i < 0 {
		return nil
	}
	return &c.config.Secrets[i]
}

// checkSharedCache reports a tool that would share a result, obtained with the token of one
// user, with all callers.
func (c *hostChecker) checkSharedCache(t *definition.Tool) {
	if t.Cache == nil || t.Cache.Scope != definition.CacheServer {
		return
	}
	for _, name := range t.Grant.SecretNames() {
		if secret := c.userTokenSecret(name); secret != nil {
			c.fail("contradiction", t.Cache.Range, fmt.Sprintf("tool %q shares results that depend on a user token, %q", t.Name, name),
				"write scope = \"principal\"", diag.Note{Range: secret.Range, Message: "the secret"})
		}
	}
}
