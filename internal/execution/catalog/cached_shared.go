package catalog

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"time"

	"github.com/mcpd/mcpd/internal/base/jsonguard"
	"github.com/mcpd/mcpd/internal/base/state"
	"github.com/mcpd/mcpd/internal/execution/resultcache"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/scripting"
)

// sharedResults are the results of one tool that all replicas use.
type sharedResults struct {
	store func() state.Results
	now   func() time.Time
	// version is the version of mcpd, as another one may make other results.
	version string
}

// sharedResults returns the shared results of a tool. Only results of the scope server are shared, and
// none of a tool with secrets or environment variables: another replica may have other values,
// and a reload of secrets removes results.
func (o *Options) sharedResults(h *cachedHandler, granted grant.Set) *sharedResults {
	if o.SharedResults == nil || h.cache.Scope != definition.CacheServer || len(h.secrets)+len(granted.Env) > 0 {
		return nil
	}
	return &sharedResults{o.SharedResults, o.Now, o.Server.Version}
}

// sharedResult is the place of one result in the shared store. A nil place has no result and stores none.
type sharedResult struct {
	*sharedResults
	results state.Results
	key     [32]byte
	lookup  resultcache.Lookup
}

// open returns the place for the result of a call; nil if it is not shared.
func (s *sharedResults) open(l resultcache.Lookup) *sharedResult {
	if s == nil {
		return nil
	}
	results := s.store()
	if results == nil {
		return nil
	}
	r := &sharedResult{sharedResults: s, results: results, lookup: l}
	digest := sha256.New()
	for _, part := range [][]byte{{sharedFormat}, []byte(s.version), l.Item[:], l.Arguments[:]} {
		field(digest, part)
	}
	digest.Sum(r.key[:0])
	return r
}

// get returns the result that a replica has stored, and its age at the start of the call. The outcome
// has no result if there is none, or if the store fails.
func (r *sharedResult) get() (o scripting.Outcome, age time.Duration) {
	if r == nil {
		return o, 0
	}
	data, age, err := r.results.Result(r.key)
	if err != nil || data == nil || age >= r.lookup.TTL {
		return o, 0
	}
	if result, ok := decodeResult(data); ok {
		o.Result = &result
	}
	return o, max(age-r.age(), 0)
}

// put stores a result, if the store does not fail.
func (r *sharedResult) put(ctx context.Context, result *scripting.Result) {
	if r == nil || ctx.Err() != nil || len(result.JSON)+len(result.Content) > resultcache.MaxResult {
		return
	}
	if age := r.age(); age < r.lookup.TTL {
		_ = r.results.PutResult(r.key, encodeResult(result), age, r.lookup.TTL) // the next call runs the script
	}
}

// age returns the time since the start of the call.
func (r *sharedResult) age() time.Duration { return max(r.now().Sub(r.lookup.StartTime), 0) }

// sharedFormat is the format of encodeResult: a byte each for the format and the kind, the TTL, the JSON
// with its length, and the content.
const sharedFormat = 1

// resultLimits are the limits of a result.
var resultLimits = jsonguard.Limits{Bytes: resultcache.MaxResult, Depth: 600, Tokens: resultcache.MaxResult, Halves: true}

func encodeResult(r *scripting.Result) []byte {
	b := make([]byte, 0, len(r.JSON)+len(r.Content)+2+2*binary.MaxVarintLen64)
	b = binary.AppendVarint(append(b, sharedFormat, byte(r.Kind)), int64(r.TTL))
	b = append(binary.AppendUvarint(b, uint64(len(r.JSON))), r.JSON...)
	return append(b, r.Content...)
}

// decodeResult decodes untrusted data. It reports whether encodeResult may have written it.
func decodeResult(data []byte) (r scripting.Result, ok bool) {
	if len(data) < 2 || data[0] != sharedFormat {
		return r, false
	}
	r.Kind = scripting.ResultKind(data[1])
	ttl, n := binary.Varint(data[2:])
	if n <= 0 || ttl < 0 {
		return r, false
	}
	r.TTL, data = time.Duration(ttl), data[2+n:]
	size, n := binary.Uvarint(data)
	if n <= 0 || size > uint64(len(data)-n) {
		return r, false
	}
	value, content := data[n:n+int(size)], data[n+int(size):]
	if len(value) > 0 {
		r.JSON = value
	}
	if len(content) > 0 {
		r.Content = content
	}
	for _, text := range [][]byte{r.JSON, r.Content} {
		if text != nil && jsonguard.Check(text, resultLimits) != nil {
			return r, false
		}
	}
	starts := func(text []byte, with byte) bool { return len(text) > 0 && text[0] == with }
	switch r.Kind {
	case scripting.Nothing:
		return r, r.JSON == nil && r.Content == nil
	case scripting.Text:
		return r, starts(r.JSON, '"') && r.Content == nil
	case scripting.Value:
		return r, r.JSON != nil && r.Content == nil
	case scripting.Content:
		return r, starts(r.Content, '[')
	}
	return r, false
}
