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

// Places are what grants of files are judged by.
type HostPaths struct {
	// Tools, Config and State are the folders of the tool files, of the operator's
	// file and of what is kept, absolute; empty when they are not on the disk.
	Tools, Config, State string
	// Home is the home folder of the user who runs the server; it may be empty.
	Home string
	// Find returns a path without the links that it passes, empty when that cannot
	// be known, and what keeps it from being a folder: [fs.ErrNotExist] when
	// nothing is there.
	Find func(path string) (string, error)
	// Program returns a path without the links that it passes, and what keeps it
	// from being a program that others than its user cannot change: [fs.ErrNotExist]
	// when nothing is there.
	Program func(path string) (string, error)
	// NoDriver has the drivers of sql grants that the program lacks, with the package to
	// import for each.
	NoDriver map[string]string
}

// CheckPlaces returns every mistake in what definitions are granted of the
// machine that the server runs on, of its files and its environment, and every
// grant that is absurd unless the ceiling names it.
func CheckHost(config *definition.Config, files []*definition.Definitions, places HostPaths) diag.List {
	c := &hostChecker{checker: checker{config: config}, paths: places}
	c.gatherReserved()
	c.gatherWritten(files)
	eachHookGrant(config.Hooks, func(kind, name string, granted grant.Set, ranges map[string]diag.Range) {
		c.checkGrants(kind, name, granted, ranges, false)
	})
	c.checkUpstreamTokens()
	for _, f := range files {
		c.checkFile(f)
	}
	return c.problems
}

// machine judges grants by the machine that the server runs on.
type hostChecker struct {
	checker
	paths HostPaths
	// reserved are the folders that no root may hold unless the ceiling names it.
	reserved []reserved
	// written are the folders that scripts may write to.
	written []string
}

func (c *hostChecker) checkFile(f *definition.Definitions) {
	eachGrant(f, func(kind, name string, granted grant.Set, ranges map[string]diag.Range) {
		c.checkGrants(kind, name, granted, ranges, true)
	})
	for i := range f.Tools {
		c.checkSharedCache(&f.Tools[i])
	}
}

// eachGrant calls do with what each definition of a file is granted.
func eachGrant(f *definition.Definitions, do func(kind, name string, granted grant.Set, ranges map[string]diag.Range)) {
	for i := range f.Tools {
		do("tool", f.Tools[i].Name, f.Tools[i].Grant, f.Tools[i].GrantRanges)
	}
	for i := range f.Resources {
		do("resource", f.Resources[i].Name, f.Resources[i].Grant, f.Resources[i].GrantRanges)
	}
	for i := range f.Templates {
		do("template", f.Templates[i].Name, f.Templates[i].Grant, f.Templates[i].GrantRanges)
	}
	for i := range f.Prompts {
		do("prompt", f.Prompts[i].Name, f.Prompts[i].Grant, f.Prompts[i].GrantRanges)
	}
	eachHookGrant(f.Hooks, do)
}

func eachHookGrant(hooks []definition.Hook, do func(kind, name string, granted grant.Set, ranges map[string]diag.Range)) {
	for i := range hooks {
		do("hook", hooks[i].Name, hooks[i].Grant, hooks[i].GrantRanges)
	}
}

// judge judges what one definition is granted. The operator's own are bounded
// by no ceiling.
func (c *hostChecker) checkGrants(kind, name string, granted grant.Set, ranges map[string]diag.Range, bounded bool) {
	what := fmt.Sprintf("%s %q", kind, name)
	for _, g := range granted.FS {
		where, written := ranges["fs."+g.Name+".root"]
		if written && g.Root != "" {
			c.checkRoot(what, place{path: g.Root, write: g.Write, named: c.ceilingOf(fsRoots), list: fsRoots, where: where, bounded: bounded})
		}
	}
	for _, g := range granted.SQL {
		if where, written := ranges["sql."+g.Name+".driver"]; written && c.paths.NoDriver[g.Driver] != "" {
			c.fail("missing-extension", where, fmt.Sprintf("this program has no driver for %s databases", g.Driver),
				"import github.com/mcpd/mcpd/"+c.paths.NoDriver[g.Driver]+" into the program, and put its New() into engine.Options.Extensions")
		}
		where, written := ranges["sql."+g.Name+".path"]
		if written && g.Path != "" {
			c.checkRoot(what, place{path: g.Path, write: g.Write, file: !g.PathFromCall, named: c.ceilingOf(sqlRoots), list: sqlRoots, where: where, bounded: bounded})
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

// place is a folder that a grant names, or a file.
type place struct {
	path        string
	write, file bool
	// named are the places of the ceiling, which stand in list; nil is no bound.
	named   []definition.Name
	list    string
	where   diag.Range
	bounded bool
}

// The lists of a ceiling that bound places.
const (
	fsRoots  = "fs_roots"
	sqlRoots = "sql_roots"
)

// ceilingOf returns such a list.
func (c *hostChecker) ceilingOf(list string) []definition.Name {
	switch {
	case c.config.Ceiling == nil:
		return nil
	case list == sqlRoots:
		return c.config.Ceiling.SQLRoots
	}
	return c.config.Ceiling.FSRoots
}

// root judges the place of one grant.
func (c *hostChecker) checkRoot(what string, p place) {
	where := p.where
	real, err := c.paths.Find(p.path)
	if why := c.unsafeRoot(p, real); why != "" && !c.ceilingUnknown() && !p.isNamed(real) {
		c.fail("bad-grant", where, fmt.Sprintf("%s gives a script %s", what, why),
			"name a folder that holds nothing else than what the script needs; what is meant as it is, the operator names in ceiling."+p.list)
		return
	}
	if p.bounded && p.named != nil && !c.isCovered(p, real) {
		c.fail("over-ceiling", where, what+" has a root that the operator's ceiling does not allow",
			"use a folder within ceiling."+p.list+", or ask the operator to add this one", diag.Note{Range: c.config.Ceiling.Range, Message: "the ceiling"})
		return
	}
	if p.file {
		c.checkDatabaseFile(where, err)
		return
	}
	switch {
	case err == nil:
	case errors.Is(err, fs.ErrNotExist):
		c.warn("missing-root", where, "the root does not exist yet", "make the folder, or correct the path; until then scripts find nothing there")
	default:
		c.warn("missing-root", where, "the root is no folder that can be used: "+err.Error(), "correct the path, or make it a folder; until then scripts find nothing there")
	}
}

// databaseFile warns of a file that is not there. What is no folder may be a file.
func (c *hostChecker) checkDatabaseFile(where diag.Range, err error) {
	switch {
	case err == nil:
		c.warn("missing-root", where, "the dsn is a folder", "write the path of a file, or root and glob for files that calls choose")
	case errors.Is(err, fs.ErrNotExist):
		c.warn("missing-root", where, "the file of the database does not exist yet", "make it, or correct the path; until then statements fail")
	}
}

// isNamed reports whether the ceiling names just this place, and not only one
// above it.
func (p place) isNamed(real string) bool {
	return slices.ContainsFunc(p.named, func(n definition.Name) bool { return n.Text == p.path || n.Text == real })
}

// isCovered reports whether a place lies within a folder of the ceiling, however
// both are reached. What cannot be found is covered by nothing.
func (c *hostChecker) isCovered(p place, real string) bool {
	return real != "" && slices.ContainsFunc(p.named, func(n definition.Name) bool {
		bound, _ := c.paths.Find(n.Text)
		return bound != "" && within(real, bound)
	})
}

// variable judges one variable of the environment.
func (c *hostChecker) checkVariable(what, name string, where diag.Range, bounded bool) {
	for _, secret := range c.config.Secrets {
		if strings.EqualFold(secret.Env, name) { // some systems know no case here
			c.fail("bad-grant", where, fmt.Sprintf("%s is granted env.%s, which holds the secret %q", what, name, secret.Name),
				"use the secret in the header of a grant; what a body is to read itself, secrets { names = [...] } grants", diag.Note{Range: secret.Range, Message: "the secret"})
			return
		}
	}
	if bounded && c.config.Ceiling != nil {
		c.checkWithin(c.config.Ceiling.Env, name, where, fmt.Sprintf("%s is granted env.%s", what, name), "use a variable of ceiling.env, or ask the operator to add this one")
	}
}

// domains judges the patterns of hosts that one definition is granted.
func (c *hostChecker) checkDomains(what string, granted grant.Set, ranges map[string]diag.Range) {
	for _, g := range granted.HTTP {
		for i, host := range g.Hosts {
			where, written := ranges[fmt.Sprintf("http.%s.hosts.%d", g.Name, i)]
			domain := grant.SharedDomain(host)
			if !written || domain == "" || c.isNamedHost(host) {
				continue
			}
			c.fail("bad-grant", where, fmt.Sprintf("%s is granted every host below %s, where anyone can have one", what, domain),
				`name the hosts, or a domain that has one owner, as in "*.example.com:443"; what is meant as it is, the operator names in ceiling.http_hosts`)
		}
	}
}

// noCeiling reports whether the ceiling is not known, since the config could not
// be parsed as a whole. It may name anything then.
func (c *hostChecker) ceilingUnknown() bool { return c.config.Ceiling == nil && c.config.Incomplete }

// isNamedHost reports whether the ceiling names just these hosts.
func (c *hostChecker) isNamedHost(host string) bool {
	return c.ceilingUnknown() || c.config.Ceiling != nil && slices.ContainsFunc(c.config.Ceiling.HTTPHosts, func(n definition.Name) bool { return n.Text == host })
}

// revealed judges the secrets that one definition may read: the operator must
// have said of each that it may be read at all.
func (c *hostChecker) checkSecrets(what string, granted grant.Set, ranges map[string]diag.Range) {
	for _, name := range granted.Secrets {
		where, written := ranges["secrets."+name]
		i := slices.IndexFunc(c.config.Secrets, func(s definition.Secret) bool { return s.Name == name })
		if !written || i < 0 || c.config.Secrets[i].Reveal || c.config.Secrets[i].Range == (diag.Range{}) {
			continue // whoever decoded the files has told
		}
		c.fail("over-ceiling", where, fmt.Sprintf("%s is granted to read the secret %q, which the operator does not reveal", what, name),
			"use it in the header of a grant, or ask the operator to write reveal = true in its block", diag.Note{Range: c.config.Secrets[i].Range, Message: "the secret"})
	}
}

// ofUsers judges where tokens of users go that one definition is granted: into
// the headers of requests, and only where a call has a user.
func (c *hostChecker) checkUserTokens(kind, what string, granted grant.Set, ranges map[string]diag.Range) {
	judge := func(v grant.Value, object, problem, detail string) {
		v.EachSecret(func(name string) {
			secret := c.userTokenSecret(name)
			if where, written := ranges[object]; written && secret != nil {
				c.fail("bad-grant", where, fmt.Sprintf("%s %s, %q", what, problem, name), detail, diag.Note{Range: secret.Range, Message: "the secret"})
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
func (c *hostChecker) checkUpstreamTokens() {
	for i := range c.config.Upstreams {
		u := &c.config.Upstreams[i]
		judge := func(v grant.Value) {
			v.EachSecret(func(name string) {
				if secret := c.userTokenSecret(name); secret != nil {
					c.fail("bad-grant", u.NameRange, fmt.Sprintf("the upstream %q gets the token of a user, %q", u.Name, name),
						"a server is reached as mcpd itself: use a secret of a client_id with its client_secret, or one that is the server's own", diag.Note{Range: secret.Range, Message: "the secret"})
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
func (c *hostChecker) userTokenSecret(name string) *definition.Secret {
	i := slices.IndexFunc(c.config.Secrets, func(s definition.Secret) bool {
		return s.Name == name && s.OAuth != nil && s.OAuth.AuthorizeURL != ""
	})
	if i < 0 {
		return nil
	}
	return &c.config.Secrets[i]
}

// shared reports a tool that would give to everybody what it was told with the
// token of one user.
func (c *hostChecker) checkSharedCache(t *definition.Tool) {
	if t.Cache == nil || t.Cache.Scope != definition.CacheServer {
		return
	}
	for _, name := range t.Grant.SecretNames() {
		if secret := c.userTokenSecret(name); secret != nil {
			c.fail("contradiction", t.Cache.Range, fmt.Sprintf("the results of tool %q are given to every caller, and come by the token of a user, %q", t.Name, name),
				"write scope = \"principal\"", diag.Note{Range: secret.Range, Message: "the secret"})
		}
	}
}
