package rest

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"sync"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
)

// capabilities answers GET /mcp/capabilities.
func (h *handler) capabilities(w *responder, r *http.Request, headers *headers) {
	caller, _, ok := h.caller(w, r, headers)
	if !ok {
		return
	}
	if headers.refused != nil {
		writeError(w, headers.refused)
		return
	}
	list := h.backend.List(r.Context(), call.Tools, caller)
	page := h.joined.page(h.backend.Info(), list)
	setHeader(w, "Etag", page.etag)
	// Anyone may keep a copy, and must ask each time whether it still holds.
	cache := "no-cache"
	if list.Private {
		cache = "private, no-cache"
	}
	setHeader(w, "Cache-Control", cache)
	if notModified(r.Header["If-None-Match"], page.etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	write(w, http.StatusOK, page.body)
}

// notModified reports whether the client has the current copy (RFC 9110
// section 13.1.2).
func notModified(values []string, etag string) bool {
	for _, value := range values {
		for tag := range strings.SplitSeq(value, ",") {
			tag = strings.TrimSpace(tag)
			if tag == "*" || strings.TrimPrefix(tag, "W/") == etag {
				return true
			}
		}
	}
	return false
}

// page is an encoded answer.
type page struct {
	body []byte
	etag string
}

// pageKey is all that a page is made of.
type pageKey struct{ server, version, hash string }

// maxPages bounds how many pages are kept: one for each list that callers see.
const maxPages = 16

// joined caches pages. The zero value is empty.
type joined struct {
	mu    sync.Mutex
	pages map[pageKey]page
}

// page returns the page of a list, joined of its entries once per hash.
func (j *joined) page(info mcp.Info, list mcp.List) page {
	key := pageKey{info.Name, info.Version, list.Hash}
	j.mu.Lock()
	defer j.mu.Unlock()
	if p, ok := j.pages[key]; ok {
		return p
	}
	if j.pages == nil {
		j.pages = map[pageKey]page{}
	}
	if len(j.pages) == maxPages {
		clear(j.pages) // most are of lists that are not served any more
	}
	p := newPage(info, list.Tools)
	j.pages[key] = p
	return p
}

func newPage(info mcp.Info, tools []*mcp.Tool) page {
	size := len(`{"server":,"version":,"tools":[]}`) + 2*len(info.Name) + 2*len(info.Version)
	for _, t := range tools {
		size += len(t.Capability()) + len(",")
	}
	body := make([]byte, 0, size)
	body = append(append(body, `{"server":`...), quote(info.Name)...)
	body = append(append(body, `,"version":`...), quote(info.Version)...)
	body = append(body, `,"tools":[`...)
	for i, t := range tools {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, t.Capability()...)
	}
	body = append(body, "]}"...)
	sum := sha256.Sum256(body)
	return page{body: body, etag: `"` + base64.RawURLEncoding.EncodeToString(sum[:18]) + `"`}
}

// quote returns s as a JSON string.
func quote(s string) []byte {
	b, _ := json.Marshal(s) // a string always encodes
	return b
}
