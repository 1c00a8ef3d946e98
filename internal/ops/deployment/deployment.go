// Package deployment derives from the files of a server how it is deployed together
// with its upstream servers.
//
// [Complete] adds the facts of the configuration file and the tool files to a
// [compose.Deployment]: containers, secrets and their users, mounted files, and values
// of variables. It reports what works only on the current machine, such as a program or
// a path. [Unaccepted] warns of upstreams that would be trusted anew at each start.
// [Tools] returns the tool files for the container.
//
// The package writes nothing, reads no secret values, and does not open the files that
// the configuration names.
package deployment

import (
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/federation/lockfile"
	"github.com/mcpd/mcpd/internal/language/container"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/internal/language/loader"
	"github.com/mcpd/mcpd/internal/language/privdiff"
	"github.com/mcpd/mcpd/internal/ops/compose"
)

// stateFolder is the writable directory of the server in a container.
const stateFolder = "/var/lib/mcpd"

// completion is a deployment in progress.
type completion struct {
	d      *compose.Deployment
	config *definition.Config
	// folder holds the secret files.
	folder   string
	problems diag.List
}

// Complete adds the facts of the files of the server to a deployment. secrets is the
// directory of the secret files, relative to docker-compose.yml. The list reports what
// cannot be deployed.
func Complete(d compose.Deployment, snapshot privdiff.Snapshot, secrets string) (compose.Deployment, diag.List) {
	config := snapshot.Config
	r := completion{d: &d, config: config, folder: secrets}
	if d.Database {
		d.State = d.State && keepsFiles(snapshot)
		r.database()
	}
	r.addAuth()
	if a := config.Audit; a != nil && !d.State {
		r.report(a.PathRange, "the deployment has no volume for an audit log", "let it keep its state (--state volume), or remove the block")
	} else if a != nil && !inStateFolder(a.Path) {
		r.report(a.PathRange, "the server in the container cannot write here", fmt.Sprintf("write a path below %s, such as %q", stateFolder, stateFolder+"/audit/audit.jsonl"))
	}
	r.variables()
	r.secrets(usedSecrets(snapshot))
	for i := range config.Upstreams {
		r.upstream(&config.Upstreams[i])
	}
	return d, r.problems.Sort()
}

// keepsFiles reports whether the files of the server name a file in the volume. The state
// itself is elsewhere.
func keepsFiles(snapshot privdiff.Snapshot) bool {
	kept := snapshot.Config.Audit != nil
	for _, a := range snapshot.Config.Auths {
		kept = kept || a.APIKeys != nil && inStateFolder(a.APIKeys.File)
	}
	for _, g := range grants(snapshot) {
		kept = kept || slices.ContainsFunc(g.FS, func(f grant.FS) bool { return inStateFolder(f.Root + "/x") }) ||
			slices.ContainsFunc(g.SQL, func(s grant.SQL) bool { return inStateFolder(s.Path + "/x") })
	}
	return kept
}

// database checks the URL of the state block, and mounts the files that it names.
func (c *completion) database() {
	block := c.config.State
	if block.IsSelf() {
		c.report(block.Range, "in a container this address is the container, not the state database", "write an address that other machines can reach")
	}
	if block.Replica != nil {
		c.peers(block)
	}
	at := block.Address()
	if at == nil {
		return
	}
	for _, option := range []string{"sslrootcert", "sslcert", "sslkey"} {
		if file := at.Query().Get(option); file != "" && file != "system" {
			c.mount(file, block.Range)
		}
	}
}

// peers takes the port for other replicas from the replica block. Each container has an address of its own,
// from which it reaches the database.
func (c *completion) peers(block *definition.State) {
	host, port, _ := net.SplitHostPort(block.Replica.Listen)
	c.d.Peers, _ = strconv.Atoi(port) // decoded before
	if ip, err := netip.ParseAddr(host); host != "" && (err != nil || !ip.IsUnspecified()) {
		c.report(block.Range, "in a container other replicas do not reach this listen address of the replica block", fmt.Sprintf("write listen = %q", "0.0.0.0:"+port))
	}
	if block.Replica.Address != "" {
		c.report(block.Range, "all replicas would have the address in the replica block", "remove address: each replica finds its own")
	}
	if c.d.Peers == 0 {
		c.report(block.Range, "the replica block chooses a free port, which other containers cannot know", "write a port, such as listen = \"0.0.0.0:7443\"")
	}
}

// inStateFolder reports whether a file is in the state volume.
func inStateFolder(file string) bool { return strings.HasPrefix(path.Clean(file), stateFolder+"/") }

// report adds an error.
func (c *completion) report(where diag.Range, summary, detail string) {
	c.problems = append(c.problems, diag.Diagnostic{Code: "undeployable", Range: where, Summary: summary, Detail: detail})
}

// addAuth adds the authentication of callers and the files that it needs.
func (c *completion) addAuth() {
	if t := c.config.Listen.TLS; t != nil {
		c.d.TLS = true
		for _, file := range []string{t.CertFile, t.KeyFile, t.ClientCAFile} {
			if file != "" {
				c.mount(file, t.Range)
			}
		}
	}
	for _, a := range c.config.Auths {
		c.d.Auth = c.d.Auth || a.Kind != "anonymous"
		if a.APIKeys != nil && !(c.d.State && inStateFolder(a.APIKeys.File)) {
			c.mount(a.APIKeys.File, a.Range)
		}
	}
	if slices.ContainsFunc(c.config.Auths, func(a definition.Auth) bool { return a.Kind == "anonymous" }) {
		c.d.Auth = false
	}
}

// secretFile returns the name of the secret that is mounted as a file. ok is false if no
// container has the file.
func (c *completion) secretFile(file string, where diag.Range) (name string, ok bool) {
	name = path.Base(file)
	if path.Dir(file) != container.SecretFolder || !container.IsSecret(name) {
		c.report(where, fmt.Sprintf("the container has no file %q", file),
			fmt.Sprintf("write %q, and put the file into %s", path.Join(container.SecretFolder, "NAME"), path.Join(c.folder, "NAME")))
		return "", false
	}
	c.addSecret(compose.Secret{Name: name, File: path.Join(c.folder, name)})
	return name, true
}

// mount mounts a secret as a file.
func (c *completion) mount(file string, where diag.Range) {
	if name, ok := c.secretFile(file, where); ok && !slices.Contains(c.d.Reads, name) {
		c.d.Reads = append(c.d.Reads, name)
	}
}

func (c *completion) addSecret(s compose.Secret) {
	if !slices.Contains(c.d.Secrets, s) {
		c.d.Secrets = append(c.d.Secrets, s)
	}
}

// variables adds the values of variables that differ from the default. Sensitive values
// come from the environment of the deployment.
func (c *completion) variables() {
	for _, name := range slices.Sorted(maps.Keys(c.config.Variables)) {
		v := c.config.Variables[name]
		variable := compose.Variable{Name: "MCPD_VAR_" + name}
		switch {
		case v.Given == nil:
			continue
		case v.Sensitive:
			variable.Secret = variable.Name
			c.addSecret(compose.Secret{Name: variable.Name, Environment: variable.Name})
		default:
			variable.Value = *v.Given
		}
		c.d.Env = append(c.d.Env, variable)
	}
}

// secrets adds the secrets that the server uses.
func (c *completion) secrets(used map[string]bool) {
	for i := range c.config.Secrets {
		s := &c.config.Secrets[i]
		switch {
		case !used[s.Name]:
		case s.Env != "":
			c.addSecret(compose.Secret{Name: s.Name, Environment: s.Env})
			if !slices.ContainsFunc(c.d.Env, func(v compose.Variable) bool { return v.Name == s.Env && v.Secret != "" }) {
				c.d.Env = append(c.d.Env, compose.Variable{Name: s.Env, Secret: s.Name})
			}
		case s.File != "":
			c.mount(s.File, s.Range)
		case s.Command != nil:
			c.report(s.Range, fmt.Sprintf("the secret %q comes from a program, which is not in the mcpd image", s.Name), "take it from the environment (env) or from a file")
		}
	}
}

func (c *completion) upstream(u *definition.Upstream) {
	def := u.Container
	switch {
	case u.Command != nil:
		c.report(u.NameRange, fmt.Sprintf("the upstream %q is a program, which is not in the mcpd image", u.Name), "run it in a container { image = … }, or write its url")
		return
	case def == nil && u.IsSelf():
		c.report(u.AddressRange, fmt.Sprintf("in a container this address is the container, not the upstream %q", u.Name), "run it in a container { image = … }, or write an address that other machines can reach")
		return
	case def == nil:
		return
	}
	up := compose.Upstream{
		Name: u.Name, Image: def.Image, Port: def.Port, Path: def.Path, Command: def.Command, Writable: def.Writable, User: def.User, Internet: def.Internet, Health: def.Health,
		Limits: compose.Limits{Memory: def.Memory, CPU: def.CPU},
	}
	for _, v := range def.Env {
		variable := compose.Variable{Name: v.Name}
		for _, part := range v.Value.Parts {
			variable.Value += part.Literal
			variable.Secret += part.Secret
		}
		if s := c.secret(variable.Secret); s != nil {
			c.addSecret(compose.Secret{Name: s.Name, Environment: s.Env})
		}
		up.Env = append(up.Env, variable)
	}
	for _, name := range def.Reads {
		s := c.secret(name)
		if name, ok := c.secretFile(s.File, s.Range); ok {
			up.Reads = append(up.Reads, name)
		}
	}
	for _, v := range def.Volumes {
		up.Volumes = append(up.Volumes, compose.Volume{Name: v.Name, Host: v.Host, Target: v.Target, ReadOnly: v.ReadOnly, Size: v.Size})
	}
	c.d.Upstreams = append(c.d.Upstreams, up)
}

// secret returns the secret block with a name, or nil for "".
func (c *completion) secret(name string) *definition.Secret {
	i := slices.IndexFunc(c.config.Secrets, func(s definition.Secret) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	return &c.config.Secrets[i]
}

// Tools returns the tool files by path, except hidden files. It reads at most what
// Kubernetes ConfigMaps can hold.
func Tools(fsys fs.FS) (map[string][]byte, error) {
	listed, err := loader.New(fsys, ".").List(".")
	if err != nil {
		return nil, fmt.Errorf("read tools: %w", err)
	}
	files, total := map[string][]byte{}, int64(0)
	for _, f := range listed {
		if total += f.Size; total > compose.MaxTools {
			return nil, fmt.Errorf("read tools: the files are larger than %d MiB, the limit for ConfigMaps", compose.MaxTools>>20)
		}
		if files[f.Name], err = fs.ReadFile(fsys, f.Name); err != nil {
			return nil, fmt.Errorf("read tools: %w", err)
		}
	}
	return files, nil
}

// Unaccepted warns of pinned upstreams that are not in the lock file. The deployed
// server cannot write the lock file, so its pins are lost at each restart.
func Unaccepted(snapshot privdiff.Snapshot, lock *lockfile.Lock) (warnings diag.List) {
	known := lock.Upstreams()
	for i := range snapshot.Config.Upstreams {
		u := &snapshot.Config.Upstreams[i]
		if u.Pin == definition.PinOff || !u.Offers(definition.OfferTools) || slices.Contains(known, u.Name) {
			continue
		}
		until := "until then each start trusts the first list of tools"
		if u.Pin == definition.PinStrict {
			until = "until then it has no tools"
		}
		warnings = append(warnings, diag.Diagnostic{
			Severity: diag.Warning, Code: "not-accepted", Range: u.NameRange,
			Summary: fmt.Sprintf("the tools of upstream %q are not accepted", u.Name),
			Detail:  "run mcpd lock accept with access to it, commit mcpd.lock, and run mcpd compose again: " + until,
		})
	}
	return warnings
}

// usedSecrets returns the names of the secrets that the server uses: in grants, upstream
// connections and OAuth clients. It excludes secrets that only a container uses.
func usedSecrets(snapshot privdiff.Snapshot) map[string]bool {
	names := map[string]bool{}
	use := func(name string) { names[name] = true }
	for _, g := range grants(snapshot) {
		for _, name := range g.SecretNames() {
			use(name)
		}
	}
	for i := range snapshot.Config.Upstreams {
		u := &snapshot.Config.Upstreams[i]
		for _, h := range u.Grant.Headers {
			h.Value.EachSecret(use)
		}
	}
	if state := snapshot.Config.State; state != nil {
		state.URL.EachSecret(use)
		names[state.Key], names[state.OldKey] = true, true
	}
	for _, s := range snapshot.Config.Secrets {
		if s.OAuth != nil && names[s.Name] {
			use(s.OAuth.ClientSecret)
		}
	}
	return names
}

// grants returns all grants in the files.
func grants(snapshot privdiff.Snapshot) []grant.Set {
	var all []grant.Set
	hooks := func(list []definition.Hook) {
		for i := range list {
			all = append(all, list[i].Grant)
		}
	}
	hooks(snapshot.Config.Hooks)
	for _, f := range snapshot.Files {
		hooks(f.Hooks)
		for i := range f.Tools {
			all = append(all, f.Tools[i].Grant)
		}
		for i := range f.Resources {
			all = append(all, f.Resources[i].Grant)
		}
		for i := range f.Templates {
			all = append(all, f.Templates[i].Grant)
		}
		for i := range f.Prompts {
			all = append(all, f.Prompts[i].Grant)
		}
	}
	return all
}
