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
	"path"
	"slices"
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

// reading is a deployment in progress.
type reading struct {
	d      *compose.Deployment
	config *definition.Config
	// folder holds the secret files.
	folder   string
	problems diag.List
}

// Complete adds the facts of the files of the server to a deployment. secrets is the
// directory of the secret files, relative to docker-compose.yml. The list reports what
// cannot be deployed.
func Complete(d compose.Deployment, said privdiff.Snapshot, secrets string) (compose.Deployment, diag.List) {
	config := said.Config
	r := reading{d: &d, config: config, folder: secrets}
	r.door()
	if a := config.Audit; a != nil && !d.State {
		r.refuse(a.PathRange, "the deployment has no volume for an audit log", "let it keep its state (--state volume), or remove the block")
	} else if a != nil && !kept(a.Path) {
		r.refuse(a.PathRange, "the server in the container cannot write here", fmt.Sprintf("write a path below %s, such as %q", stateFolder, stateFolder+"/audit/audit.jsonl"))
	}
	r.variables()
	r.secrets(used(said))
	for i := range config.Upstreams {
		r.upstream(&config.Upstreams[i])
	}
	return d, r.problems.Sort()
}

// kept reports whether a file is in the state volume.
func kept(file string) bool { return strings.HasPrefix(path.Clean(file), stateFolder+"/") }

// refuse adds an error.
func (r *reading) refuse(where diag.Range, summary, detail string) {
	r.problems = append(r.problems, diag.Diagnostic{Code: "undeployable", Range: where, Summary: summary, Detail: detail})
}

// door adds the authentication of callers and the files that it needs.
func (r *reading) door() {
	if t := r.config.Listen.TLS; t != nil {
		r.d.TLS = true
		for _, file := range []string{t.CertFile, t.KeyFile, t.ClientCAFile} {
			if file != "" {
				r.read(file, t.Range)
			}
		}
	}
	for _, a := range r.config.Auths {
		r.d.Auth = r.d.Auth || a.Kind != "anonymous"
		// Kubernetes makes mounted files readable for a group, which key files must not
		// be. They need a directory that the server can write.
		if a.APIKeys != nil && !(r.d.State && kept(a.APIKeys.File)) {
			r.read(a.APIKeys.File, a.Range)
		}
	}
	if slices.ContainsFunc(r.config.Auths, func(a definition.Auth) bool { return a.Kind == "anonymous" }) {
		r.d.Auth = false
	}
}

// mounted returns the name of the secret that is mounted as a file. ok is false if no
// container has the file.
func (r *reading) mounted(file string, where diag.Range) (name string, ok bool) {
	name = path.Base(file)
	if path.Dir(file) != container.SecretFolder || !container.IsSecret(name) {
		r.refuse(where, fmt.Sprintf("the container has no file %q", file),
			fmt.Sprintf("write %q, and put the file into %s", path.Join(container.SecretFolder, "NAME"), path.Join(r.folder, "NAME")))
		return "", false
	}
	r.know(compose.Secret{Name: name, File: path.Join(r.folder, name)})
	return name, true
}

// read mounts a secret as a file.
func (r *reading) read(file string, where diag.Range) {
	if name, ok := r.mounted(file, where); ok && !slices.Contains(r.d.Reads, name) {
		r.d.Reads = append(r.d.Reads, name)
	}
}

func (r *reading) know(s compose.Secret) {
	if !slices.Contains(r.d.Secrets, s) {
		r.d.Secrets = append(r.d.Secrets, s)
	}
}

// variables adds the values of variables that differ from the default. Sensitive values
// come from the environment of the deployment.
func (r *reading) variables() {
	for _, name := range slices.Sorted(maps.Keys(r.config.Variables)) {
		v := r.config.Variables[name]
		variable := compose.Variable{Name: "MCPD_VAR_" + name}
		switch {
		case v.Given == nil:
			continue
		case v.Sensitive:
			variable.Secret = variable.Name
			r.know(compose.Secret{Name: variable.Name, Environment: variable.Name})
		default:
			variable.Value = *v.Given
		}
		r.d.Env = append(r.d.Env, variable)
	}
}

// secrets adds the secrets that the server uses.
func (r *reading) secrets(used map[string]bool) {
	for i := range r.config.Secrets {
		s := &r.config.Secrets[i]
		switch {
		case !used[s.Name]:
		case s.Env != "":
			r.know(compose.Secret{Name: s.Name, Environment: s.Env})
			if !slices.ContainsFunc(r.d.Env, func(v compose.Variable) bool { return v.Name == s.Env && v.Secret != "" }) {
				r.d.Env = append(r.d.Env, compose.Variable{Name: s.Env, Secret: s.Name})
			}
		case s.File != "":
			r.read(s.File, s.Range)
		case s.Command != nil:
			r.refuse(s.Range, fmt.Sprintf("the secret %q comes from a program, which is not in the mcpd image", s.Name), "take it from the environment (env) or from a file")
		}
	}
}

func (r *reading) upstream(u *definition.Upstream) {
	c := u.Container
	switch {
	case u.Command != nil:
		r.refuse(u.NameRange, fmt.Sprintf("the upstream %q is a program, which is not in the mcpd image", u.Name), "run it in a container { image = … }, or write its url")
		return
	case c == nil && u.IsSelf():
		r.refuse(u.AddressRange, fmt.Sprintf("in a container this address is the container, not the upstream %q", u.Name), "run it in a container { image = … }, or write an address that other machines can reach")
		return
	case c == nil:
		return
	}
	up := compose.Upstream{
		Name: u.Name, Image: c.Image, Port: c.Port, Path: c.Path, Command: c.Command, Writable: c.Writable, User: c.User, Internet: c.Internet, Health: c.Health,
		Limits: compose.Limits{Memory: c.Memory, CPU: c.CPU},
	}
	for _, v := range c.Env {
		variable := compose.Variable{Name: v.Name}
		for _, part := range v.Value.Parts {
			variable.Value += part.Literal
			variable.Secret += part.Secret
		}
		if s := r.secret(variable.Secret); s != nil {
			r.know(compose.Secret{Name: s.Name, Environment: s.Env})
		}
		up.Env = append(up.Env, variable)
	}
	for _, name := range c.Reads {
		s := r.secret(name)
		if name, ok := r.mounted(s.File, s.Range); ok {
			up.Reads = append(up.Reads, name)
		}
	}
	for _, v := range c.Volumes {
		up.Volumes = append(up.Volumes, compose.Volume{Name: v.Name, Host: v.Host, Target: v.Target, ReadOnly: v.ReadOnly, Size: v.Size})
	}
	r.d.Upstreams = append(r.d.Upstreams, up)
}

// secret returns the secret block with a name, or nil for "".
func (r *reading) secret(name string) *definition.Secret {
	i := slices.IndexFunc(r.config.Secrets, func(s definition.Secret) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	return &r.config.Secrets[i]
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
func Unaccepted(said privdiff.Snapshot, lock *lockfile.Lock) (warnings diag.List) {
	known := lock.Upstreams()
	for i := range said.Config.Upstreams {
		u := &said.Config.Upstreams[i]
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

// used returns the names of the secrets that the server uses: in grants, upstream
// connections and OAuth clients. It excludes secrets that only a container uses.
func used(said privdiff.Snapshot) map[string]bool {
	names := map[string]bool{}
	use := func(name string) { names[name] = true }
	for _, g := range grants(said) {
		for _, name := range g.SecretNames() {
			use(name)
		}
	}
	for i := range said.Config.Upstreams {
		u := &said.Config.Upstreams[i]
		for _, h := range u.Grant.Headers {
			h.Value.EachSecret(use)
		}
	}
	for _, s := range said.Config.Secrets {
		if s.OAuth != nil && names[s.Name] {
			use(s.OAuth.ClientSecret)
		}
	}
	return names
}

// grants returns all grants in the files.
func grants(said privdiff.Snapshot) []grant.Set {
	var all []grant.Set
	hooks := func(list []definition.Hook) {
		for i := range list {
			all = append(all, list[i].Grant)
		}
	}
	hooks(said.Config.Hooks)
	for _, f := range said.Files {
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
