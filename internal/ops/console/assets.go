package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"net/http"
	"path"
	"strings"
	"sync"
)

//go:embed assets/*.js assets/*.css assets/*.svg
var assetFiles embed.FS

// assetTypes are the media types of assets by the end of their names.
var assetTypes = map[string]string{".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}

// asset is an embedded file. It does not change.
type asset struct {
	path    string // "/assets/HASH/NAME"
	kind    string // its media type
	hash    string
	content []byte
	packed  []byte // compressed with gzip
}

// packedAssets returns the embedded files with their compressed form, by name. All consoles of a process
// share them.
var packedAssets = sync.OnceValues(packAssets)

func packAssets() (map[string]*asset, error) {
	entries, err := assetFiles.ReadDir("assets")
	if err != nil {
		return nil, fmt.Errorf("read assets: %w", err)
	}
	all := map[string]*asset{}
	for _, entry := range entries {
		content, err := assetFiles.ReadFile("assets/" + entry.Name())
		if err != nil {
			return nil, fmt.Errorf("read assets: %w", err)
		}
		var packed bytes.Buffer
		z, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression) // the level is valid
		if _, err = z.Write(content); err == nil {
			err = z.Close()
		}
		if err != nil {
			return nil, fmt.Errorf("compress assets: %w", err)
		}
		sum := sha256.Sum256(content)
		hash := hex.EncodeToString(sum[:8])
		all[entry.Name()] = &asset{"/assets/" + hash + "/" + entry.Name(), assetTypes[path.Ext(entry.Name())], hash, content, packed.Bytes()}
	}
	return all, nil
}

// serveAsset serves an embedded file. Its address changes with its content, so browsers keep it.
func (c *Console) serveAsset(w http.ResponseWriter, r *http.Request) {
	a := c.assets[r.PathValue("name")]
	if a == nil || a.hash != r.PathValue("hash") {
		http.NotFound(w, r)
		return
	}
	h, tag := w.Header(), `"`+a.hash+`"`
	h.Set("Content-Type", a.kind)
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	h.Set("ETag", tag)
	h.Set("Vary", "Accept-Encoding")
	if strings.Contains(r.Header.Get("If-None-Match"), tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	body := a.content
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		body = a.packed
		h.Set("Content-Encoding", "gzip")
	}
	_, _ = w.Write(body) // HEAD has no body
}
