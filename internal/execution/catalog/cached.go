package catalog

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"io"
	"slices"
	"strconv"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/execution/resultcache"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/scripting"
)

// results keeps the results of bodies. They are shared, and never changed.
type results = resultcache.Cache[scripting.Result]

type cachedHandler struct {
	Handler
	item  *Item
	store *results
	cache definition.Cache
	// granted is a hash of what the body is granted, with the places that it led
	// to, and secrets are the names of those among it.
	granted [sha256.Size]byte
	secrets []string
	// exact tells calls apart by what is sent, in which numbers keep all their digits, and not
	// by what policies see of it.
	exact bool
}

// cacheOffered gives bodies of tools of upstreams the caches that their blocks want. An item
// that has served has its own already.
func (b *Builder) cacheOffers(upstreams []definition.Upstream, items []*Item) {
	for _, item := range items {
		_, done := item.Handler.(*cachedHandler)
		at := slices.IndexFunc(upstreams, func(u definition.Upstream) bool { return u.Name == item.Upstream })
		if item.Cache == nil || done || at < 0 {
			continue
		}
		u := &upstreams[at]
		granted := grant.Set{HTTP: []grant.HTTP{u.Grant}, Exec: []grant.Exec{{Env: u.Env}}}
		item.Handler = &cachedHandler{Handler: item.Handler, item: item, store: b.results, cache: *item.Cache, granted: granted.Hash(), secrets: granted.SecretNames(), exact: true}
	}
}

// cached returns the body of a tool that has a cache; nil when the results
// would tell one caller what another one said.
func (k *itemCompiler) withCache(def *definition.Tool, body Handler) Handler {
	s, ok := body.(*scriptHandler)
	if !ok || !k.ignoresCaller(def, s.program) {
		return nil
	}
	granted := k.found.resolveGrants(def.Grant)
	return &cachedHandler{Handler: body, item: k.item, store: k.results, cache: *def.Cache, granted: granted.Hash(), secrets: granted.SecretNames()}
}

// knowsNobody reports a body whose result depends on who calls, and is given to
// others. What it is told of one principal's agents is for that principal.
func (k *itemCompiler) ignoresCaller(def *definition.Tool, program *scripting.Program) bool {
	for _, name := range []string{"agent", "call"} {
		if !program.Uses(name) {
			continue
		}
		found := diag.Diagnostic{
			Code: "cached-caller", Range: def.Cache.Range, Summary: "the body reads " + name + ", and its results are given to every caller",
			Detail: "write scope = \"principal\", or take what it needs as an input with from, which results are told apart by",
		}
		if def.Cache.Scope == definition.CachePrincipal {
			found.Severity = diag.Warning
			found.Summary = "the body reads " + name + ", which is another in each call, and its results are given again"
			found.Detail = "take what it needs as an input, which results are told apart by, or remove the cache"
		}
		k.problems = append(k.problems, found)
		if found.Severity == diag.Error {
			return false
		}
	}
	return true
}

// Run gives the result of the same call before, or runs the body. Calls of tests,
// and those of nobody in particular where results are for one principal, always
// run it.
func (b *cachedHandler) Run(ctx context.Context, i Invocation) (scripting.Outcome, error) {
	call, ok := b.key(&i)
	if !ok || i.Host.Mocks != nil {
		return b.Handler.Run(ctx, i)
	}
	var outcome scripting.Outcome
	result, before, err := b.store.Do(ctx, call, func() (made resultcache.Computed[scripting.Result], err error) {
		if outcome, err = b.Handler.Run(ctx, i); err == nil && b.isCacheable(outcome) {
			made.Value, made.Cacheable = copyOf(*outcome.Result), true
			made.Size = len(made.Value.JSON) + len(made.Value.Content)
		}
		return made, err
	})
	if err != nil || !before {
		return outcome, err
	}
	if i.Cached != nil {
		*i.Cached = true
	}
	result = copyOf(result)
	return scripting.Outcome{Result: &result}, nil
}

// keeps reports whether an outcome is one that its caller is given as a result.
func (b *cachedHandler) isCacheable(o scripting.Outcome) bool {
	if o.Result == nil || o.Failure != nil || o.Suspended != nil {
		return false
	}
	if output := b.item.Output; output != nil && !output.Trusted() {
		value := o.Result.JSON
		if len(value) == 0 {
			value = []byte("null")
		}
		return len(output.Validate(value)) == 0
	}
	return true
}

// copyOf returns a result that is its owner's alone.
func copyOf(r scripting.Result) scripting.Result {
	r.JSON, r.Content = bytes.Clone(r.JSON), bytes.Clone(r.Content)
	return r
}

// key returns what tells the results of a call from those of others: everything
// that the body may depend on. It reports false for a call that nobody can
// tell from another one.
func (b *cachedHandler) key(i *Invocation) (resultcache.Lookup, bool) {
	c := resultcache.Lookup{StartTime: i.StartTime, TTL: b.cache.TTL}
	c.Item = b.item.Key
	h := sha256.New()
	h.Write(b.granted[:])
	if len(b.secrets) > 0 {
		// All values are read again with the next generation.
		field(h, strconv.AppendUint(nil, i.Host.Brokers.Secrets.Generation(), 10))
	}
	for _, name := range b.secrets {
		field(h, []byte(i.Host.SecretKeys[name]))
	}
	field(h, strconv.AppendInt(nil, int64(i.Bounds.Output), 10))
	if b.cache.Scope == definition.CachePrincipal {
		p := i.Caller.Principal
		session := ""
		if p.Kind == identity.KindAnonymous || p.ID == "" {
			// Everybody is anonymous alike; those of one session are one.
			if session = i.Caller.Source.Session; session == "" {
				return c, false
			}
		}
		for _, part := range []string{string(p.Kind), p.Issuer, p.ID, session} {
			field(h, []byte(part))
		}
	}
	args, err := b.arguments(i)
	if err != nil {
		return c, false // something that is no JSON, which the server has filled in
	}
	field(h, args)
	h.Sum(c.Arguments[:0])
	return c, true
}

// arguments returns those of a call, with the members of objects in order.
func (b *cachedHandler) arguments(i *Invocation) ([]byte, error) {
	if !b.exact {
		return json.Marshal(i.Args)
	}
	d := json.NewDecoder(bytes.NewReader(i.Input))
	d.UseNumber()
	var sent any
	if err := d.Decode(&sent); err != nil {
		return nil, err
	}
	return json.Marshal(sent)
}

// field adds bytes to a hash so that no two sequences of fields collide.
func field(h io.Writer, b []byte) {
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(len(b)))
	_, _ = h.Write(n[:]) // hashes never fail
	_, _ = h.Write(b)
}

func keysOf(c *Catalog) map[[32]byte]bool {
	keys := make(map[[32]byte]bool, len(c.Entries[Tools]))
	for _, e := range c.Entries[Tools] {
		keys[e.Key] = true
	}
	return keys
}
