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

// results is the cache of tool results. They are shared, and must not be modified.
type results = resultcache.Cache[scripting.Result]

type cachedHandler struct {
	Handler
	item  *Item
	store *results
	cache definition.Cache
	// granted is a hash of the grants with resolved paths, and secrets are the names of granted
	// secrets.
	granted [sha256.Size]byte
	secrets []string
	// shared has the results of all replicas; nil if the tool shares none.
	shared *sharedResults
	// exact distinguishes calls by the arguments as sent, with all digits of numbers, instead of
	// the arguments as policies see them.
	exact bool
}

// cacheOffers adds the caches of upstream blocks to upstream tools. An item that has served already
// has one.
func (b *Builder) cacheOffers(upstreams []definition.Upstream, items []*Item) {
	for _, item := range items {
		_, done := item.Handler.(*cachedHandler)
		at := slices.IndexFunc(upstreams, func(u definition.Upstream) bool { return u.Name == item.Upstream })
		if item.Cache == nil || done || at < 0 {
			continue
		}
		u := &upstreams[at]
		granted := grant.Set{HTTP: []grant.HTTP{u.Grant}, Exec: []grant.Exec{{Env: u.Env}}}
		h := &cachedHandler{Handler: item.Handler, item: item, store: b.results, cache: *item.Cache, granted: granted.Hash(), secrets: granted.SecretNames(), exact: true}
		h.shared = b.options.sharedResults(h, granted)
		item.Handler = h
	}
}

// withCache returns the handler of a tool with a cache; nil if the results depend on the caller and
// must not be shared.
func (c *itemCompiler) withCache(def *definition.Tool, body Handler) Handler {
	s, ok := body.(*scriptHandler)
	if !ok || !c.ignoresCaller(def, s.program) {
		return nil
	}
	granted := c.state.resolveGrants(def.Grant)
	h := &cachedHandler{Handler: body, item: c.item, store: c.results, cache: *def.Cache, granted: granted.Hash(), secrets: granted.SecretNames()}
	h.shared = c.options.sharedResults(h, granted)
	return h
}

// ignoresCaller reports an error if the script depends on the caller while its results are shared,
// and a warning if they are shared by the agents of one principal.
func (c *itemCompiler) ignoresCaller(def *definition.Tool, program *scripting.Program) bool {
	for _, name := range []string{"agent", "call"} {
		if !program.Uses(name) {
			continue
		}
		found := diag.Diagnostic{
			Code: "cached-caller", Range: def.Cache.Range, Summary: "the script reads " + name + ", but its results are shared by all callers",
			Detail: "set scope = \"principal\", or pass the value as an input with from, which is part of the cache key",
		}
		if def.Cache.Scope == definition.CachePrincipal {
			found.Severity = diag.Warning
			found.Summary = "the script reads " + name + ", which differs in each call, but its results are reused"
			found.Detail = "pass the value as an input, which is part of the cache key, or remove the cache"
		}
		c.problems = append(c.problems, found)
		if found.Severity == diag.Error {
			return false
		}
	}
	return true
}

// Run returns the cached result of an equal call, or runs the handler. Test calls and
// recorded calls bypass the cache, and so do calls without a session by anonymous callers if results
// are cached per principal.
func (h *cachedHandler) Run(ctx context.Context, i Invocation) (scripting.Outcome, error) {
	call, ok := h.key(&i)
	if !ok || i.Host.Mocks != nil || i.Host.Recorder != nil {
		return h.Handler.Run(ctx, i)
	}
	var outcome scripting.Outcome
	elsewhere := false // another replica has made the result
	result, before, err := h.store.Do(ctx, call, func() (made resultcache.Computed[scripting.Result], err error) {
		shared := h.shared.open(call)
		if outcome, made.Age = shared.get(); outcome.Result != nil && h.isCacheable(outcome) {
			elsewhere = true
		} else if outcome, err = h.Handler.Run(ctx, i); err != nil || !h.isCacheable(outcome) {
			return resultcache.Computed[scripting.Result]{}, err
		} else {
			made.Age = 0
			shared.put(ctx, outcome.Result)
		}
		made.Value, made.Cacheable = copyResult(*outcome.Result), true
		made.Size = len(made.Value.JSON) + len(made.Value.Content)
		return made, nil
	})
	if i.Cached != nil && err == nil && (before || elsewhere) {
		*i.Cached = true
	}
	if err != nil || !before {
		return outcome, err
	}
	result = copyResult(result)
	return scripting.Outcome{Result: &result}, nil
}

// isCacheable reports whether an outcome is a valid result.
func (h *cachedHandler) isCacheable(o scripting.Outcome) bool {
	if o.Result == nil || o.Failure != nil || o.Suspended != nil {
		return false
	}
	if output := h.item.Output; output != nil && !output.Trusted() {
		value := o.Result.JSON
		if len(value) == 0 {
			value = []byte("null")
		}
		return len(output.Validate(value)) == 0
	}
	return true
}

// copyResult returns a deep copy of a result.
func copyResult(r scripting.Result) scripting.Result {
	r.JSON, r.Content = bytes.Clone(r.JSON), bytes.Clone(r.Content)
	return r
}

// key returns the cache key of a call: a hash of everything that the result may depend on. It
// returns false if the caller cannot be identified.
func (h *cachedHandler) key(i *Invocation) (resultcache.Lookup, bool) {
	c := resultcache.Lookup{StartTime: i.StartTime, TTL: h.cache.TTL}
	c.Item = h.item.Key
	digest := sha256.New()
	digest.Write(h.granted[:])
	if len(h.secrets) > 0 {
		// All secrets are read again in the next generation.
		field(digest, strconv.AppendUint(nil, i.Host.Brokers.Secrets.Generation(), 10))
	}
	for _, name := range h.secrets {
		field(digest, []byte(i.Host.SecretKeys[name]))
	}
	field(digest, strconv.AppendInt(nil, int64(i.Bounds.Output), 10))
	if h.cache.Scope == definition.CachePrincipal {
		p := i.Caller.Principal
		session := ""
		if p.Kind == identity.KindAnonymous || p.ID == "" {
			// Anonymous callers are only the same within a session.
			if session = i.Caller.Source.Session; session == "" {
				return c, false
			}
		}
		for _, part := range []string{string(p.Kind), p.Issuer, p.ID, session} {
			field(digest, []byte(part))
		}
	}
	args, err := h.arguments(i)
	if err != nil {
		return c, false // the server has added a value that is not JSON
	}
	field(digest, args)
	digest.Sum(c.Arguments[:0])
	return c, true
}

// arguments returns the arguments as canonical JSON.
func (h *cachedHandler) arguments(i *Invocation) ([]byte, error) {
	if !h.exact {
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

func itemKeys(c *Catalog) map[[32]byte]bool {
	keys := make(map[[32]byte]bool, len(c.Entries[Tools]))
	for _, e := range c.Entries[Tools] {
		keys[e.Key] = true
	}
	return keys
}
