package files

import (
	"sync"

	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/scripting"
)

// Folder is a grant, with what one run has used of it. It holds nothing open,
// and is safe for concurrent use.
type Folder struct {
	Grant grant.FS
	// maxFile and maxTotal are the bounds of the grant, in bytes.
	maxFile, maxTotal int64
	maxEntries        int // of a folder that is listed

	mu   sync.Mutex
	used int64 // of maxTotal
}

// Open returns the folder of a grant, of which nothing is used yet.
func Open(g grant.FS) *Folder {
	f := &Folder{Grant: g, maxEntries: 10_000}
	f.maxFile, f.maxTotal = g.Bounds()
	return f
}

// take counts bytes that are about to be read or written.
func (f *Folder) take(given string, n int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n > f.maxTotal-f.used {
		return fault(scripting.TooLarge, given, "one call reads and writes at most %d bytes here (max_total)", f.maxTotal)
	}
	f.used += n
	return nil
}
