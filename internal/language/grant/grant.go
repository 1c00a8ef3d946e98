// Package grant is what an allow block says, as plain data with a content
// hash. It grants nothing itself: the brokers under internal/host read it.
package grant

import (
	"crypto/sha256"
	"encoding/json"
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
