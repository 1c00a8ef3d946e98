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

// List is what one caller may see of a kind.
type List struct {
	// Revision is the content hash of the published state.
	Revision string
	// Hash is the content hash of the visible entries: two lists of a kind
	// with the same hash hold the same entries in the same order.
	Hash string
	// Private says that other callers may see other lists.
	Private bool
	Entries []*Entry
}

// pageOf encodes a page of a list.
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
	return func(ctx context.Context, c *request) (*result, *fault) { return c.list(ctx, k) }
}

// list answers with a page (2026-07-28 server/utilities/pagination).
func (c *request) list(ctx context.Context, k call.Kind) (*result, *fault) {
	caller, err := c.caller()
	if err != nil {
		return nil, c.claimFault(caller, err)
	}
	list := c.server.backend.List(ctx, k, caller)
	from, f := c.listStart(&list)
	if f != nil {
		return nil, f
	}
	to := min(from+c.server.options.PageSize, len(list.Entries))
	r := &result{revision: list.Revision}
	r.members = c.server.pages.get(pageKey{k, list.Hash, c.era, from, to}, func() []byte {
		return encodePage(k, list.Entries[from:to], c.era)
	})
	if to < len(list.Entries) {
		r.more = append(r.more, ',')
		r.more = jsontext.AppendString(append(r.more, `"nextCursor":`...), cursorAt(list.Hash, to))
	}
	if c.era == modern {
		r.more = appendCaching(r.more, 0, list.Private)
	} else {
		c.origin.session.seen[k].Store(&list.Hash)
	}
	return r, nil
}

func (c *request) listStart(list *List) (int, *fault) {
	cursor := jsontext.Get(c.params, "cursor")
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

// listMember is the name of the list in the answer that lists the kind.
func listMember(k call.Kind) string {
	return [kinds]string{"tools", "resources", "resourceTemplates", "prompts"}[k]
}

const (
	// pageBytes bounds the encoded pages that are kept, in bytes.
	pageBytes = 32 << 20
	// pageCost is what a page costs beside its own bytes.
	pageCost = 256
)

// pages keeps encoded pages of lists, so that a list which many clients ask
// for is joined once.
type pageCache struct {
	mu    sync.Mutex
	byKey map[pageKey][]byte
	bytes int
}

// pageKey names a page: the kind and the hash of a list, and which part of it
// for whom.
type pageKey struct {
	kind     call.Kind
	hash     string
	era      era
	from, to int
}

func newPageCache() *pageCache { return &pageCache{byKey: map[pageKey][]byte{}} }

// get returns the page, and has it encoded when it is not known. A page without
// a hash is not kept.
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

// keep adds a page. When there are too many, all others are forgotten: most of
// them are of lists that are not served any more.
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
// (2026-07-28 server/utilities/pagination). It is of no use for another list.
func cursorAt(hash string, index int) string {
	sum := sha256.Sum256([]byte(hash))
	return base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint32(sum[:8], uint32(index)))
}

// readCursor returns the index of a cursor; false when it is not of the list.
func readCursor(hash, cursor string) (int, bool) {
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || len(b) != 12 {
		return 0, false
	}
	index := int(binary.BigEndian.Uint32(b[8:]))
	return index, cursorAt(hash, index) == cursor
}
