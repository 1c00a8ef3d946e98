package hclfile

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/hashicorp/hcl/v2/hclsyntax"

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
	PlaceRange diag.Range
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
	// renamed are the places of the entries of Rename, by their names here.
	renamed   map[string]diag.Range
	Overrides []Override
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
	PinFirst = "first"
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

var offerKinds = []string{OfferTools, OfferResources, OfferPrompts}

const (
	// DefaultUpstreamTimeout is the timeout of calls of an upstream that does not say.
	DefaultUpstreamTimeout = 30 * time.Second
	// maxMessage bounds what an upstream may send at once, in bytes.
	maxMessage = 64 << 20
	// maxCommand bounds the words of a command.
	maxCommand = 256
)

// Gives reports whether the block gives something of the server a name.
func (u *Upstream) Gives(name string) bool {
	for _, given := range u.Rename {
		if given == name {
			return true
		}
	}
	return false
}

// RenamedAt returns where the block gives something of the server a name: the entry of
// Rename, as far as that has a place.
func (u *Upstream) RenamedAt(name string) diag.Range {
	if at, written := u.renamed[name]; written {
		return at
	}
	return u.NameRange
}

// Renamed returns what a tool or a prompt is called here that the server calls name.
func (u *Upstream) Renamed(name string) string {
	if renamed, ok := u.Rename[name]; ok {
		return renamed
	}
	return u.Prefix + name
}

// Includes reports whether a tool is offered that the server calls name.
func (u *Upstream) Includes(name string) bool {
	return u.Offers(OfferTools) && Covers(u.Include, name) && (u.Exclude == nil || !Covers(u.Exclude, name))
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

// upstreams decodes the upstream blocks, whose containers may have some of the secrets.
func (d *decoder) upstreams(all []*hclsyntax.Block, secrets []Secret) []Upstream {
	var upstreams []Upstream
	taken, n := named{}, neighbours{secrets: secrets, hosts: map[string]*hclsyntax.Block{}, volumes: map[string]ContainerVolume{}}
	for _, b := range all {
		if b.Type != "upstream" {
			continue
		}
		only := d.claim(taken, b)
		if u := d.upstream(b, &n); only { // the tools of a second one would be mistakes, too
			upstreams = append(upstreams, u)
		}
	}
	return upstreams
}

func (d *decoder) upstream(b *hclsyntax.Block, n *neighbours) Upstream {
	r := rules["upstream"]
	at, nameAt := d.definition(b, "the upstream")
	u := Upstream{Name: b.Labels[0], Range: at, NameRange: nameAt}
	if inner := first(b.Body, "container"); inner != nil {
		u.Container = d.container(inner, b, n)
	}
	switch d.exactlyOne(b, r, "the upstream is nowhere", "command", "url", "container") {
	case "command":
		d.upstreamCommand(b, &u)
	case "url":
		d.upstreamURL(b, &u)
	case "container":
		d.upstreamContainer(b, &u)
	}
	d.upstreamNames(b, &u)
	d.upstreamAsk(b, &u)
	d.overridesCacheable(b, &u)
	u.Bounds = d.boundsAway(b)
	if _, written := u.Ranges["timeout"]; !written {
		u.Timeout = DefaultUpstreamTimeout
	}
	u.AskTimeout = d.durationWithin(b.Body, "ask_timeout", DefaultAskTimeout, maxAskTimeout)
	u.Start = d.duration(b.Body, "start_timeout", 0)
	u.Pin = PinFirst
	if pin, ok := d.oneOf(b.Body, "pin", PinFirst, PinStrict, PinOff); ok {
		u.Pin = pin
	}
	u.Lazy, _ = d.boolean(b.Body, "lazy", false)
	if u.Lazy && (u.Pin == PinOff || !u.Offers(OfferTools)) {
		d.fail("contradiction", d.f.rng(b.Body.Attributes["lazy"].Expr.Range()), "nobody knows what a lazy upstream offers whose tools are not pinned",
			"remove lazy, so that it is asked at the start, or have its tools offered and pinned")
	}
	u.MaxMessage = d.size(b.Body, "max_message", maxMessage)
	u.Labels = d.textMap(b.Body, "labels")
	u.Hashes = d.hashes()
	return u
}

// upstreamCommand decodes how the server is run.
func (d *decoder) upstreamCommand(b *hclsyntax.Block, u *Upstream) {
	command, ok := d.strings(b.Body, "command")
	where := d.f.rng(b.Body.Attributes["command"].Expr.Range())
	u.Command, u.PlaceRange = textsOf(command), where
	if len(command) > 0 {
		u.PlaceRange = d.f.rng(command[0].where)
	}
	switch {
	case !ok:
	case len(command) == 0 || u.Command[0] == "":
		d.fail("bad-value", where, "the command names no program", "write the program and its arguments, such as [\"github-mcp-server\", \"stdio\"]")
	case len(command) > maxCommand || slices.ContainsFunc(u.Command, func(word string) bool { return strings.ContainsRune(word, 0) }):
		d.fail("bad-value", where, "this cannot be a command", fmt.Sprintf("write at most %d words, without NUL", maxCommand))
	case strings.ContainsFunc(u.Command[0], unicode.IsSpace) && len(command) == 1:
		d.fail("bad-value", where, "the command is one word with blanks in it, and no shell takes it apart", "write each word for itself, as in [\"npx\", \"-y\", \"…\"]")
	}
	u.Dir = d.filled(b.Body, "dir", "write the folder that the program runs in, or remove it")
	u.Env = d.environment(b.Body, d.upstreamVariable, d.privateText)
	for _, name := range []string{"transport", "private_networks"} {
		d.onlyWith(b, name, "url")
	}
	for _, inner := range blocks(b.Body, rules["upstream"]) {
		if inner.Type == "header" {
			d.fail("contradiction", d.f.rng(inner.DefRange()), "a program gets no headers", "pass it what it needs in \"env\"")
		}
	}
}

// onlyWith reports an argument that belongs to another one, which is not there.
func (d *decoder) onlyWith(b *hclsyntax.Block, name, other string) {
	if attr := b.Body.Attributes[name]; attr != nil {
		d.fail("contradiction", d.f.rng(attr.NameRange), fmt.Sprintf("%q belongs to an upstream with %q", name, other), "remove it")
	}
}

// upstreamVariable returns the name of a variable of an upstream's program, and false for
// one that it reports. The operator may have an interpreter look for code elsewhere.
func (d *decoder) upstreamVariable(x hclsyntax.Expression, taken named) (string, bool) {
	v, problems := x.Value(nil)
	if problems.HasErrors() || !hasKind(v, stringKind) || !isIdentifier(v.AsString()) {
		d.fail("bad-name", d.f.rng(x.Range()), "this is not the name of a variable", "use letters, digits and _, and no digit first, as in { GITHUB_TOKEN = secret.github }")
		return "", false
	}
	return v.AsString(), d.claimName(taken, v.AsString(), x.Range(), "%q stands twice in \"env\"", v.AsString())
}
