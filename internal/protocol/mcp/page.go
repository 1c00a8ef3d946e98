package mcp

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"sync"

	"github.com/mcpd/mcpd/call"
)

const (
	// pageBytes bounds the encoded pages that are kept, in bytes.
	pageBytes = 32 << 20
	// pageCost is what a page costs beside its own bytes.
	pageCost = 256
)

// pages keeps encoded pages of lists, so that a list which many clients ask
// for is joined once.
type pages struct {
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

func newPages() *pages { return &pages{byKey: map[pageKey][]byte{}} }

// get returns the page, and has it encoded when it is not known. A page without
// a hash is not kept.
func (p *pages) get(key pageKey, encode func() []byte) []byte {
	p.mu.Lock()
	page, ok := p.byKey[key]
	p.mu.Unlock()
	if ok {
		return page
	}
	page = encode()
	if key.hash != "" {
		p.keep(key, page)
	}
	return page
}

// keep adds a page. When there are too many, all others are forgotten: most of
// them are of lists that are not served any more.
func (p *pages) keep(key pageKey, page []byte) {
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
