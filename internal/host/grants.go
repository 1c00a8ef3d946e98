package host

import (
	"encoding/json"

	"github.com/mcpd/mcpd/internal/host/execs"
	"github.com/mcpd/mcpd/internal/host/files"
	"github.com/mcpd/mcpd/internal/host/sqldb"
	"github.com/mcpd/mcpd/internal/language/grant"
)

// Grants are the compiled grants of a script. They are compiled when the script is loaded, and
// are immutable and shared by its runs.
type Grants struct {
	HTTP      map[string]grant.HTTP
	KV        map[string]grant.KV
	Folders   []grant.FS
	Variables []string // names of environment variables
	Exec      []execs.Program
	Databases []sqldb.Database
	// ReadableSecrets are the names of the secrets that the script may read.
	ReadableSecrets []string
	// CallableTools are the names and patterns of the tools that the script may call.
	CallableTools []string
	// ModuleOptions are the options of module grants, by module name.
	ModuleOptions map[string]json.RawMessage
}

// NewGrants compiles grants with resolved paths. Input requests are granted by [InputPolicy]
// instead.
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

// Grant sets the grants of the run and starts counting file bytes. Nil grants nothing.
func (h *RunHost) Grant(g *Grants) {
	if h.Grants = g; g == nil {
		return
	}
	for _, folder := range g.Folders {
		h.folders = append(h.folders, files.Open(folder))
	}
}
