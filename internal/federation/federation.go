package federation

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/catalog"
	"github.com/mcpd/mcpd/internal/grant"
	"github.com/mcpd/mcpd/internal/hclfile"
	"github.com/mcpd/mcpd/internal/upstream"
)

// Federation is what upstream servers offer. It is safe for concurrent use.
type Federation struct {
	// Fixed at creation.
	fleet  *upstream.Fleet
	relist func()
	listed chan struct{} // holds a token while a server offers another thing than before
	ended  chan struct{}
	begin  sync.Once
	told   sync.WaitGroup

	mu    sync.Mutex
	known map[string]*offer // by the names of upstreams
}

// offer is what was made of the listing of one server.
type offer struct {
	listing  *upstream.Listing
	block    hclfile.Hash
	items    []*catalog.Item
	problems diag.List
}

// Options are those of the connections.
type Options = upstream.Options

// New returns a federation of no servers. It tells relist when what one of them offers is
// another thing than before, which may take its time: what changes meanwhile is told once
// it has returned.
func New(o Options, relist func()) *Federation {
	f := &Federation{relist: relist, listed: make(chan struct{}, 1), ended: make(chan struct{}), known: map[string]*offer{}}
	f.fleet = upstream.NewFleet(o, func() {
		select {
		case f.listed <- struct{}{}:
		default:
		}
	})
	return f
}

// tell tells of what servers offer until the federation is closed.
func (f *Federation) tell() {
	for {
		select {
		case <-f.ended:
			return
		case <-f.listed:
			f.relist()
		}
	}
}

// inherited are the variables that programs get beside those of their blocks: without
// them many do not find what they need.
var inherited = []string{"HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TEMP", "TERM", "TMP", "TMPDIR", "TZ", "USER", "APPDATA", "LOCALAPPDATA", "SYSTEMROOT", "USERPROFILE"}

// Environment returns the variables that programs get beside those of their blocks, as
// NAME=value, and how many servers stand before this one (see [Options]).
func Environment(lookup func(name string) (string, bool)) (env []string, depth int) {
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

// Keep has the federation be of the servers of these blocks, and connects to them in the
// background. Keys name the definitions of secrets.
func (f *Federation) Keep(blocks []hclfile.Upstream, keys map[string]string) {
	places := make([]upstream.Place, len(blocks))
	for i := range blocks {
		places[i] = placeOf(&blocks[i], keys)
	}
	if len(places) > 0 {
		f.begin.Do(func() { f.told.Go(f.tell) })
	}
	f.fleet.Keep(places)
}

// settleTime is how long [Federation.Settle] waits: servers that come later are heard of
// when they do.
const settleTime = 5 * time.Second

// Settle waits for a while until each server has told what it offers, or could not be
// reached once. It reports whether there are any.
func (f *Federation) Settle(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	_ = f.fleet.Settle(ctx)
	return f.fleet.Any()
}

// Close ends all connections, and waits until they have. Nobody is told of it.
func (f *Federation) Close() {
	f.fleet.Close()
	close(f.ended)
	f.told.Wait()
}

// Items returns what the servers of the blocks offer now, in the order of the blocks, and
// warnings of what cannot be offered. An item is the same as long as its server and its
// block say the same of it.
func (f *Federation) Items(blocks []hclfile.Upstream, keys map[string]string) (items []*catalog.Item, problems diag.List) {
	f.mu.Lock()
	defer f.mu.Unlock()
	known := make(map[string]*offer, len(blocks))
	for i := range blocks {
		u := &blocks[i]
		listing := f.fleet.Listing(placeOf(u, keys))
		if listing == nil {
			continue
		}
		o := f.known[u.Name]
		if o == nil || o.listing != listing || o.block != u.Hash {
			o = f.offer(u, listing, o)
		}
		known[u.Name] = o
		items, problems = append(items, o.items...), append(problems, o.problems...)
	}
	f.known = known
	return items, problems
}

// offer makes items of a listing; those of before that are the same stay.
func (f *Federation) offer(u *hclfile.Upstream, l *upstream.Listing, before *offer) *offer {
	m := &maker{block: u, fleet: f.fleet, completes: l.Completes, taken: map[address]bool{}, before: map[[32]byte]*catalog.Item{}}
	if before != nil && before.block == u.Hash {
		for _, item := range before.items {
			m.before[item.Key] = item
		}
	}
	m.all(l)
	return &offer{l, u.Hash, m.items, m.problems}
}

// placeOf returns where the server of a block is. Paths are as the process opens them.
func placeOf(u *hclfile.Upstream, keys map[string]string) upstream.Place {
	program := grant.Exec{Env: u.Env}.WithSecrets(keys)
	return upstream.Place{
		Name: u.Name, Command: u.Command, Dir: u.Dir, Env: program.Env, URL: u.URL, Grant: u.Grant.WithSecrets(keys), Transport: u.Transport,
		Ask: upstream.Asks{Elicit: u.Ask.Elicit, Sample: u.Ask.Sample, Roots: u.Ask.Roots}, Start: u.Start, MaxMessage: int(u.MaxMessage),
	}
}

// State is how an upstream server is, for operators.
type State struct {
	// Name is that of its block.
	Name string
	// Up says that it can be reached and has told what it offers.
	Up bool
	// Err is why it cannot be reached, nil where it can or where that is not known yet.
	Err error
	// Since is when this began to be so, and Again when it is tried again; zero where there
	// is no such time.
	Since, Again time.Time
	// Revision is that of the protocol that it speaks, "" where none is agreed on.
	Revision string
	// Instructions tell a model how to use it, in its own words.
	Instructions string
	// Offered counts what it lists, and LeftOut is what of that could be offered here and
	// is not, with the reasons.
	Offered int
	LeftOut []string
}

// States returns how the servers of a catalog are, in the order of their blocks.
func (f *Federation) States(c *catalog.Catalog) []State {
	states := make([]State, len(c.Upstreams))
	for i := range c.Upstreams {
		name := c.Upstreams[i].Name
		s := f.fleet.State(name)
		states[i] = State{Name: name, Err: s.Err, Since: s.Since, Again: s.Again, Revision: s.Revision}
		if l := s.Listing; l != nil {
			states[i].Up, states[i].Instructions = true, l.Instructions
			states[i].Offered = len(l.Tools) + len(l.Resources) + len(l.Templates) + len(l.Prompts)
		}
		for _, left := range c.LeftOut {
			if left.Upstream == name {
				states[i].LeftOut = append(states[i].LeftOut, fmt.Sprintf("%s %s: %s", left.Kind, left.Address, left.Why))
			}
		}
	}
	return states
}
