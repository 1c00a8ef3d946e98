package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"slices"
	"sync"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/base/jsontext"
)

// List holds the entries of a kind that one caller may see.
type List struct {
	// Revision is the content hash of the published state.
	Revision string
	// Hash is the content hash of the visible entries: two lists of a kind with
	// the same hash hold the same entries in the same order.
	Hash string
	// Private is true if other callers may see other lists.
	Private bool
	Entries []*Entry
}

// encodePage encodes a page of a list.
func encodePage(k call.Kind, entries []*Entry, e era) []byte {
	size := len(`"":[]`) + len(listMember(k)) + len(entries)
	for _, entry := range entries {
		size += len(entry.listed(e))
	}
	b := append(appendMember(make([]byte, 0, size), listMember(k)), '[')
	for i, entry := range entries {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, entry.listed(e)...)
	}
	return slices.Clip(append(b, ']'))
}

func lister(k call.Kind) func(context.Context, *request) (*result, *fault) {
	return func(ctx context.Context, req *request) (*result, *fault) { return req.list(ctx, k) }
}

// list returns a page (2026-07-28 server/utilities/pagination).
func (req *request) list(ctx context.Context, k call.Kind) (*result, *fault) {
	caller, err := req.caller()
	if err != nil {
		return nil, req.claimFault(caller, err)
	}
	list := req.server.backend.List(ctx, k, caller)
	from, f := req.listStart(&list)
	if f != nil {
		return nil, f
	}
	to := min(from+req.server.options.PageSize, len(list.Entries))
	r := &result{revision: list.Revision}
	r.members = req.server.pages.get(pageKey{k, list.Hash, req.era, from, to}, func() []byte {
		return encodePage(k, list.Entries[from:to], req.era)
	})
	if to < len(list.Entries) {
		r.more = append(r.more, ',')
		r.more = jsontext.AppendString(append(r.more, `"nextCursor":`...), cursorAt(list.Hash, to))
	}
	if req.era == modern {
		r.more = appendCaching(r.more, 0, list.Private)
	} else {
		req.origin.session.seen[k].Store(&list.Hash)
	}
	return r, nil
}

func (req *request) listStart(list *List) (int, *fault) {
	cursor := jsontext.Get(req.params, "cursor")
	if jsontext.IsNull(cursor) {
		return 0, nil
	}
	at, ok := jsontext.Text(cursor)
	if !ok {
		return 0, invalidParams("params.cursor must be a string")
	}
	if at == "" {
		return 0, nil
	}
	from, ok := readCursor(list.Hash, at)
	if !ok || from >= len(list.Entries) {
		return 0, invalidParams("params.cursor is not of this list, which may have changed: begin without a cursor")
	}
	return from, nil
}

// kinds is the number of values of [call.Kind].
const kinds = 4

// listMember returns the name of the list in the result for the kind.
func listMember(k call.Kind) string {
	return [kinds]string{"tools", "resources", "resourceTemplates", "prompts"}[k]
}

const (
	// pageBytes bounds the cached pages, in bytes.
	pageBytes = 32 << 20
	// pageCost is the cost of a page in addition to its bytes.
	pageCost = 256
)

// pageCache caches encoded pages of lists, so that a list requested by many
// clients is encoded once.
type pageCache struct {
	mu    sync.Mutex
	byKey map[pageKey][]byte
	bytes int
}

// pageKey identifies a page: the kind and the hash of a list, the era, and the
// range of entries.
type pageKey struct {
	kind     call.Kind
	hash     string
	era      era
	from, to int
}

func newPageCache() *pageCache { return &pageCache{byKey: map[pageKey][]byte{}} }

// get returns the cached page, or encodes it. A page without a hash is not
// cached.
func (p *pageCache) get(key pageKey, encode func() []byte) []byte {
	p.mu.Lock()
	page, ok := p.byKey[key]
	p.mu.Unlock()
	if ok {
		return page
	}
	page = encode()
	if key.hash != "" {
		p.store(key, page)
	}
	return page
}

// store adds a page. At the limit it drops all other pages: most of them belong
// to lists that are no longer served.
func (p *pageCache) store(key pageKey, page []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bytes+len(page)+pageCost > pageBytes {
		clear(p.byKey)
		p.bytes = 0
	}
	if _, known := p.byKey[key]; !known {
		p.byKey[key] = page
		p.bytes += len(page) + pageCost
	}
}

// cursorAt returns an opaque cursor to an index of the list with the hash
// (2026-07-28 server/utilities/pagination). It is invalid for any other list.
func cursorAt(hash string, index int) string {
	sum := sha256.Sum256([]byte(hash))
	return base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint32(sum[:8], uint32(index)))
}

// readCursor returns the index of a cursor; false if it belongs to another
// list.
func readCursor(hash, cursor string) (int, bool) {
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || len(b) != 12 {
		return 0, false
	}
	index := int(binary.BigEndian.Uint32(b[8:]))
	return index, cursorAt(hash, index) == cursor
}
