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

// Upstream is an upstream block: another MCP server, whose tools, resources and prompts
// this server offers as its own. Exactly one of Command and URL is set; that of a Container
// is where it can be reached beside this server.
type Upstream struct {
	Name string
	// Command is a program and its arguments. A program with a slash in its path is
	// relative to the folder of the operator's file, as Dir is, and any other one is
	// looked for in PATH. Env are its variables, beside the few that every program gets.
	Command []string
	Dir     string
	Env     []grant.Variable
	// Container is nil where others see to it that the server runs.
	Container *Container
	// URL is that of a server over HTTP, and Grant what it is reached under. Private says
	// that the file itself calls its host one of a private network.
	URL     string
	Grant   grant.HTTP
	Private bool
	// PlaceRange is where the program of Command is written, or URL.
	AddressRange diag.Range
	// Transport is [UpstreamStreamable] or [UpstreamSSE], "" where it is found out.
	Transport string
	// Prefix is what the names of its tools and prompts begin with here.
	Prefix string
	// Offer are the kinds of what is offered: [OfferTools] and the like, each once.
	Offer []string
	// Instructions adds those of the server to our own, behind its name.
	Instructions bool
	// Escape are names, URIs and patterns of its resources, templates and prompts that are
	// offered although they hold invisible characters, with these as escapes;
	// "instructions" stands for its instructions.
	Escape []string
	// Include and Exclude are names and patterns of its tools, as it calls them itself. A
	// nil Include is all of them.
	Include, Exclude []Name
	// Rename maps names of its tools and prompts, as it calls them itself, to those that
	// they have here, to which no prefix is added.
	Rename map[string]string
	// RenameRanges are the places of the entries of Rename, by their names here.
	RenameRanges map[string]diag.Range
	Overrides    []Override
	// Pin is [PinFirst], [PinStrict] or [PinOff]: which of its tools are served, as what was
	// accepted of them says.
	Pin string
	// Lazy has it reached when it is called first, and not before: until then its tools are
	// those that were accepted.
	Lazy bool
	// Ask is what it may ask of the clients of its calls.
	Ask grant.Ask
	// Bounds are those of its calls.
	Bounds
	AskTimeout time.Duration
	// Start is how long it may take until it is ready, 0 for the default. MaxMessage is
	// what it may send at once, in bytes, 0 for the default.
	Start      time.Duration
	MaxMessage int64
	// Labels are those of all that it offers.
	Labels map[string]string

	Range, NameRange diag.Range
	Hashes
}

// Override is an override block: what is said of a tool in the place of what its server
// says. Nil members leave that as it is.
type Override struct {
	// Tool is its name, as the server calls it.
	Tool                                         string
	Title, Description                           *string
	ReadOnly, Destructive, Idempotent, OpenWorld *bool
	Labels                                       map[string]string
	// Cache is nil where each call reaches the server.
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
	// PinFirst accepts all that is there when the server is first seen, and nothing later.
	PinOnFirstUse = "first"
	// PinStrict accepts nothing that nobody has accepted.
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

// Gives reports whether the block gives something of the server a name.
func (u *Upstream) HasAlias(name string) bool {
	for _, given := range u.Rename {
		if given == name {
			return true
		}
	}
	return false
}

// RenamedAt returns where the block gives something of the server a name: the entry of
// Rename, as far as that has a place.
func (u *Upstream) AliasRange(name string) diag.Range {
	if at, written := u.RenameRanges[name]; written {
		return at
	}
	return u.NameRange
}

// Renamed returns what a tool or a prompt is called here that the server calls name.
func (u *Upstream) LocalName(name string) string {
	if renamed, ok := u.Rename[name]; ok {
		return renamed
	}
	return u.Prefix + name
}

// Includes reports whether a tool is offered that the server calls name.
func (u *Upstream) Includes(name string) bool {
	return u.Offers(OfferTools) && MatchesAny(u.Include, name) && (u.Exclude == nil || !MatchesAny(u.Exclude, name))
}

// Offers reports whether what is of a kind is offered.
func (u *Upstream) Offers(kind string) bool { return slices.Contains(u.Offer, kind) }

// Escapes reports whether something is offered with its invisible characters as escapes
// that the server calls name.
func (u *Upstream) Escapes(name string) bool {
	return slices.ContainsFunc(u.Escape, func(pattern string) bool { return wildcard.Matches(pattern, name) })
}

// Override returns what the file says of a tool that the server calls name; nil for
// nothing.
func (u *Upstream) Override(name string) *Override {
	for i := range u.Overrides {
		if u.Overrides[i].Tool == name {
			return &u.Overrides[i]
		}
	}
	return nil
}

// Reach has the upstream be at a URL, or says what is wrong with that. Whoever writes
// http:// means a host of a private network or of this machine: such a name is believed
// to lead there.
func (u *Upstream) SetURL(text string, private bool) (problem, detail string) {
	const form = `write it as in "https://mcp.example.com/mcp"`
	at, err := url.Parse(text)
	switch {
	case err != nil || at.Host == "" || at.Opaque != "" || at.Scheme != "https" && at.Scheme != "http" || !IsHostName(HostOf(at)) || strings.Contains(at.Host, "*"):
		return "this is not the URL of a server", form
	case !isPort(at.Port()):
		return "the URL has a port that no server has", "a port is a number from 1 to 65535"
	case at.User != nil:
		return "the URL holds a user or a password", `what is secret stands in a header block, as in header "Authorization" { value = "Bearer ${secret.NAME}" }`
	case at.Fragment != "" || strings.Contains(text, "#"):
		return "the URL has a part behind #, which no server sees", "remove that part"
	}
	addr, _ := netip.ParseAddr(at.Hostname())
	u.URL = text
	u.Grant = grant.HTTP{
		Name: "upstream." + u.Name, Hosts: []string{strings.ToLower(grant.HostOf(at))}, Methods: []string{"GET", "POST", "DELETE"},
		PrivateNetworks: private || at.Scheme == "http" || IsLoopback(at.Hostname()) || addr.IsPrivate(),
	}
	return "", ""
}

// isPort reports whether a server may have the port of a URL, "" being that of its scheme.
func isPort(port string) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	return port == "" || err == nil && n > 0
}

// NewUpstream returns the upstream of a URL without a block, such as one that the command
// line names. origin is where it is named, for diagnostics.
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

// WithoutPrefix returns an upstream of [NewUpstream] whose tools and prompts have the names
// here that it gives them itself.
func (u Upstream) WithoutPrefix() Upstream {
	h := sha256.New()
	h.Write(u.Hash[:])
	WriteField(h, "without prefix")
	u.Prefix, u.Hash = "", Hash(h.Sum(nil))
	u.Semantic = u.Hash
	return u
}

// Here reports whether the URL is of the machine that asks for it, which for a server in a
// container is the container itself.
func (u *Upstream) IsSelf() bool { return isSelfHost(u.host()) }

// Unencrypted returns a header with a secret in it that is sent over plain HTTP, to a host
// that nothing says is of a private network: "" for none. A container is where nobody else is.
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

// host returns that of the URL, in lower case; "" of none.
func (u *Upstream) host() string {
	at, err := url.Parse(u.URL)
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(strings.ToLower(at.Hostname()), ".")
}

// isSelf reports whether a host is that of whoever asks for it.
func isSelfHost(host string) bool {
	addr, _ := netip.ParseAddr(host)
	return IsLoopback(host) || strings.HasSuffix(host, ".localhost") || addr.Unmap().IsLoopback() || addr.Unmap().IsUnspecified()
}

// privateDomains are those in which the Internet has no names: RFC 6762 and RFC 8375, what
// ICANN has set aside in 2024, and the short names of services of Kubernetes.
var privateDomains = []string{".local", ".home.arpa", ".internal", ".svc"}

// isPrivate reports whether nobody else than somebody of a private network, or of this
// machine, can have a host.
func isPrivateHost(host string) bool {
	addr, err := netip.ParseAddr(host)
	if err == nil {
		addr = addr.Unmap()
		return isSelfHost(host) || addr.IsPrivate() || addr.IsLinkLocalUnicast()
	}
	return isSelfHost(host) || !strings.Contains(host, ".") ||
		slices.ContainsFunc(privateDomains, func(domain string) bool { return strings.HasSuffix(host, domain) })
}

// Container is a container block: how the server of an upstream is run beside this
// one, which reaches it by its host name. Zero members are not said.
type Container struct {
	Image string
	Port  int
	// Path is that of its MCP endpoint, with [container.DefaultPath] filled in.
	Path string
	// Command takes the place of the command of the image, behind its entry point.
	Command []string
	// Env are its variables. The value of each is one literal, or one secret that comes
	// from the environment.
	Env []grant.Variable
	// Reads are the names of secrets that it reads as files.
	Reads    []string
	User     int
	Internet bool
	// Health is a program of the image, with its arguments.
	Health []string
	Memory int64 // bytes
	CPU    int   // thousandths of a processor
	// Writable are folders that are empty when it starts.
	Writable []string
	Volumes  []ContainerVolume
	Range    diag.Range
}

// ContainerVolume is a volume block: a folder that outlives its container. Those of one
// name are one volume, of one Host and Size.
type ContainerVolume struct {
	Name, Target string
	// Host is a path of the machine on which Compose runs, "" for a volume of its own.
	Host      string
	ReadOnly  bool
	Size      int64 // bytes
	NameRange diag.Range
}

// DefaultUpstreamTimeout is the timeout of calls of an upstream that does not say.
const DefaultUpstreamTimeout = 30 * time.Second
