// Package overlay offers the tools, resources and prompts of upstream MCP servers as if they
// were local.
//
// A [Federation] holds a connection to each server that an upstream block names (package
// upstream). It converts their listings to [catalog.Item]s: tools, resources, templates and
// prompts, with the names and overrides of the block. Entries that cannot be offered are
// excluded with a warning that gives the reason: an invalid schema, a name that no tool can
// have, an invalid URI. The items pass through the same pipeline as all others; their handlers
// forward the call.
//
// Tools are compared with the lock file (package lockfile). A tool with another definition than
// the accepted one is not offered until the operator accepts it. Tools pinned on first use are
// written to the lock file before they are served.
//
// Servers are not trusted. Their schemas are compiled by our validator, which checks arguments
// before they are sent and results before they are returned. Input requests during a call reach
// the client only if the block allows them. They carry the name of the server and only members
// defined by MCP. Servers never receive the credentials of callers.
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

// Federation offers what upstream servers offer. It is safe for concurrent use.
type Federation struct {
	// Fixed at creation.
	pool        *upstream.Pool
	watches     *resourceWatches
	redactor    redact.Redactor
	relist      func() (took time.Duration)
	update      func(uris []string)
	listChanged chan struct{} // holds a token while the offers of a server have changed
	closed      chan struct{}

	startNotifier sync.Once      // starts notifyLoop
	notifier      sync.WaitGroup // waits for notifyLoop

	mu     sync.Mutex
	offers []*offer // in the order of the blocks
	lock   lockState
	// acceptances are by upstream name, as are acceptedOffers, the offers as far as they were
	// accepted.
	acceptances    map[string]*acceptance
	acceptedOffers map[string]*offer
	notReady       []string // the servers that had not answered within readyTimeout
}

// offer is the result of converting the listing of one server.
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
	// instructions are the server's instructions for models, or "".
	instructions string
	// firstUse reports whether pinned tools are accepted on first use. quarantined tools need
	// to be accepted.
	firstUse    bool
	pinned      []lockfile.Tool
	quarantined []lockfile.Change
}

// New returns a federation without servers. Text that servers send on their own is redacted.
func New(o federation.Options) *Federation {
	f := &Federation{
		redactor: o.Brokers.Secrets, relist: o.Relist, update: o.Update, listChanged: make(chan struct{}, 1), closed: make(chan struct{}),
		lock: newLockState(o.Lock, o.Logger), acceptances: map[string]*acceptance{}, acceptedOffers: map[string]*offer{},
	}
	connected := upstream.Options{
		Version: o.Version, Transport: o.Brokers.Egress.StreamingTransport, ResolveValue: func(ctx context.Context, v grant.Value) (string, error) {
			return v.Text(ctx, o.Brokers.Secrets.Resolve)
		}, Redact: f.redactor.Redact,
		Environment: func() ([]string, int) { return environment(o.LookupEnv) }, Traceparent: o.Traceparent, Supervisor: o.Supervisor, Logger: o.Logger,
	}
	f.pool = upstream.NewPool(connected, func() {
		select {
		case f.listChanged <- struct{}{}:
		default:
		}
	}, func(name, uri string) { f.watches.updated(name, uri) })
	f.watches = &resourceWatches{pool: f.pool, pending: make(chan struct{}, 1), watchers: map[string]int{}, subscribed: map[string]string{}, changed: map[string]struct{}{}}
	return f
}

// inheritedEnv are the variables that programs inherit in addition to the variables of their
// blocks. Without them many programs do not find what they need, or do not trust the
// certificate authority of a company. None of them holds a secret.
var inheritedEnv = []string{
	"HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TEMP", "TERM", "TMP", "TMPDIR", "TZ", "USER", "APPDATA", "LOCALAPPDATA", "SYSTEMROOT", "USERPROFILE",
	"NODE_EXTRA_CA_CERTS", "SSL_CERT_DIR", "SSL_CERT_FILE",
}

// environment returns the inherited variables of programs as NAME=value, and the number of
// servers in front of this one (see [upstream.Options]).
func environment(lookup func(name string) (string, bool)) (env []string, depth int) {
	for _, name := range inheritedEnv {
		if value, set := lookup(name); set {
			env = append(env, name+"="+value)
		}
	}
	if value, set := lookup(upstream.DepthVariable); set {
		depth, _ = strconv.Atoi(value) // 0 if it is not a number
	}
	return env, depth
}

// SetServers reconciles the connections with the upstream blocks of c, the catalog that serves,
// and connects in the background.
func (f *Federation) SetServers(c *catalog.Catalog) {
	targets := f.targets(c)
	if len(targets) > 0 {
		f.startNotifier.Do(func() { f.notifier.Go(f.notifyLoop) })
	}
	f.pool.SetTargets(targets)
	f.watches.setCatalog(c)
}

// targets returns the targets of the upstream blocks of c.
func (f *Federation) targets(c *catalog.Catalog) []upstream.Target {
	f.mu.Lock()
	defer f.mu.Unlock()
	targets := make([]upstream.Target, len(c.Upstreams))
	for i := range c.Upstreams {
		targets[i] = targetOf(&c.Upstreams[i], c.SecretKeys)
		targets[i].Lazy = f.lock.isLazy(&c.Upstreams[i])
	}
	return targets
}

// readyTimeout bounds [Federation.WaitReady]; servers that become ready later are reported
// then. In eager mode each server may take its full start timeout.
const readyTimeout = 5 * time.Second

// errNotReady is the status of a server that was not ready within readyTimeout.
var errNotReady = fmt.Errorf("it did not list its tools within %s", readyTimeout)

// WaitReady waits until each server has listed its offers or failed once, for readyTimeout at
// most. It logs the servers that did neither. It reports whether there are any servers.
func (f *Federation) WaitReady(ctx context.Context) bool {
	settling := ctx
	if !f.lock.Eager {
		var cancel context.CancelFunc
		settling, cancel = context.WithTimeout(ctx, readyTimeout)
		defer cancel()
	}
	if f.pool.WaitReady(settling) != nil && ctx.Err() == nil {
		f.logNotReady(f.pool.NotReady())
	}
	return f.pool.HasServers()
}

// logNotReady logs and records the servers that were not ready in time.
func (f *Federation) logNotReady(names []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.notReady = names
	for _, name := range names {
		f.lock.Logger.Warn("upstream server not ready yet", slog.String("upstream", name), slog.Duration("after", readyTimeout))
	}
}

// Close closes all connections and waits for them. It sends no notifications.
func (f *Federation) Close() {
	f.pool.Close()
	close(f.closed)
	f.notifier.Wait()
}

// Accepted returns what the lock file accepts for the blocks, with the unsaved entries in
// memory. While the file is invalid it accepts nothing new; what was accepted before stays
// accepted.
func (f *Federation) Accepted(blocks []definition.Upstream, file catalog.LockFile) (accepted catalog.Accepted) {
	f.mu.Lock()
	defer f.mu.Unlock()
	accepted.Problems = f.lock.load(file)
	if forgotten := f.lock.checkVanished(blocks, file.Name); !f.lock.broken {
		accepted.Problems = append(accepted.Problems, forgotten...)
	}
	if f.lock.Eager {
		return accepted // policies are not checked against a file that is about to change
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

// acceptedOffer returns what a server offers as far as it was accepted, or nil if nothing was.
// It returns the same offer until the lock or the block changes.
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

// Offers returns what the servers of the blocks offer now, as far as the lock file accepts it,
// in the order of the blocks. An item stays the same while its server and its block describe it
// unchanged. First use takes effect with [Federation.Commit].
func (f *Federation) Offers(blocks []definition.Upstream, keys map[string]string) (offers catalog.Offers) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lock.checkVanished(blocks, "") // the last load has reported them
	before, now := f.offers, make([]*offer, 0, len(blocks))
	offers.FirstUse = map[string][]string{}
	for i := range blocks {
		u := &blocks[i]
		offers.Known = append(offers.Known, f.lock.toolNames(u)...)
		o, asked := f.currentOffer(u, keys, before)
		if o == nil {
			offers.Unreachable = append(offers.Unreachable, u.Name)
			continue
		}
		if !asked {
			offers.Unconnected = append(offers.Unconnected, u.Name)
		}
		now = append(now, o)
		offers.Items, offers.LeftOut = append(offers.Items, o.items...), append(offers.LeftOut, o.excluded...)
		offers.Problems = append(offers.Problems, o.problems...)
		if o.instructions != "" {
			offers.Instructions = append(offers.Instructions, o.instructions)
		}
		if o.firstUse {
			names := make([]string, len(o.pinned))
			for i, t := range o.pinned {
				names[i] = u.LocalName(t.Name())
			}
			offers.FirstUse[u.Name] = names
		}
	}
	offers.Accepted = f.lock.hash(now)
	f.offers = now // only now, so that a panic keeps the previous offers
	return offers
}

// currentOffer returns what the server of a block offers, or nil while that is not known. It
// reports whether the server has listed it itself; otherwise the accepted tools stand for the
// listing.
func (f *Federation) currentOffer(u *definition.Upstream, keys map[string]string, before []*offer) (o *offer, asked bool) {
	if f.lock.Offline || f.lock.isLazy(u) && f.pool.State(u.Name).Idle {
		return f.acceptedOffer(u), false
	}
	listing := f.pool.Listing(targetOf(u, keys))
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

// isCurrent reports whether building o again would return the same offer.
func (f *Federation) isCurrent(o *offer, u *definition.Upstream, l *upstream.Listing) bool {
	mode, _ := f.lock.mode(u)
	return o.listing == l && o.block == u.Hash && o.lock == f.lock.effective && o.mode == mode
}

// Commit records that c serves the latest offers. It writes tools pinned on first use to the
// lock file, and logs the tools that were accepted or quarantined.
func (f *Federation) Commit(c *catalog.Catalog) {
	f.mu.Lock()
	defer f.mu.Unlock()
	offers := make([]*offer, len(f.offers))
	for i, o := range f.offers {
		offers[i] = o.accepted(c)
	}
	f.lock.commit(offers)
}

// accepted returns the offer with the tools that c accepted on first use: none if a policy does
// not match, and no tool with a name that another upstream has.
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
		if local := c.Entry(catalog.Tools, left.Address); left.Kind == catalog.Tools && left.Upstream == o.upstream && left.NameConflict && (local == nil || local.Upstream != "") {
			others = append(others, left.Address)
		}
	}
	accepted.pinned = slices.DeleteFunc(slices.Clone(o.pinned), func(t lockfile.Tool) bool { return slices.Contains(others, o.rename(t.Name())) })
	return &accepted
}

// newOffer converts a listing. It reuses the unchanged items of the previous offer.
func (f *Federation) newOffer(u *definition.Upstream, l *upstream.Listing, asked bool, before *offer) *offer {
	b := &itemBuilder{upstream: u, pool: f.pool, redactor: f.redactor, lock: f.lock.effective, acceptance: f.acceptance(u.Name), completes: l.HasCompletions, addresses: map[address]bool{}, previous: map[[32]byte]*catalog.Item{}}
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
	instructions := b.labeledInstructions(strings.TrimSpace(f.redactor.Redact(l.Instructions)))
	return &offer{
		upstream: u.Name, listing: l, block: u.Hash, lock: f.lock.effective, mode: b.mode, rename: u.LocalName, items: b.items, excluded: b.excluded, problems: b.diagnostics,
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

// targetOf returns the connection target of a block. Paths are as the process opens them.
func targetOf(u *definition.Upstream, keys map[string]string) upstream.Target {
	program := grant.Exec{Env: u.Env}.WithSecrets(keys)
	return upstream.Target{
		Name: u.Name, Command: u.Command, Dir: u.Dir, Env: program.Env, URL: u.URL, Grant: u.Grant.WithSecrets(keys), Transport: u.Transport,
		Input: upstream.InputPolicy{Elicit: u.Ask.Elicit, Sample: u.Ask.Sample, Roots: u.Ask.Roots}, StartTimeout: u.Start, MaxMessage: int(u.MaxMessage),
	}
}
