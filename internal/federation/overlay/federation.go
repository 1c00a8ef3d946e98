// Package overlay offers what upstream MCP servers offer as if it were our own.
//
// A [Federation] keeps a connection to each server that an upstream block names (package
// upstream), and makes of what they list [catalog.Item]s: tools, resources, templates and
// prompts, by the names and with the changes that the block wants. What cannot be offered
// is left out, with a warning that says why: a schema that the lint refuses, a name that
// no tool can have, a URI that is none. The items go through the same pipeline as all
// others; their bodies pass the call on.
//
// Tools are held to what was accepted of them (package lockfile): what a server
// lists otherwise is no item, until somebody accepts it. What a block takes in without a
// question is written to the lock file before it is served.
//
// A server is believed nothing. Its schemas are compiled by our own validator, which
// checks arguments before they leave and results before they reach anybody. What it asks
// in the midst of a call reaches the client only where the block allows it, as a question
// that bears its name and holds the members that we know. The credentials of callers do
// not reach it.
package overlay

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/internal/federation"
	"github.com/mcpd/mcpd/internal/federation/lockfile"
	"github.com/mcpd/mcpd/internal/federation/upstream"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/grant"
)

// Federation is what upstream servers offer. It is safe for concurrent use.
type Federation struct {
	// Fixed at creation.
	fleet    *upstream.Fleet
	followed *followed
	veil     Veil
	relist   func() (took time.Duration)
	update   func(uris []string)
	listed   chan struct{} // holds a token while a server offers another thing than before
	ended    chan struct{}

	begin sync.Once      // begins to tell
	told  sync.WaitGroup // waits until it is over

	mu    sync.Mutex
	known []*offer // in the order of the blocks
	pins  pins
	// judges are those of the upstreams, by their names, and accepted what was accepted of
	// them.
	judges   map[string]*judge
	accepted map[string]*offer
	late     []string // those that had not told what they offer when they were waited for
}

// offer is what was made of the listing of one server.
type offer struct {
	upstream string
	listing  *upstream.Listing
	block    definition.Hash
	lock     *lockfile.Lock
	mode     lockfile.Mode
	renamed  func(name string) string
	items    []*catalog.Item
	left     []catalog.LeftOut
	problems diag.List
	// instructions are those for models, "" for none.
	instructions string
	// first says that pinned are taken in without a question, and quarantined are what
	// somebody has to accept first.
	first       bool
	pinned      []lockfile.Tool
	quarantined []lockfile.Change
}

// Veil hides the values of secrets: a server knows those that it is given, and may repeat
// them.
type Veil interface {
	Redact(text string) string
	RedactJSON(value json.RawMessage) json.RawMessage
}

// New returns a federation of no servers. What they say, and no caller has asked for, is
// redacted.
func New(o federation.Options) *Federation {
	f := &Federation{
		veil: o.Brokers.Secrets, relist: o.Relist, update: o.Update, listed: make(chan struct{}, 1), ended: make(chan struct{}),
		pins: newPins(o.Pins, o.Logger), judges: map[string]*judge{}, accepted: map[string]*offer{},
	}
	connected := upstream.Options{
		Version: o.Version, Transport: o.Brokers.Egress.Stream, Value: func(ctx context.Context, v grant.Value) (string, error) {
			return v.Text(ctx, o.Brokers.Secrets.Resolve)
		}, Redact: f.veil.Redact,
		Environment: func() ([]string, int) { return environment(o.LookupEnv) }, Propagate: o.Propagate, Supervisor: o.Supervisor, Logger: o.Logger,
	}
	f.fleet = upstream.NewFleet(connected, func() {
		select {
		case f.listed <- struct{}{}:
		default:
		}
	}, func(name, uri string) { f.followed.updated(name, uri) })
	f.followed = &followed{fleet: f.fleet, stirred: make(chan struct{}, 1), counts: map[string]int{}, at: map[string]string{}, changed: map[string]struct{}{}}
	return f
}

// inherited are the variables that programs get beside those of their blocks: without
// them many do not find what they need, or trust nobody whom the certificates of a company
// vouch for. None of them holds a secret.
var inherited = []string{
	"HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TEMP", "TERM", "TMP", "TMPDIR", "TZ", "USER", "APPDATA", "LOCALAPPDATA", "SYSTEMROOT", "USERPROFILE",
	"NODE_EXTRA_CA_CERTS", "SSL_CERT_DIR", "SSL_CERT_FILE",
}

// environment returns the variables that programs get beside those of their blocks, as
// NAME=value, and how many servers stand before this one (see [upstream.Options]).
func environment(lookup func(name string) (string, bool)) (env []string, depth int) {
	for _, name := range inherited {
		if value, set := lookup(name); set {
			env = append(env, name+"="+value)
		}
	}
	if told, set := lookup(upstream.DepthVariable); set {
		depth, _ = strconv.Atoi(told) // of what is no number nothing is known
	}
	return env, depth
}

// Keep has the federation be of the servers of a catalog, which is the one that serves, and
// connects to them in the background.
func (f *Federation) Keep(c *catalog.Catalog) {
	places := make([]upstream.Place, len(c.Upstreams))
	f.mu.Lock()
	for i := range c.Upstreams {
		places[i] = placeOf(&c.Upstreams[i], c.SecretKeys)
		places[i].Lazy = f.pins.lazy(&c.Upstreams[i])
	}
	f.mu.Unlock()
	if len(places) > 0 {
		f.begin.Do(func() { f.told.Go(f.tell) })
	}
	f.fleet.Keep(places)
	f.followed.serve(c)
}

// settleTime is how long [Federation.Settle] waits: servers that come later are heard of
// when they do. Who is eager waits for as long as they may take to start.
const settleTime = 5 * time.Second

// errLate is why nothing is known of a server that was waited for.
var errLate = fmt.Errorf("it has not told within %s what it offers", settleTime)

// Settle waits for a while until each server has told what it offers, or could not be
// reached once; the log has those that did neither. It reports whether there are any servers.
func (f *Federation) Settle(ctx context.Context) bool {
	settling := ctx
	if !f.pins.Eager {
		var cancel context.CancelFunc
		settling, cancel = context.WithTimeout(ctx, settleTime)
		defer cancel()
	}
	if f.fleet.Settle(settling) != nil && ctx.Err() == nil {
		f.tellLate(f.fleet.Unsettled())
	}
	return f.fleet.Any()
}

// tellLate notes which servers are not waited for any more.
func (f *Federation) tellLate(names []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.late = names
	for _, name := range names {
		f.pins.Logger.Warn("an upstream server has not told yet what it offers", slog.String("upstream", name), slog.Duration("after", settleTime))
	}
}

// Close ends all connections, and waits until they have. Nobody is told of it.
func (f *Federation) Close() {
	f.fleet.Close()
	close(f.ended)
	f.told.Wait()
}

// Accepted returns what the lock file accepts of the servers of the blocks, with what is kept
// in memory where it cannot be written. Until the file is sound again it accepts nothing new,
// and what was accepted before still holds.
func (f *Federation) Accepted(blocks []definition.Upstream, file catalog.LockFile) (accepted catalog.Accepted) {
	f.mu.Lock()
	defer f.mu.Unlock()
	accepted.Problems = f.pins.load(file)
	if forgotten := f.pins.forgotten(blocks, file.Name); !f.pins.broken {
		accepted.Problems = append(accepted.Problems, forgotten...)
	}
	if f.pins.Eager {
		return accepted // rules are not held to a file that is about to change
	}
	for i := range blocks {
		if o := f.acceptedOffer(&blocks[i]); o != nil {
			accepted.Upstreams = append(accepted.Upstreams, o.upstream)
			accepted.Items = append(accepted.Items, o.items...)
			accepted.Known = append(accepted.Known, f.pins.known(&blocks[i])...)
		}
	}
	return accepted
}

// acceptedOffer is what a server offers as far as it was accepted, the same as long as the
// lock and the block are; nil where that is nothing.
func (f *Federation) acceptedOffer(u *definition.Upstream) *offer {
	listing := f.pins.listing(u)
	if listing == nil {
		return nil
	}
	o := f.accepted[u.Name]
	if o == nil || !f.isOf(o, u, listing) {
		o = f.offer(u, listing, false, nil)
		f.accepted[u.Name] = o
	}
	return o
}

// Offered returns what the servers of the blocks offer now and the lock file accepts, in
// the order of the blocks. An item is the same as long as its server and its block say the
// same of it. What a block takes in without a question is so once [Federation.Served] says
// that it is served.
func (f *Federation) Offered(blocks []definition.Upstream, keys map[string]string) (offers catalog.Offers) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pins.forgotten(blocks, "") // which the last load has told
	before := f.known
	f.known = nil
	offers.First = map[string][]string{}
	for i := range blocks {
		u := &blocks[i]
		offers.Known = append(offers.Known, f.pins.known(u)...)
		o, asked := f.current(u, keys, before)
		if o == nil {
			offers.Silent = append(offers.Silent, u.Name)
			continue
		}
		if !asked {
			offers.Unasked = append(offers.Unasked, u.Name)
		}
		f.known = append(f.known, o)
		offers.Items, offers.LeftOut = append(offers.Items, o.items...), append(offers.LeftOut, o.left...)
		offers.Problems = append(offers.Problems, o.problems...)
		if o.instructions != "" {
			offers.Instructions = append(offers.Instructions, o.instructions)
		}
		if o.first {
			names := make([]string, len(o.pinned))
			for i, t := range o.pinned {
				names[i] = u.LocalName(t.Name())
			}
			offers.First[u.Name] = names
		}
	}
	offers.Accepted = f.pins.hash(f.known)
	return offers
}

// current is what the server of a block offers, nil while that is not known, and whether it
// has said so itself: what was accepted of it stands for that otherwise.
func (f *Federation) current(u *definition.Upstream, keys map[string]string, before []*offer) (o *offer, asked bool) {
	if f.pins.Offline || f.pins.lazy(u) && f.fleet.State(u.Name).Idle {
		return f.acceptedOffer(u), false
	}
	listing := f.fleet.Listing(placeOf(u, keys))
	if listing == nil {
		return nil, true
	}
	if i := slices.IndexFunc(before, func(o *offer) bool { return o.upstream == u.Name }); i >= 0 {
		o = before[i]
	}
	if o == nil || !f.isOf(o, u, listing) {
		o = f.offer(u, listing, true, o)
	}
	return o, true
}

// isOf reports whether an offer is what would be made anew.
func (f *Federation) isOf(o *offer, u *definition.Upstream, l *upstream.Listing) bool {
	mode, _ := f.pins.mode(u)
	return o.listing == l && o.block == u.Hash && o.lock == f.pins.lock && o.mode == mode
}

// Served says that what was offered last is served as a catalog has it: what of it is taken
// in without a question is written to the lock file, and what has become of tools is told.
func (f *Federation) Served(c *catalog.Catalog) {
	f.mu.Lock()
	defer f.mu.Unlock()
	offers := make([]*offer, len(f.known))
	for i, o := range f.known {
		offers[i] = o.taken(c)
	}
	f.pins.serve(offers)
}

// taken returns the offer with what of it is taken in, which is nothing where rules do not
// fit, and no tool that would be called as one of another upstream.
func (o *offer) taken(c *catalog.Catalog) *offer {
	if !o.first {
		return o
	}
	taken := *o
	if taken.first = !c.Withheld(o.upstream); !taken.first {
		return &taken
	}
	var others []string
	for _, left := range c.LeftOut {
		if local := c.Entry(catalog.Tools, left.Address); left.Kind == catalog.Tools && left.Upstream == o.upstream && left.NameConflict && (local == nil || local.Upstream != "") {
			others = append(others, left.Address)
		}
	}
	taken.pinned = slices.DeleteFunc(slices.Clone(o.pinned), func(t lockfile.Tool) bool { return slices.Contains(others, o.renamed(t.Name())) })
	return &taken
}

// offer makes items of a listing; those of before that are the same stay.
func (f *Federation) offer(u *definition.Upstream, l *upstream.Listing, asked bool, before *offer) *offer {
	m := &maker{block: u, fleet: f.fleet, veil: f.veil, lock: f.pins.lock, judge: f.judge(u.Name), completes: l.Completes, taken: map[address]bool{}, before: map[[32]byte]*catalog.Item{}}
	if before != nil && before.block == u.Hash {
		for _, item := range before.items {
			m.before[item.Key] = item
		}
	}
	m.mode, m.pins = f.pins.mode(u)
	m.all(l)
	if asked {
		m.judge.last.Store(&verdict{l, m.held})
	}
	m.unknown(l, asked)
	instructions := m.instruct(strings.TrimSpace(f.veil.Redact(l.Instructions)))
	return &offer{
		upstream: u.Name, listing: l, block: u.Hash, lock: f.pins.lock, mode: m.mode, renamed: u.LocalName, items: m.items, left: m.left, problems: m.problems,
		first: m.first, pinned: m.pinned, quarantined: m.changes, instructions: instructions,
	}
}

func (f *Federation) judge(upstream string) *judge {
	j := f.judges[upstream]
	if j == nil {
		j = new(judge)
		f.judges[upstream] = j
	}
	return j
}

// placeOf returns where the server of a block is. Paths are as the process opens them.
func placeOf(u *definition.Upstream, keys map[string]string) upstream.Place {
	program := grant.Exec{Env: u.Env}.WithSecrets(keys)
	return upstream.Place{
		Name: u.Name, Command: u.Command, Dir: u.Dir, Env: program.Env, URL: u.URL, Grant: u.Grant.WithSecrets(keys), Transport: u.Transport,
		Ask: upstream.Asks{Elicit: u.Ask.Elicit, Sample: u.Ask.Sample, Roots: u.Ask.Roots}, Start: u.Start, MaxMessage: int(u.MaxMessage),
	}
}
