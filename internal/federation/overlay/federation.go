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
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/base/redact"
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
	fleet       *upstream.Fleet
	watches     *resourceWatches
	redactor    redact.Redactor
	relist      func() (took time.Duration)
	update      func(uris []string)
	listChanged chan struct{} // holds a token while a server offers another thing than before
	closed      chan struct{}

	startNotifier sync.Once      // begins to tell
	notifier      sync.WaitGroup // waits until it is over

	mu     sync.Mutex
	offers []*offer // in the order of the blocks
	lock   lockState
	// judges are those of the upstreams, by their names, and accepted what was accepted of
	// them.
	acceptances    map[string]*acceptance
	acceptedOffers map[string]*offer
	notReady       []string // those that had not told what they offer when they were waited for
}

// offer is what was made of the listing of one server.
type offer struct {
	upstream string
	listing  *upstream.Listing
	block    definition.Hash
	lock     *lockfile.Lock
	mode     lockfile.Mode
	rename   func(name string) string
	items    []*catalog.Item
	excluded []catalog.LeftOut
	problems diag.List
	// instructions are those for models, "" for none.
	instructions string
	// first says that pinned are taken in without a question, and quarantined are what
	// somebody has to accept first.
	firstUse    bool
	pinned      []lockfile.Tool
	quarantined []lockfile.Change
}

// New returns a federation of no servers. What they say, and no caller has asked for, is
// redacted.
func New(o federation.Options) *Federation {
	f := &Federation{
		redactor: o.Brokers.Secrets, relist: o.Relist, update: o.Update, listChanged: make(chan struct{}, 1), closed: make(chan struct{}),
		lock: newLockState(o.Lock, o.Logger), acceptances: map[string]*acceptance{}, acceptedOffers: map[string]*offer{},
	}
	connected := upstream.Options{
		Version: o.Version, Transport: o.Brokers.Egress.Stream, ResolveValue: func(ctx context.Context, v grant.Value) (string, error) {
			return v.Text(ctx, o.Brokers.Secrets.Resolve)
		}, Redact: f.redactor.Redact,
		Environment: func() ([]string, int) { return environment(o.LookupEnv) }, Traceparent: o.Traceparent, Supervisor: o.Supervisor, Logger: o.Logger,
	}
	f.fleet = upstream.NewFleet(connected, func() {
		select {
		case f.listChanged <- struct{}{}:
		default:
		}
	}, func(name, uri string) { f.watches.updated(name, uri) })
	f.watches = &resourceWatches{fleet: f.fleet, pending: make(chan struct{}, 1), watchers: map[string]int{}, subscribed: map[string]string{}, changed: map[string]struct{}{}}
	return f
}

// inherited are the variables that programs get beside those of their blocks: without
// them many do not find what they need, or trust nobody whom the certificates of a company
// vouch for. None of them holds a secret.
var inheritedEnv = []string{
	"HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TEMP", "TERM", "TMP", "TMPDIR", "TZ", "USER", "APPDATA", "LOCALAPPDATA", "SYSTEMROOT", "USERPROFILE",
	"NODE_EXTRA_CA_CERTS", "SSL_CERT_DIR", "SSL_CERT_FILE",
}

// environment returns the variables that programs get beside those of their blocks, as
// NAME=value, and how many servers stand before this one (see [upstream.Options]).
func environment(lookup func(name string) (string, bool)) (env []string, depth int) {
	for _, name := range inheritedEnv {
		if value, set := lookup(name); set {
			env = append(env, name+"="+value)
		}
	}
	if value, set := lookup(upstream.DepthVariable); set {
		depth, _ = strconv.Atoi(value) // of what is no number nothing is known
	}
	return env, depth
}

// Keep has the federation be of the servers of a catalog, which is the one that serves, and
// connects to them in the background.
func (f *Federation) SetServers(c *catalog.Catalog) {
	targets := make([]upstream.Target, len(c.Upstreams))
	f.mu.Lock()
	for i := range c.Upstreams {
		targets[i] = targetOf(&c.Upstreams[i], c.SecretKeys)
		targets[i].Lazy = f.lock.lazy(&c.Upstreams[i])
	}
	f.mu.Unlock()
	if len(targets) > 0 {
		f.startNotifier.Do(func() { f.notifier.Go(f.notifyLoop) })
	}
	f.fleet.SetTargets(targets)
	f.watches.setCatalog(c)
}

// settleTime is how long [Federation.Settle] waits: servers that come later are heard of
// when they do. Who is eager waits for as long as they may take to start.
const readyTimeout = 5 * time.Second

// errLate is why nothing is known of a server that was waited for.
var errNotReady = fmt.Errorf("it has not told within %s what it offers", readyTimeout)

// Settle waits for a while until each server has told what it offers, or could not be
// reached once; the log has those that did neither. It reports whether there are any servers.
func (f *Federation) WaitReady(ctx context.Context) bool {
	settling := ctx
	if !f.lock.Eager {
		var cancel context.CancelFunc
		settling, cancel = context.WithTimeout(ctx, readyTimeout)
		defer cancel()
	}
	if f.fleet.WaitReady(settling) != nil && ctx.Err() == nil {
		f.logNotReady(f.fleet.NotReady())
	}
	return f.fleet.HasServers()
}

// tellLate notes which servers are not waited for any more.
func (f *Federation) logNotReady(names []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.notReady = names
	for _, name := range names {
		f.lock.Logger.Warn("an upstream server has not told yet what it offers", slog.String("upstream", name), slog.Duration("after", readyTimeout))
	}
}

// Close ends all connections, and waits until they have. Nobody is told of it.
func (f *Federation) Close() {
	f.fleet.Close()
	close(f.closed)
	f.notifier.Wait()
}

// Accepted returns what the lock file accepts of the servers of the blocks, with what is kept
// in memory where it cannot be written. Until the file is sound again it accepts nothing new,
// and what was accepted before still holds.
func (f *Federation) Accepted(blocks []definition.Upstream, file catalog.LockFile) (accepted catalog.Accepted) {
	f.mu.Lock()
	defer f.mu.Unlock()
	accepted.Problems = f.lock.load(file)
	if forgotten := f.lock.checkVanished(blocks, file.Name); !f.lock.broken {
		accepted.Problems = append(accepted.Problems, forgotten...)
	}
	if f.lock.Eager {
		return accepted // rules are not held to a file that is about to change
	}
	for i := range blocks {
		if o := f.acceptedOffer(&blocks[i]); o != nil {
			accepted.Upstreams = append(accepted.Upstreams, o.upstream)
			accepted.Items = append(accepted.Items, o.items...)
			accepted.Known = append(accepted.Known, f.lock.toolNames(&blocks[i])...)
		}
	}
	return accepted
}

// acceptedOffer is what a server offers as far as it was accepted, the same as long as the
// lock and the block are; nil where that is nothing.
func (f *Federation) acceptedOffer(u *definition.Upstream) *offer {
	listing := f.lock.listing(u)
	if listing == nil {
		return nil
	}
	o := f.acceptedOffers[u.Name]
	if o == nil || !f.isCurrent(o, u, listing) {
		o = f.newOffer(u, listing, false, nil)
		f.acceptedOffers[u.Name] = o
	}
	return o
}

// Offered returns what the servers of the blocks offer now and the lock file accepts, in
// the order of the blocks. An item is the same as long as its server and its block say the
// same of it. What a block takes in without a question is so once [Federation.Served] says
// that it is served.
func (f *Federation) Offers(blocks []definition.Upstream, keys map[string]string) (offers catalog.Offers) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lock.checkVanished(blocks, "") // which the last load has told
	before := f.offers
	f.offers = nil
	offers.First = map[string][]string{}
	for i := range blocks {
		u := &blocks[i]
		offers.Known = append(offers.Known, f.lock.toolNames(u)...)
		o, asked := f.currentOffer(u, keys, before)
		if o == nil {
			offers.Silent = append(offers.Silent, u.Name)
			continue
		}
		if !asked {
			offers.Unasked = append(offers.Unasked, u.Name)
		}
		f.offers = append(f.offers, o)
		offers.Items, offers.LeftOut = append(offers.Items, o.items...), append(offers.LeftOut, o.excluded...)
		offers.Problems = append(offers.Problems, o.problems...)
		if o.instructions != "" {
			offers.Instructions = append(offers.Instructions, o.instructions)
		}
		if o.firstUse {
			names := make([]string, len(o.pinned))
			for i, t := range o.pinned {
				names[i] = u.Renamed(t.Name())
			}
			offers.First[u.Name] = names
		}
	}
	offers.Accepted = f.lock.hash(f.offers)
	return offers
}

// current is what the server of a block offers, nil while that is not known, and whether it
// has said so itself: what was accepted of it stands for that otherwise.
func (f *Federation) currentOffer(u *definition.Upstream, keys map[string]string, before []*offer) (o *offer, asked bool) {
	if f.lock.Offline || f.lock.lazy(u) && f.fleet.State(u.Name).Idle {
		return f.acceptedOffer(u), false
	}
	listing := f.fleet.Listing(targetOf(u, keys))
	if listing == nil {
		return nil, true
	}
	if i := slices.IndexFunc(before, func(o *offer) bool { return o.upstream == u.Name }); i >= 0 {
		o = before[i]
	}
	if o == nil || !f.isCurrent(o, u, listing) {
		o = f.newOffer(u, listing, true, o)
	}
	return o, true
}

// isOf reports whether an offer is what would be made anew.
func (f *Federation) isCurrent(o *offer, u *definition.Upstream, l *upstream.Listing) bool {
	mode, _ := f.lock.mode(u)
	return o.listing == l && o.block == u.Hash && o.lock == f.lock.effective && o.mode == mode
}

// Served says that what was offered last is served as a catalog has it: what of it is taken
// in without a question is written to the lock file, and what has become of tools is told.
func (f *Federation) Commit(c *catalog.Catalog) {
	f.mu.Lock()
	defer f.mu.Unlock()
	offers := make([]*offer, len(f.offers))
	for i, o := range f.offers {
		offers[i] = o.accepted(c)
	}
	f.lock.commit(offers)
}

// taken returns the offer with what of it is taken in, which is nothing where rules do not
// fit, and no tool that would be called as one of another upstream.
func (o *offer) accepted(c *catalog.Catalog) *offer {
	if !o.firstUse {
		return o
	}
	accepted := *o
	if accepted.firstUse = !c.Withheld(o.upstream); !accepted.firstUse {
		return &accepted
	}
	var others []string
	for _, left := range c.LeftOut {
		if local := c.Entry(catalog.Tools, left.Address); left.Kind == catalog.Tools && left.Upstream == o.upstream && left.Taken && (local == nil || local.Upstream != "") {
			others = append(others, left.Address)
		}
	}
	accepted.pinned = slices.DeleteFunc(slices.Clone(o.pinned), func(t lockfile.Tool) bool { return slices.Contains(others, o.rename(t.Name())) })
	return &accepted
}

// offer makes items of a listing; those of before that are the same stay.
func (f *Federation) newOffer(u *definition.Upstream, l *upstream.Listing, asked bool, before *offer) *offer {
	b := &itemBuilder{upstream: u, fleet: f.fleet, redactor: f.redactor, lock: f.lock.effective, acceptance: f.acceptance(u.Name), completes: l.HasCompletions, addresses: map[address]bool{}, previous: map[[32]byte]*catalog.Item{}}
	if before != nil && before.block == u.Hash {
		for _, item := range before.items {
			b.previous[item.Key] = item
		}
	}
	b.mode, b.pinned = f.lock.mode(u)
	b.buildAll(l)
	if asked {
		b.acceptance.latest.Store(&acceptedListing{l, b.accepted})
	}
	b.checkNames(l, asked)
	instructions := b.instruct(strings.TrimSpace(f.redactor.Redact(l.Instructions)))
	return &offer{
		upstream: u.Name, listing: l, block: u.Hash, lock: f.lock.effective, mode: b.mode, rename: u.Renamed, items: b.items, excluded: b.excluded, problems: b.diagnostics,
		firstUse: b.firstUse, pinned: b.toPin, quarantined: b.quarantined, instructions: instructions,
	}
}

func (f *Federation) acceptance(upstream string) *acceptance {
	a := f.acceptances[upstream]
	if a == nil {
		a = new(acceptance)
		f.acceptances[upstream] = a
	}
	return a
}

// placeOf returns where the server of a block is. Paths are as the process opens them.
func targetOf(u *definition.Upstream, keys map[string]string) upstream.Target {
	program := grant.Exec{Env: u.Env}.WithSecrets(keys)
	return upstream.Target{
		Name: u.Name, Command: u.Command, Dir: u.Dir, Env: program.Env, URL: u.URL, Grant: u.Grant.WithSecrets(keys), Transport: u.Transport,
		Input: upstream.InputPolicy{Elicit: u.Ask.Elicit, Sample: u.Ask.Sample, Roots: u.Ask.Roots}, StartTimeout: u.Start, MaxMessage: int(u.MaxMessage),
	}
}
