package catalog

import (
	"bytes"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/execution/resultcache"
	"github.com/mcpd/mcpd/internal/host"
	"github.com/mcpd/mcpd/internal/host/secrets"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/scripting"
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

func TestDecodeResult(t *testing.T) {
	for _, r := range []scripting.Result{
		{},
		{Kind: scripting.Text, JSON: []byte(`"text"`), TTL: time.Minute},
		{Kind: scripting.Value, JSON: []byte(`{"a":[1,"\ud800"]}`)},
		{Kind: scripting.Content, Content: []byte(`[{"type":"text","text":"x"}]`)},
		{Kind: scripting.Content, JSON: []byte(`{"a":1}`), Content: []byte(`[]`)},
	} {
		data := encodeResult(&r)
		if got, ok := decodeResult(data); !ok || !reflect.DeepEqual(got, r) {
			t.Errorf("%+v becomes %+v, %v", r, got, ok)
		}
		for n := range data {
			if got, ok := decodeResult(data[:n]); ok && r.Kind != scripting.Nothing && reflect.DeepEqual(got, r) {
				t.Errorf("%d bytes of %q are complete", n, data)
			}
			for bit := range 8 {
				damaged := bytes.Clone(data)
				damaged[n] ^= 1 << bit
				decodeResult(damaged)
			}
		}
	}
}

func TestDecodeResult_errors(t *testing.T) {
	long := bytes.Repeat([]byte(" "), resultcache.MaxResult)
	for name, data := range map[string][]byte{
		"empty": nil, "other format": {2, 0, 0, 0}, "other kind": {1, 4, 0, 0}, "no TTL": {1, 0}, "negative TTL": {1, 0, 1, 0}, "no length": {1, 0, 0},
		"endless number": append([]byte{1, 1}, bytes.Repeat([]byte{0xff}, 20)...), "large length": {1, 1, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1},
		"cut": {1, 1, 0, 4, '"', 'a'}, "nothing with a value": {1, 0, 0, 1, '1'}, "text of a number": {1, 1, 0, 1, '1'}, "text with content": {1, 1, 0, 2, '"', '"', '[', ']'},
		"value without JSON": {1, 2, 0, 0}, "no JSON": {1, 2, 0, 1, '{'}, "two names": append([]byte{1, 2, 0, 13}, `{"a":1,"a":2}`...),
		"content that is no list": {1, 3, 0, 0, '1'}, "content without blocks": {1, 3, 0, 1, '1'}, "bad UTF-8": {1, 1, 0, 3, '"', 0xff, '"'},
		"large":  encodeResult(&scripting.Result{Kind: scripting.Value, JSON: append(long, '1')}),
		"nested": encodeResult(&scripting.Result{Kind: scripting.Value, JSON: append(bytes.Repeat([]byte("["), 5000), bytes.Repeat([]byte("]"), 5000)...)}),
	} {
		if got, ok := decodeResult(data); ok {
			t.Errorf("%s becomes %+v", name, got)
		}
	}
}

func TestRejectsNull(t *testing.T) {
	for schema, want := range map[string]bool{
		``: false, `{}`: false, `true`: false, `{"type":"null"}`: false, `{"type":["object","null"]}`: false,
		`{"type":"object"}`: true, `{"type":["string","integer"]}`: true,
	} {
		if got := rejectsNull([]byte(schema)); got != want {
			t.Errorf("%s: %v", schema, got)
		}
	}
}
