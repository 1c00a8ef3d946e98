// Package deployment reads out of the files of a server how it is deployed beside
// the servers that it federates.
//
// [Complete] adds to a [compose.Deployment] what the operator's file and the tool
// files say: containers, secrets and who has them, files that are read, values of
// variables. What only works on the machine where the files stand, such as a
// program or a path, it refuses at its place, and [Unaccepted] warns of upstreams that
// would be trusted anew at each start. [Tools] are the files that the
// server in the container finds.
//
// The package writes nothing, reads no values of secrets, and opens none of the
// files that the operator's file names.
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

// stateFolder is what the server in a container may write to.
const stateFolder = "/var/lib/mcpd"

// reading is a deployment on its way.
type reading struct {
	d      *compose.Deployment
	config *definition.Config
	// folder holds the secrets that are read as files.
	folder   string
	problems diag.List
}

// Complete adds to a deployment what the files of its server say. secrets is the
// folder, as docker-compose.yml has it, in which each secret is that is read as a
// file. What the files say and cannot be had in a deployment is in the list.
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

// kept reports whether a file stands in the volume of the state.
func kept(file string) bool { return strings.HasPrefix(path.Clean(file), stateFolder+"/") }

// refuse notes what cannot be had in a deployment.
func (r *reading) refuse(where diag.Range, summary, detail string) {
	r.problems = append(r.problems, diag.Diagnostic{Code: "undeployable", Range: where, Summary: summary, Detail: detail})
}

// door adds how callers are let in, and the files that this takes.
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
		// Kubernetes lets a group read what it mounts, which keys must not be: those stand
		// where the server writes.
		if a.APIKeys != nil && !(r.d.State && kept(a.APIKeys.File)) {
			r.read(a.APIKeys.File, a.Range)
		}
	}
	if slices.ContainsFunc(r.config.Auths, func(a definition.Auth) bool { return a.Kind == "anonymous" }) {
		r.d.Auth = false
	}
}

// mounted returns the name of the secret that is read as a file, and false where it
// is one that a container does not have.
func (r *reading) mounted(file string, where diag.Range) (name string, ok bool) {
	name = path.Base(file)
	if path.Dir(file) != container.SecretFolder || !container.IsSecret(name) {
		r.refuse(where, fmt.Sprintf("no container has the file %q", file),
			fmt.Sprintf("write %q, and put the file into %s", path.Join(container.SecretFolder, "NAME"), path.Join(r.folder, "NAME")))
		return "", false
	}
	r.know(compose.Secret{Name: name, File: path.Join(r.folder, name)})
	return name, true
}

// read has the server find a secret as a file.
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

// variables adds the values of variables that are not their defaults. Those that
// are sensitive come from who starts the deployment.
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

// secrets adds those that the server itself has a use for.
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
			r.refuse(s.Range, fmt.Sprintf("the secret %q comes from a program, which the image of mcpd does not have", s.Name), "take it from the environment (env) or from a file")
		}
	}
}

func (r *reading) upstream(u *definition.Upstream) {
	c := u.Container
	switch {
	case u.Command != nil:
		r.refuse(u.NameRange, fmt.Sprintf("the upstream %q is a program, which the image of mcpd does not have", u.Name), "run it in a container { image = … }, or write its url")
		return
	case c == nil && u.IsSelf():
		r.refuse(u.AddressRange, fmt.Sprintf("in a container this address is the container itself, where the upstream %q is not", u.Name), "run it in a container { image = … }, or write where it is reached from others")
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

// secret returns the secret block of a name, nil for no name.
func (r *reading) secret(name string) *definition.Secret {
	i := slices.IndexFunc(r.config.Secrets, func(s definition.Secret) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	return &r.config.Secrets[i]
}

// Tools returns the files of the tools folder by their paths in it, but for those
// that are hidden. It reads no more than ConfigMaps of Kubernetes hold.
func Tools(fsys fs.FS) (map[string][]byte, error) {
	listed, err := loader.New(fsys, ".").List(".")
	if err != nil {
		return nil, fmt.Errorf("read the tools: %w", err)
	}
	files, total := map[string][]byte{}, int64(0)
	for _, f := range listed {
		if total += f.Size; total > compose.MaxTools {
			return nil, fmt.Errorf("read the tools: all files together are larger than %d MiB, which is what ConfigMaps are written for", compose.MaxTools>>20)
		}
		if files[f.Name], err = fs.ReadFile(fsys, f.Name); err != nil {
			return nil, fmt.Errorf("read the tools: %w", err)
		}
	}
	return files, nil
}

// Unaccepted warns of upstreams that are pinned and that a lock does not know. What is
// deployed cannot write the file: what it takes in there lasts until it ends.
func Unaccepted(said privdiff.Snapshot, lock *lockfile.Lock) (warnings diag.List) {
	known := lock.Upstreams()
	for i := range said.Config.Upstreams {
		u := &said.Config.Upstreams[i]
		if u.Pin == definition.PinOff || !u.Offers(definition.OfferTools) || slices.Contains(known, u.Name) {
			continue
		}
		until := "until then each start trusts what it lists first"
		if u.Pin == definition.PinStrict {
			until = "until then it has no tools"
		}
		warnings = append(warnings, diag.Diagnostic{
			Severity: diag.Warning, Code: "not-accepted", Range: u.NameRange,
			Summary: fmt.Sprintf("nobody has accepted what the upstream %q lists", u.Name),
			Detail:  "run mcpd lock accept where it can be reached, commit mcpd.lock, and run mcpd compose again: " + until,
		})
	}
	return warnings
}

// used returns the names of the secrets that the server has a use for: those of
// grants, of how upstreams are reached, and of OAuth clients. What only a container
// has is not among them.
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

// grants returns what is granted anywhere in the files.
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
