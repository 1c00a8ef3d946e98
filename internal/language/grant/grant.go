// Package grant holds the content of allow blocks as plain data with a content hash. It grants
// nothing itself: the brokers under internal/host use it.
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

// Set is everything that an allow block grants. The zero Set grants nothing.
type Set struct {
	HTTP []HTTP `json:"http,omitempty"`
	FS   []FS   `json:"fs,omitempty"`
	// Env are the names of granted environment variables.
	Env []string `json:"env,omitempty"`
	// Secrets are the names of the secrets that a script may read.
	Secrets []string `json:"secrets,omitempty"`

	KV   []KV   `json:"kv,omitempty"`
	Exec []Exec `json:"exec,omitempty"`
	SQL  []SQL  `json:"sql,omitempty"`
	// Ask is nil if the script may not send input requests.
	Ask *Ask `json:"ask,omitempty"`
	// Call are names and patterns of callable tools, with * as wildcard.
	Call []string `json:"call,omitempty"`
	// Modules are objects of the program that embeds mcpd.
	Modules []Module `json:"modules,omitempty"`
}

// IsEmpty reports whether the set grants nothing.
func (s *Set) IsEmpty() bool {
	return s.Ask == nil && len(s.HTTP)+len(s.FS)+len(s.Env)+len(s.Secrets)+len(s.KV)+len(s.Exec)+len(s.SQL)+len(s.Call)+len(s.Modules) == 0
}

// Ask permits a script to send input requests to the client, for a person or a model. At least
// one of Elicit, Sample and Roots is set.
type Ask struct {
	Elicit bool `json:"elicit,omitempty"`
	Sample bool `json:"sample,omitempty"`
	Roots  bool `json:"roots,omitempty"`
	// MaxRounds bounds the input requests of one call; 0 means the default.
	MaxRounds int `json:"max_rounds,omitempty"`
	// MaxTokens bounds the tokens of one sample; 0 means the default.
	MaxTokens int `json:"max_tokens,omitempty"`
}

// The names of the kinds of input requests, and of their script objects.
const (
	Elicit = "elicit"
	Sample = "sample"
	Roots  = "roots"
)

// Names returns the granted kinds.
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

// Module permits a script to call functions of the program that embeds mcpd, as the object
// modules.NAME.
type Module struct {
	Name string `json:"name"`
	// Options are the arguments of the block, as a JSON object.
	Options json.RawMessage `json:"options"`
}

// HTTP permits a script to send requests to the listed hosts, as the object http.NAME.
type HTTP struct {
	Name string `json:"name"`
	// Hosts are "host:port". A host that starts with "*." matches every name below the domain.
	// The port is never empty.
	Hosts []string `json:"hosts"`
	// Methods are upper case. Empty means GET and HEAD.
	Methods []string `json:"methods,omitempty"`
	// Paths are patterns with * as wildcard. Empty means any path.
	Paths []string `json:"paths,omitempty"`
	// Headers are set on every request at egress. A script cannot read or replace them.
	Headers []Header `json:"headers,omitempty"`
	// MaxResponse is in bytes; 0 means [DefaultMaxResponse].
	MaxResponse int64 `json:"max_response,omitempty"`
	// Timeout bounds one request; 0 means only the deadline of the call.
	Timeout time.Duration `json:"timeout,omitempty"`
	// Redirects is the maximum number of followed redirects. 0 returns the redirect response.
	Redirects int `json:"redirects,omitempty"`
	// PrivateNetworks permits private, loopback and link-local addresses.
	PrivateNetworks bool `json:"private_networks,omitempty"`
}

// HostOf returns the host of a URL in the form of [HTTP.Hosts], with the default port of the
// scheme if it has none.
func HostOf(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"https": "443", "http": "80"}[u.Scheme]
	}
	return strings.TrimSuffix(u.Host, ":"+u.Port()) + ":" + port
}

// DefaultMaxResponse is the default of MaxResponse in [HTTP].
const DefaultMaxResponse = 4 << 20

// Header is a header that egress sets.
type Header struct {
	Name  string `json:"name"`
	Value Value  `json:"value"`
}

// Value is text that may contain secrets, which are resolved only at the point of use.
type Value struct {
	Parts []Part `json:"parts"`
}

// Part is a part of a [Value]: exactly one of its fields is set.
type Part struct {
	Literal string `json:"literal,omitempty"`
	// Secret is the name of a secret block.
	Secret string `json:"secret,omitempty"`
	// Base64 is a value to encode in standard base64.
	Base64 *Value `json:"base64,omitempty"`
}

// WithSecrets returns the grant with the names of secrets replaced by keys. It returns h itself
// if there are none.
func (h HTTP) WithSecrets(keys map[string]string) HTTP {
	for i := range h.Headers {
		value, changed := h.Headers[i].Value.withSecrets(keys)
		if !changed {
			continue
		}
		h.Headers = slices.Clone(h.Headers)
		h.Headers[i].Value = value
	}
	return h
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

// Text returns the value with its secrets resolved. Use the result only where the value is
// sent.
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

// EachSecret calls do with the name of every secret in the value.
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

// Hash returns a hash of the whole grant. Grants with the same hash give the same privileges;
// values of secrets are not included.
func (h HTTP) Hash() [sha256.Size]byte { return hash(h) }

// Hash returns a hash of the whole set.
func (s Set) Hash() [sha256.Size]byte { return hash(s) }

func hash(v any) [sha256.Size]byte { return sha256.Sum256(encode(v)) }

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("grant: plain data did not encode: " + err.Error())
	}
	return b
}

// privateSuffixes are top-level names that cannot be registered (RFC 6761, RFC 6762, and the
// ICANN resolution of 2024-07-29): the operator of the network assigns names below them.
var privateSuffixes = []string{"internal", "local", "localhost", "test", "example", "invalid"}

// countryCategories are second-level names below which many countries sell names: co.uk,
// com.au, or.jp.
var countryCategories = []string{"ac", "co", "com", "edu", "go", "gob", "gouv", "gov", "ltd", "me", "mil", "ne", "net", "nom", "or", "org", "plc", "sch"}

// sharedAtAnyDepth are domains below which anyone can have names at any depth: names that
// encode an address, and a cloud with a level for each region and service.
var sharedAtAnyDepth = []string{"amazonaws.com", "nip.io", "sslip.io", "xip.io", "traefik.me", "lvh.me", "localtest.me"}

// sharedDomains are hosting domains directly below which anyone can get a name.
var sharedDomains = []string{
	"cloudfront.net", "elasticbeanstalk.com", "azurewebsites.net", "cloudapp.azure.com", "blob.core.windows.net", "azureedge.net",
	"appspot.com", "run.app", "web.app", "firebaseapp.com", "cloudfunctions.net", "storage.googleapis.com", "googleusercontent.com", "blogspot.com",
	"github.io", "gitlab.io", "githubusercontent.com", "pages.dev", "workers.dev", "r2.dev", "trycloudflare.com", "vercel.app", "netlify.app", "herokuapp.com",
	"onrender.com", "fly.dev", "deno.dev", "surge.sh", "glitch.me", "repl.co", "ngrok.io", "ngrok.app", "ngrok-free.app", "loca.lt", "duckdns.org", "dyndns.org", "no-ip.org",
	"ddns.net", "supabase.co", "wordpress.com", "myshopify.com", "wixsite.com",
}

// SharedDomain returns the domain of a host pattern with a port if anyone can get a name below
// it, such as com for "*.com:443", and "" otherwise. It detects the categories of countries by
// their form and other domains by a list, which cannot be complete.
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

// FS permits a script to use the files below one directory, as the object fs.NAME.
type FS struct {
	Name string `json:"name"`
	// Root is the directory as written in the granting file: absolute, or relative if that file
	// is not on disk and the grant cannot be used.
	Root string `json:"root"`
	// Relative means that the file gives the directory relative to itself.
	Relative bool `json:"-"`
	// ResolvedPath is the absolute path without symbolic links, when the grant was checked. It
	// is empty if there is no directory.
	ResolvedPath string `json:"real,omitempty"`
	// Write permits writing and removing files.
	Write bool `json:"write,omitempty"`
	// MaxFile bounds one read or written file, and MaxTotal all reads and writes of a call, in
	// bytes; 0 means the default of the broker.
	MaxFile  int64 `json:"max_file,omitempty"`
	MaxTotal int64 `json:"max_total,omitempty"`
}

// The default limits of [FS].
const (
	defaultMaxFile  = 1 << 20
	defaultMaxTotal = 10 << 20
)

// Limits returns the limits for one file and for one call.
func (f FS) Limits() (file, total int64) {
	file, total = f.MaxFile, f.MaxTotal
	if total <= 0 {
		total = max(defaultMaxTotal, file)
	}
	if file <= 0 {
		file = min(defaultMaxFile, total)
	}
	return file, total
}

// The scopes of a [KV]: the calls that share values.
const (
	// ScopeTool shares values only in the definition with the grant.
	ScopeTool = "tool"
	// ScopePrincipal shares values among the calls of one authenticated principal.
	ScopePrincipal = "principal"
	// ScopeSession shares values among the calls of one MCP session.
	ScopeSession = "session"
	// ScopeServer shares values among all definitions that name them.
	ScopeServer = "server"
)

// Scopes returns all scopes; the narrowest scopes without requirements on the caller come
// first.
func Scopes() []string { return []string{ScopeTool, ScopePrincipal, ScopeSession, ScopeServer} }

// MaxKey bounds a key of a [KV], in bytes.
const MaxKey = 512

// KV permits a script to store values under keys, as the object kv.NAME.
type KV struct {
	Name  string `json:"name"`
	Scope string `json:"scope"`
	// TTL is the maximum lifetime of a value; 0 means until it is removed.
	TTL time.Duration `json:"ttl,omitempty"`
	// MaxKeys bounds the number of keys, MaxValue the JSON of one value in bytes, and MaxTotal
	// all keys and values in bytes.
	MaxKeys  int   `json:"max_keys"`
	MaxValue int64 `json:"max_value"`
	MaxTotal int64 `json:"max_total"`
}

// The drivers of an [SQL].
const (
	SQLite     = "sqlite"
	PostgreSQL = "postgres"
)

// SQL permits a script to run the named statements on a database, as the object sql.NAME.
type SQL struct {
	Name   string `json:"name"`
	Driver string `json:"driver"`
	// DSN is the address of a PostgreSQL database. Its secrets are resolved when a connection
	// is opened.
	DSN Value `json:"dsn,omitzero"`
	// Address is the host:port of DSN, or empty if a secret contains it.
	Address string `json:"address,omitempty"`
	// Path is a SQLite file, or the directory of the files that calls choose. It is absolute,
	// or relative if the granting file is not on disk.
	Path string `json:"path,omitempty"`
	// Relative means that the file gives Path relative to itself.
	Relative bool `json:"-"`
	// ResolvedPath is the absolute path without symbolic links, when the grant was checked. It
	// is empty if it does not exist.
	ResolvedPath string `json:"real,omitempty"`
	// PathFromCall means that each call chooses a file below Path that matches one of Glob.
	PathFromCall bool     `json:"chosen,omitempty"`
	Glob         []string `json:"glob,omitempty"`
	// Write permits statements that change rows.
	Write bool `json:"write,omitempty"`
	// MaxRows bounds the rows that a statement returns.
	MaxRows    int         `json:"max_rows"`
	Statements []Statement `json:"statements"`
}

// Statement is a statement that a script runs by name.
type Statement struct {
	Name  string `json:"name"`
	Query string `json:"query"`
}

// DefaultMaxRows is the default of MaxRows in [SQL].
const DefaultMaxRows = 1000

// Hash returns a hash of the whole grant; values of secrets are not included.
func (s SQL) Hash() [sha256.Size]byte { return hash(s) }

// WithSecrets returns the grant with the names of secrets replaced by keys.
func (s SQL) WithSecrets(keys map[string]string) SQL {
	s.DSN, _ = s.DSN.withSecrets(keys)
	return s
}
