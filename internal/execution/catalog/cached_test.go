package catalog

import (
	"math"
	"testing"
	"time"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/execution/resultcache"
	"github.com/mcpd/mcpd/internal/host"
	"github.com/mcpd/mcpd/internal/host/secrets"
	"github.com/mcpd/mcpd/internal/language/definition"
)

// The test changes the inputs of the cache key one by one.
func TestCachedHandler_secretsInKey(t *testing.T) {
	store := secrets.New(secrets.Options{})
	invoke := func(keys map[string]string, output int) *Invocation {
		i := &Invocation{Args: map[string]any{"a": 1.0}, Leg: Leg{StartTime: time.Unix(9, 0)}}
		i.Caller.Principal = identity.Principal{ID: "ada", Kind: identity.KindLocal}
		i.Host = host.RunHost{Brokers: host.Brokers{Secrets: store}, SecretKeys: keys}
		i.Bounds.Output = output
		return i
	}
	plain := &cachedHandler{item: &Item{}, cache: definition.Cache{TTL: time.Minute, Scope: definition.CachePrincipal}}
	secret := &cachedHandler{item: &Item{}, cache: plain.cache, secrets: []string{"crm"}}
	key := func(b *cachedHandler, keys map[string]string, output int) resultcache.Key {
		c, ok := b.key(invoke(keys, output))
		if !ok {
			t.Fatal("the call has no key")
		}
		return c.Key
	}
	one, other := map[string]string{"crm": "1", "x": "1"}, map[string]string{"crm": "2", "x": "1"}
	first, same := key(secret, one, 0), key(plain, one, 0)
	if key(secret, one, 0) != first || key(secret, map[string]string{"crm": "1"}, 0) != first || key(plain, other, 0) != same {
		t.Error("equal calls have different keys")
	}
	if key(secret, other, 0) == first {
		t.Error("a secret from another source has the same key")
	}
	if key(plain, one, 9) == same {
		t.Error("a result with another output limit has the same key")
	}
	store.Set(nil)
	if key(secret, one, 0) == first {
		t.Error("a secret that is read again has the same key")
	}
	if key(plain, one, 0) != same {
		t.Error("a tool without secrets depends on them")
	}
	unheard := invoke(one, 0)
	unheard.Args["a"] = math.Inf(1)
	if _, ok := plain.key(unheard); ok {
		t.Error("indistinguishable arguments have a key")
	}
	plain.granted[0]++
	if key(plain, one, 0) == same {
		t.Error("a grant that resolves elsewhere has the same key")
	}
}
