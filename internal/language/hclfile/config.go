package hclfile

import "github.com/mcpd/mcpd/diag"

// Config is what the operator's file says, defaults filled in.
type Config struct {
	Server Server
	Listen Listen
	// Auths are the auth blocks, nil where there are none: then nobody has to prove
	// anything.
	Auths   []Auth
	Reload  Reload
	Limits  Limits
	Ceiling *Ceiling
	// Audit is nil when nothing is written down.
	Audit     *Audit
	Variables map[string]Variable
	Secrets   []Secret
	Policies  []Policy
	// RateLimits are the limit blocks; Limits is the limits block.
	RateLimits []Limit
	Hooks      []Hook
	Upstreams  []Upstream
	// Codeact is nil where agents may write no code.
	Codeact *Codeact
	Range   diag.Range
	// Incomplete says that the file may say more: a block could not be parsed, or
	// the whole file.
	Incomplete bool
}

// The values of [Server.Mode].
const (
	Development = "development"
	Production  = "production"
)

// The values of [Server.DefaultDecision].
const (
	DecideAllow = "allow"
	DecideDeny  = "deny"
)

// Server is the server block.
type Server struct {
	Name, Title, Version, Description, Instructions string
	// Mode is [Development] or [Production].
	Mode string
	// DefaultDecision is what becomes of a call that no policy covers:
	// [DecideAllow] or [DecideDeny]; deny is implied by production mode.
	DefaultDecision string
	// ExposeTraces tells callers where in the files a body failed. Never in
	// production mode.
	ExposeTraces bool
	// LenientLifecycle is set by strict_lifecycle = false: sessions are served
	// before their clients have sent notifications/initialized.
	LenientLifecycle bool
	Icons            []Icon
	Range            diag.Range
}

// Listen is the listen block.
type Listen struct {
	// Address is host:port, or "unix:" and an absolute path, "" when the file
	// does not say.
	Address      string
	AddressRange diag.Range
	// Hosts are names that requests may carry beside the loopback ones.
	Hosts []string
	// Origins are the browser origins that may send requests.
	Origins []string
	// TLS is nil where connections are not encrypted.
	TLS   *ListenTLS
	Range diag.Range
}

// Reload is the reload block.
type Reload struct {
	// Watch is true unless the file says otherwise.
	Watch        bool
	RequireTests bool
	Range        diag.Range
}

// Limits is the limits block.
type Limits struct {
	// Concurrency is how many calls run at once; 0 means the default.
	Concurrency int
	// Memory is what a process that runs bodies may have, in bytes; 0 means the
	// default.
	Memory int64
	Range  diag.Range
}

// Ceiling is the ceiling block: nothing a tool file grants can exceed it.
type Ceiling struct {
	// HTTPHosts are "host:port", in which * matches any run of characters. Nil
	// is no bound; an empty list allows no host.
	HTTPHosts []Name
	// PrivateNetworks are "host:port" as in HTTPHosts: the hosts of grants that
	// reach private networks. Nil is no bound; an empty list allows no such grant.
	PrivateNetworks []Name
	// FSRoots are absolute paths, within which roots lie. Nil is no bound; an
	// empty list allows no root.
	FSRoots []Name
	// Env are names of variables, in which * matches any run of characters. Nil
	// is no bound; an empty list allows none.
	Env []Name
	// Ask is what grants may ask of clients. Nil is no bound; an empty list
	// allows nothing.
	Ask []Name
	// KV is which scopes grants of kept values may have. Nil is no bound; an
	// empty list allows none.
	KV []Name
	// ExecPaths are absolute paths of programs, in which * matches any run of
	// characters. Nil is no bound; an empty list allows no program.
	ExecPaths []Name
	// SQLDrivers are the databases that grants may be of, SQLRoots absolute paths
	// within which SQLite files and their roots lie, and SQLHosts "host:port" of
	// PostgreSQL, in which * matches any run of characters. Nil is no bound; an
	// empty list allows none.
	SQLDrivers, SQLRoots, SQLHosts []Name
	// Modules are those of the embedding program, in whose names * matches any run
	// of characters. Nil is no bound; an empty list allows none.
	Modules []Name
	Bounds
	Range diag.Range
}
