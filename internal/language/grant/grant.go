// Package grant is what an allow block says, as plain data with a content
// hash. It grants nothing itself: the brokers under internal/host read it.
package grant

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Set is all that one allow block grants. The zero Set grants nothing.
type Set struct {
	HTTP []HTTP `json:"http,omitempty"`
	FS   []FS   `json:"fs,omitempty"`
	// Env are the names of the variables of the environment that are granted.
	Env []string `json:"env,omitempty"`
	// Secrets are the names of the secrets that a script may read.
	Secrets []string `json:"secrets,omitempty"`

	KV   []KV   `json:"kv,omitempty"`
	Exec []Exec `json:"exec,omitempty"`
	SQL  []SQL  `json:"sql,omitempty"`
	// Ask is nil when nobody may be asked.
	Ask *Ask `json:"ask,omitempty"`
	// Call are the names of the tools that may be called, and patterns of such
	// names, in which * stands for any run of characters.
	Call []string `json:"call,omitempty"`
	// Modules are objects of the program that embeds mcpd.
	Modules []Module `json:"modules,omitempty"`
}

// Ask lets a script ask the client of the call, and through it a person or a
// model. At least one of Elicit, Sample and Roots is set.
type Ask struct {
	Elicit bool `json:"elicit,omitempty"`
	Sample bool `json:"sample,omitempty"`
	Roots  bool `json:"roots,omitempty"`
	// MaxRounds is how often one call may ask; 0 means the default.
	MaxRounds int `json:"max_rounds,omitempty"`
	// MaxTokens is what one sample may ask for; 0 means the default.
	MaxTokens int `json:"max_tokens,omitempty"`
}

// The names of what [Ask] grants, and of the script's objects for them.
const (
	Elicit = "elicit"
	Sample = "sample"
	Roots  = "roots"
)

// Names returns what is granted.
func (a *Ask) Names() []string {
	var names []string
	if a == nil {
		return nil
	}
	for _, one := range []struct {
		name    string
		granted bool
	}{{Elicit, a.Elicit}, {Sample, a.Sample}, {Roots, a.Roots}} {
		if one.granted {
			names = append(names, one.name)
		}
	}
	return names
}

// Module lets a script call functions of the program that embeds mcpd, as the
// object modules.NAME.
type Module struct {
	Name string `json:"name"`
	// Options are the arguments of the block, a JSON object.
	Options json.RawMessage `json:"options"`
}

// HTTP lets a script send requests to named hosts, as the object http.NAME.
type HTTP struct {
	Name string `json:"name"`
	// Hosts are "host:port"; the host may begin with "*." to cover every
	// name below a domain. The port is never empty.
	Hosts []string `json:"hosts"`
	// Methods are upper case. Empty means GET and HEAD.
	Methods []string `json:"methods,omitempty"`
	// Paths are patterns in which * matches any run of characters. Empty means any path.
	Paths []string `json:"paths,omitempty"`
	// Headers are set on every request at egress; a script neither sees nor replaces them.
	Headers []Header `json:"headers,omitempty"`
	// MaxResponse is in bytes; 0 means [DefaultMaxResponse].
	MaxResponse int64 `json:"max_response,omitempty"`
	// Timeout is for one request; 0 means the deadline of the call alone.
	Timeout time.Duration `json:"timeout,omitempty"`
	// Redirects is how many are followed. 0 means that a redirect is returned as it is.
	Redirects int `json:"redirects,omitempty"`
	// PrivateNetworks lets the hosts resolve to private, loopback and link-local addresses.
	PrivateNetworks bool `json:"private_networks,omitempty"`
}

// HostOf returns the host of a URL as [HTTP.Hosts] has it: with its port, which is that
// of the scheme when the URL names none.
func HostOf(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"https": "443", "http": "80"}[u.Scheme]
	}
	return strings.TrimSuffix(u.Host, ":"+u.Port()) + ":" + port
}

// DefaultMaxResponse is MaxResponse of an [HTTP] that does not say.
const DefaultMaxResponse = 4 << 20

// Header is a header that egress sets.
type Header struct {
	Name  string `json:"name"`
	Value Value  `json:"value"`
}

// Value is text that may hold secrets, which are resolved only where it is used.
type Value struct {
	Parts []Part `json:"parts"`
}

// Part is one piece of a [Value]: exactly one of its members is set.
type Part struct {
	Literal string `json:"literal,omitempty"`
	// Secret is the name of a secret block.
	Secret string `json:"secret,omitempty"`
	// Base64 is a value that is encoded in standard base64.
	Base64 *Value `json:"base64,omitempty"`
}

// WithSecrets returns the grant with the secrets that it names replaced by those
// that keys names for them. It returns g itself when it names none.
func (g HTTP) WithSecrets(keys map[string]string) HTTP {
	for i := range g.Headers {
		value, changed := g.Headers[i].Value.withSecrets(keys)
		if !changed {
			continue
		}
		g.Headers = slices.Clone(g.Headers)
		g.Headers[i].Value = value
	}
	return g
}

func (v Value) withSecrets(keys map[string]string) (Value, bool) {
	changed := false
	parts := slices.Clone(v.Parts)
	for i, part := range parts {
		if key := keys[part.Secret]; key != "" && part.Secret != "" {
			parts[i].Secret, changed = key, true
		}
		if part.Base64 != nil {
			if inner, ok := part.Base64.withSecrets(keys); ok {
				parts[i].Base64, changed = &inner, true
			}
		}
	}
	return Value{Parts: parts}, changed
}

// Text returns the value with its secrets, which belong in the place that the value was
// written for and nowhere else.
func (v Value) Text(ctx context.Context, resolve func(ctx context.Context, secret string) (string, error)) (string, error) {
	var text strings.Builder
	for _, part := range v.Parts {
		value := part.Literal
		var err error
		switch {
		case part.Secret != "":
			value, err = resolve(ctx, part.Secret)
		case part.Base64 != nil:
			value, err = part.Base64.Text(ctx, resolve)
			value = base64.StdEncoding.EncodeToString([]byte(value))
		}
		if err != nil {
			return "", err
		}
		text.WriteString(value)
	}
	return text.String(), nil
}

// EachSecret calls do with every secret that the value names.
func (v Value) EachSecret(do func(secret string)) {
	for _, part := range v.Parts {
		if part.Secret != "" {
			do(part.Secret)
		}
		if part.Base64 != nil {
			part.Base64.EachSecret(do)
		}
	}
}

// Hash returns a hash of everything that the value says. Two grants with the
// same hash give the same power; the values of secrets are not part of it.
func (g HTTP) Hash() [sha256.Size]byte { return hash(g) }

// Hash returns a hash of everything that the set says.
func (s Set) Hash() [sha256.Size]byte { return hash(s) }

func hash(v any) [sha256.Size]byte { return sha256.Sum256(encode(v)) }

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("grant: plain data did not encode: " + err.Error())
	}
	return b
}

// ownNames are the last parts of names that nobody sells (RFC 6761, RFC 6762, and
// the resolution of ICANN of 2024-07-29): whoever runs the network gives names
// below them.
var privateSuffixes = []string{"internal", "local", "localhost", "test", "example", "invalid"}

// categories are what many countries sell names below: co.uk, com.au, or.jp.
var countryCategories = []string{"ac", "co", "com", "edu", "go", "gob", "gouv", "gov", "ltd", "me", "mil", "ne", "net", "nom", "or", "org", "plc", "sch"}

// deep are domains below which anyone has names at any depth: of names that hold an
// address, and of a cloud that has a level for each region and service.
var sharedAtAnyDepth = []string{"amazonaws.com", "nip.io", "sslip.io", "xip.io", "traefik.me", "lvh.me", "localtest.me"}

// anyones are domains right below which anyone has a name for the asking: those of
// places where people put pages and programs.
var sharedDomains = []string{
	"cloudfront.net", "elasticbeanstalk.com", "azurewebsites.net", "cloudapp.azure.com", "blob.core.windows.net", "azureedge.net",
	"appspot.com", "run.app", "web.app", "firebaseapp.com", "cloudfunctions.net", "storage.googleapis.com", "googleusercontent.com", "blogspot.com",
	"github.io", "gitlab.io", "githubusercontent.com", "pages.dev", "workers.dev", "r2.dev", "trycloudflare.com", "vercel.app", "netlify.app", "herokuapp.com",
	"onrender.com", "fly.dev", "deno.dev", "surge.sh", "glitch.me", "repl.co", "ngrok.io", "ngrok.app", "ngrok-free.app", "loca.lt", "duckdns.org", "dyndns.org", "no-ip.org",
	"ddns.net", "supabase.co", "wordpress.com", "myshopify.com", "wixsite.com",
}

// OpenDomain returns the domain of a pattern of hosts with a port below which
// anyone can have a name, as com of "*.com:443"; "" of any other. It knows the
// categories of countries by their form, and other domains by name: no list of
// these is complete.
func SharedDomain(host string) string {
	name, _, err := net.SplitHostPort(host)
	domain, below := strings.CutPrefix(name, "*.")
	if err != nil || !below {
		return ""
	}
	labels := strings.Split(domain, ".")
	last := labels[len(labels)-1]
	switch {
	case len(labels) == 1 && !slices.Contains(privateSuffixes, last),
		len(labels) == 2 && len(last) == 2 && slices.Contains(countryCategories, labels[0]),
		slices.Contains(sharedDomains, domain),
		slices.ContainsFunc(sharedAtAnyDepth, func(d string) bool { return domain == d || strings.HasSuffix(domain, "."+d) }):
		return domain
	}
	return ""
}

// FS lets a script use the files below one folder, as the object fs.NAME.
type FS struct {
	Name string `json:"name"`
	// Root is the folder as the file that grants it says: absolute, or relative
	// when that file is not on the disk and nothing can be below it.
	Root string `json:"root"`
	// Relative says that the file names the folder from where it stands itself.
	Relative bool `json:"-"`
	// Real is the absolute path of the folder without links, as it was when the
	// grant was judged. Empty means that there is no folder.
	ResolvedPath string `json:"real,omitempty"`
	// Write lets the script write and remove files, too.
	Write bool `json:"write,omitempty"`
	// MaxFile bounds one file that is read or written, and MaxTotal all that one
	// call reads and writes, in bytes; 0 means the broker's default.
	MaxFile  int64 `json:"max_file,omitempty"`
	MaxTotal int64 `json:"max_total,omitempty"`
}

// The bounds of an [FS] that does not say.
const (
	defaultMaxFile  = 1 << 20
	defaultMaxTotal = 10 << 20
)

// Bounds returns what one file, and what one call, may come to.
func (g FS) Limits() (file, total int64) {
	file, total = g.MaxFile, g.MaxTotal
	if total <= 0 {
		total = max(defaultMaxTotal, file)
	}
	if file <= 0 {
		file = min(defaultMaxFile, total)
	}
	return file, total
}

// The scopes of a [KV]: who shares the values.
const (
	// ScopeTool is the definition that holds the grant, alone.
	ScopeTool = "tool"
	// ScopePrincipal is all calls of one authenticated principal.
	ScopePrincipal = "principal"
	// ScopeSession is all calls in one MCP session.
	ScopeSession = "session"
	// ScopeServer is all that names the same values.
	ScopeServer = "server"
)

// Scopes are all scopes, the narrowest that need nothing of the caller first.
func Scopes() []string { return []string{ScopeTool, ScopePrincipal, ScopeSession, ScopeServer} }

// MaxKey is how long a key of a [KV] may be, in bytes.
const MaxKey = 512

// KV lets a script keep values under keys, as the object kv.NAME.
type KV struct {
	Name  string `json:"name"`
	Scope string `json:"scope"`
	// TTL is how long a value is kept at most; 0 means until it is removed.
	TTL time.Duration `json:"ttl,omitempty"`
	// MaxKeys bounds the keys, MaxValue the bytes of one value as JSON, and
	// MaxTotal those of all keys and values together.
	MaxKeys  int   `json:"max_keys"`
	MaxValue int64 `json:"max_value"`
	MaxTotal int64 `json:"max_total"`
}

// The drivers of an [SQL].
const (
	SQLite     = "sqlite"
	PostgreSQL = "postgres"
)

// SQL lets a script run the named statements on a database, as the object
// sql.NAME.
type SQL struct {
	Name   string `json:"name"`
	Driver string `json:"driver"`
	// DSN is where the database of PostgreSQL is. Its secrets are resolved when a
	// connection is made.
	DSN Value `json:"dsn,omitzero"`
	// Address is the host:port of DSN where the file says it, "" when a secret does.
	Address string `json:"address,omitempty"`
	// Path is of SQLite: the file, or the folder of the files that calls choose.
	// It is absolute, or relative when the granting file is not on the disk.
	Path string `json:"path,omitempty"`
	// Relative says that the file names Path from where it stands itself.
	Relative bool `json:"-"`
	// Real is the absolute path without links, as it was when the grant was
	// judged. Empty means that there is nothing.
	ResolvedPath string `json:"real,omitempty"`
	// Chosen says that each call chooses a file below Path, which one of Glob matches.
	PathFromCall bool     `json:"chosen,omitempty"`
	Glob         []string `json:"glob,omitempty"`
	// Write lets statements change rows, too.
	Write bool `json:"write,omitempty"`
	// MaxRows is how many rows a statement may answer with.
	MaxRows    int         `json:"max_rows"`
	Statements []Statement `json:"statements"`
}

// Statement is what a script runs by its name.
type Statement struct {
	Name  string `json:"name"`
	Query string `json:"query"`
}

// DefaultMaxRows is MaxRows of an [SQL] that does not say.
const DefaultMaxRows = 1000

// Hash returns a hash of everything that the value says; the values of secrets
// are not part of it.
func (g SQL) Hash() [sha256.Size]byte { return hash(g) }

// WithSecrets returns the grant with the secrets that it names replaced by those
// that keys names for them.
func (g SQL) WithSecrets(keys map[string]string) SQL {
	g.DSN, _ = g.DSN.withSecrets(keys)
	return g
}
