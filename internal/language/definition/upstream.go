package definition

import (
	"crypto/sha256"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/base/wildcard"
	"github.com/mcpd/mcpd/internal/language/grant"
)

// Upstream is an upstream block: another MCP server. This server provides its tools, resources
// and prompts. Exactly one of Command and URL is set. The URL of a Container is its address on
// the network of this server.
type Upstream struct {
	Name string
	// Command is a program and its arguments. A program with a slash, and Dir, are relative to
	// the directory of the config file; any other program is found in PATH. Env are additional
	// environment variables.
	Command []string
	Dir     string
	Env     []grant.Variable
	// Container is nil if the server is not run in a container of mcpd.
	Container *Container
	// URL is the address of a server over HTTP, and Grant the grant to reach it. Private means
	// that the file declares the host private.
	URL     string
	Grant   grant.HTTP
	Private bool
	// AddressRange is the range of the program in Command, or of URL.
	AddressRange diag.Range
	// Transport is [UpstreamStreamable] or [UpstreamSSE]; empty means detect it.
	Transport string
	// Prefix is added to the names of its tools and prompts.
	Prefix string
	// Offer are the provided kinds: [OfferTools] and the like, each at most once.
	Offer []string
	// Instructions appends the instructions of the server to ours, under its name.
	Instructions bool
	// Escape are names, URIs and patterns of items that are provided although they contain
	// invisible characters, which are then escaped. "instructions" matches the instructions of
	// the server.
	Escape []string
	// Include and Exclude are names and patterns of its tools, by the names of the server. A
	// nil Include matches all.
	Include, Exclude []Name
	// Rename maps the server's names of tools and prompts to local names. Renamed items get no
	// prefix.
	Rename map[string]string
	// RenameRanges are the positions of the entries of Rename, by local name.
	RenameRanges map[string]diag.Range
	Overrides    []Override
	// Pin is [PinOnFirstUse], [PinStrict] or [PinOff]. It decides whether tools must be
	// accepted before they are served.
	Pin string
	// Lazy delays the connection until the first call. Before it, the accepted tools are
	// served.
	Lazy bool
	// Ask limits the input requests of the server to the clients of its calls.
	Ask grant.Ask
	// Bounds are the limits of its calls.
	Bounds
	AskTimeout time.Duration
	// Start is the start timeout, 0 for the default. MaxMessage bounds one message of the
	// server in bytes, 0 for the default.
	Start      time.Duration
	MaxMessage int64
	// Labels are added to all its items.
	Labels map[string]string

	Range, NameRange diag.Range
	Hashes
}

// Override is an override block: it replaces metadata of a tool. Nil members change nothing.
type Override struct {
	// Tool is the name of the tool at the server.
	Tool                                         string
	Title, Description                           *string
	ReadOnly, Destructive, Idempotent, OpenWorld *bool
	Labels                                       map[string]string
	// Cache is nil if results are not cached.
	Cache *Cache
	Bounds
	Range diag.Range
}

// The values of [Upstream.Transport].
const (
	UpstreamStreamable = "streamable"
	UpstreamSSE        = "sse"
)

// The values of [Upstream.Pin].
const (
	// PinOnFirstUse accepts all tools on the first connection, and later changes only by an
	// operator.
	PinOnFirstUse = "first"
	// PinStrict serves only tools that an operator has accepted.
	PinStrict = "strict"
	// PinOff accepts everything.
	PinOff = "off"
)

// The values of [Upstream.Offer].
const (
	OfferTools     = "tools"
	OfferResources = "resources"
	OfferPrompts   = "prompts"
)

var OfferKinds = []string{OfferTools, OfferResources, OfferPrompts}

// HasAlias reports whether Rename maps an item to this local name.
func (u *Upstream) HasAlias(name string) bool {
	for _, given := range u.Rename {
		if given == name {
			return true
		}
	}
	return false
}

// AliasRange returns the range of the Rename entry for a local name, or the range of the block.
func (u *Upstream) AliasRange(name string) diag.Range {
	if at, written := u.RenameRanges[name]; written {
		return at
	}
	return u.NameRange
}

// LocalName returns the local name of a tool or prompt.
func (u *Upstream) LocalName(name string) string {
	if renamed, ok := u.Rename[name]; ok {
		return renamed
	}
	return u.Prefix + name
}

// Includes reports whether a tool is provided, by its name at the server.
func (u *Upstream) Includes(name string) bool {
	return u.Offers(OfferTools) && MatchesAny(u.Include, name) && (u.Exclude == nil || !MatchesAny(u.Exclude, name))
}

// Offers reports whether a kind of items is provided.
func (u *Upstream) Offers(kind string) bool { return slices.Contains(u.Offer, kind) }

// Escapes reports whether an item may be provided with escaped invisible characters, by its
// name at the server.
func (u *Upstream) Escapes(name string) bool {
	return slices.ContainsFunc(u.Escape, func(pattern string) bool { return wildcard.Matches(pattern, name) })
}

// Override returns the override block of a tool, by its name at the server, or nil.
func (u *Upstream) Override(name string) *Override {
	for i := range u.Overrides {
		if u.Overrides[i].Tool == name {
			return &u.Overrides[i]
		}
	}
	return nil
}

// SetURL sets the URL, or returns what is wrong with it. If the URL starts with http://, the
// operator declares the host private or local.
func (u *Upstream) SetURL(text string, private bool) (problem, detail string) {
	const form = `write it as in "https://mcp.example.com/mcp"`
	at, err := url.Parse(text)
	switch {
	case err != nil || at.Host == "" || at.Opaque != "" || at.Scheme != "https" && at.Scheme != "http" || !IsHostName(HostOf(at)) || strings.Contains(at.Host, "*"):
		return "this is not a server URL", form
	case !isPort(at.Port()):
		return "the port of the URL is invalid", "write a port from 1 to 65535"
	case at.User != nil:
		return "the URL contains a user or password", `put it in a header block, as in header "Authorization" { value = "Bearer ${secret.NAME}" }`
	case at.Fragment != "" || strings.Contains(text, "#"):
		return "servers do not receive the fragment of a URL", "remove # and the text after it"
	}
	addr, _ := netip.ParseAddr(at.Hostname())
	u.URL = text
	u.Grant = grant.HTTP{
		Name: "upstream." + u.Name, Hosts: []string{strings.ToLower(grant.HostOf(at))}, Methods: []string{"GET", "POST", "DELETE"},
		PrivateNetworks: private || at.Scheme == "http" || IsLoopback(at.Hostname()) || addr.IsPrivate(),
	}
	return "", ""
}

// isPort reports whether port is a valid port of a URL. Empty means the default of the scheme.
func isPort(port string) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	return port == "" || err == nil && n > 0
}

// NewUpstream returns the upstream for a URL without a block, such as a URL on the command
// line. origin is its source, for diagnostics.
func NewUpstream(name, address, origin string) (Upstream, error) {
	u := Upstream{
		Name: name, Prefix: name + "_", Offer: OfferKinds, Pin: PinOnFirstUse, Bounds: Bounds{Timeout: DefaultUpstreamTimeout}, AskTimeout: DefaultAskTimeout,
		NameRange: diag.Range{File: origin}, Range: diag.Range{File: origin},
	}
	if !IsName(name) {
		return u, fmt.Errorf("the name of an upstream is 1 to %d letters, digits, dots, dashes and underscores", MaxName)
	}
	if problem, detail := u.SetURL(address, false); problem != "" {
		return u, fmt.Errorf("%s; %s", problem, detail)
	}
	h := sha256.New()
	for _, field := range []string{"upstream", name, address} {
		WriteField(h, field)
	}
	u.Hash = Hash(h.Sum(nil))
	u.Semantic = u.Hash
	return u, nil
}

// WithoutPrefix returns a copy of an upstream of [NewUpstream] without a name prefix.
func (u Upstream) WithoutPrefix() Upstream {
	h := sha256.New()
	h.Write(u.Hash[:])
	WriteField(h, "without prefix")
	u.Prefix, u.Hash = "", Hash(h.Sum(nil))
	u.Semantic = u.Hash
	return u
}

// IsSelf reports whether the host of the URL is the machine of the client. For a server in a
// container, that is the container.
func (u *Upstream) IsSelf() bool { return isSelfHost(u.host()) }

// PlaintextSecretHeader returns the name of a header with a secret that is sent over plain HTTP
// to a host not known to be private, or "". The network of a container is private.
func (u *Upstream) PlaintextSecretHeader() (header string) {
	if u.Container != nil || u.Private || !strings.HasPrefix(strings.ToLower(u.URL), "http:") || isPrivateHost(u.host()) {
		return ""
	}
	i := slices.IndexFunc(u.Grant.Headers, func(h grant.Header) (secret bool) {
		h.Value.EachSecret(func(string) { secret = true })
		return secret
	})
	if i < 0 {
		return ""
	}
	return u.Grant.Headers[i].Name
}

// host returns the host of the URL in lower case, or "".
func (u *Upstream) host() string {
	at, err := url.Parse(u.URL)
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(strings.ToLower(at.Hostname()), ".")
}

// isSelfHost reports whether a host is the machine of the client.
func isSelfHost(host string) bool {
	addr, _ := netip.ParseAddr(host)
	return IsLoopback(host) || strings.HasSuffix(host, ".localhost") || addr.Unmap().IsLoopback() || addr.Unmap().IsUnspecified()
}

// privateDomains are reserved for private networks: RFC 6762, RFC 8375, the ICANN resolution of
// 2024, and service names of Kubernetes.
var privateDomains = []string{".local", ".home.arpa", ".internal", ".svc"}

// isPrivateHost reports whether a host can only exist in a private network or on this machine.
func isPrivateHost(host string) bool {
	addr, err := netip.ParseAddr(host)
	if err == nil {
		addr = addr.Unmap()
		return isSelfHost(host) || addr.IsPrivate() || addr.IsLinkLocalUnicast()
	}
	return isSelfHost(host) || !strings.Contains(host, ".") ||
		slices.ContainsFunc(privateDomains, func(domain string) bool { return strings.HasSuffix(host, domain) })
}

// Container is a container block: how to run the server of an upstream next to this one, which
// reaches it by host name. Zero means not set.
type Container struct {
	Image string
	Port  int
	// Path is the path of the MCP endpoint, with the default path filled in.
	Path string
	// Command replaces the command of the image, after its entry point.
	Command []string
	// Env are its variables. Each value is a literal, or a secret from the environment.
	Env []grant.Variable
	// Reads are the names of secrets that it reads as files.
	Reads    []string
	User     int
	Internet bool
	// Health is a program of the image with its arguments.
	Health []string
	Memory int64 // bytes
	CPU    int   // thousandths of a processor
	// Writable are directories that are empty at the start.
	Writable []string
	Volumes  []ContainerVolume
	Range    diag.Range
}

// ContainerVolume is a volume block: a directory that outlives the container. Blocks with the
// same name are the same volume and have the same Host and Size.
type ContainerVolume struct {
	Name, Target string
	// Host is a path on the machine of Compose; empty means a named volume.
	Host      string
	ReadOnly  bool
	Size      int64 // bytes
	NameRange diag.Range
}

// DefaultUpstreamTimeout is the default timeout of upstream calls.
const DefaultUpstreamTimeout = 30 * time.Second
