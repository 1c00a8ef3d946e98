package host

import (
	"encoding/json"

	"github.com/mcpd/mcpd/internal/host/execs"
	"github.com/mcpd/mcpd/internal/host/files"
	"github.com/mcpd/mcpd/internal/host/sqldb"
	"github.com/mcpd/mcpd/internal/language/grant"
)

// Grants are what a body may use, made ready when it is loaded, so that its runs read no
// pattern and no statement. The runs share them, and nothing changes them.
type Grants struct {
	HTTP      map[string]grant.HTTP
	KV        map[string]grant.KV
	Folders   []grant.FS
	Variables []string // of the environment
	Exec      []execs.Program
	Databases []sqldb.Database
	// Readable are the names of the secrets that the body may read.
	ReadableSecrets []string
	// Callable are the names and patterns of the tools that the body may call.
	CallableTools []string
	// ModuleOptions are what grants say to modules, by the names of these.
	ModuleOptions map[string]json.RawMessage
}

// NewGrants returns what a set of grants, with the places that its paths lead to, lets a
// body use. Whom a body may ask is said by [Asking].
func NewGrants(set grant.Set) *Grants {
	g := &Grants{
		HTTP: map[string]grant.HTTP{}, KV: map[string]grant.KV{}, Folders: set.FS, Variables: set.Env, ReadableSecrets: set.Secrets, CallableTools: set.Call, ModuleOptions: map[string]json.RawMessage{},
	}
	for _, http := range set.HTTP {
		g.HTTP[http.Name] = http
	}
	for _, kv := range set.KV {
		g.KV[kv.Name] = kv
	}
	for _, m := range set.Modules {
		g.ModuleOptions[m.Name] = m.Options
	}
	for _, program := range set.Exec {
		g.Exec = append(g.Exec, execs.Compile(program))
	}
	for _, database := range set.SQL {
		g.Databases = append(g.Databases, sqldb.Compile(database))
	}
	return g
}

// Grant gives the run what its body is granted. What it reads and writes of files is counted
// from here on. Nil grants nothing.
func (h *RunHost) Grant(g *Grants) {
	if h.Grants = g; g == nil {
		return
	}
	for _, folder := range g.Folders {
		h.folders = append(h.folders, files.Open(folder))
	}
}
