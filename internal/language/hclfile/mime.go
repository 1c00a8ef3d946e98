package hclfile

import (
	"bytes"
	"mime"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// The types of content whose file says nothing else.
const (
	plainType  = "text/plain"
	binaryType = "application/octet-stream"
)

// mimeTypes are the types of files by their extension. The table is our own, so
// that a folder means the same on every machine.
var mimeTypes = map[string]string{
	".txt": plainType, ".log": plainType, ".md": "text/markdown", ".html": "text/html", ".htm": "text/html",
	".css": "text/css", ".csv": "text/csv", ".tsv": "text/tab-separated-values", ".xml": "application/xml",
	".js": "text/javascript", ".mjs": "text/javascript", ".ts": "text/typescript", ".py": "text/x-python",
	".go": "text/x-go", ".java": "text/x-java", ".rs": "text/x-rust", ".sh": "application/x-sh", ".sql": "application/sql",
	".json": "application/json", ".jsonl": "application/jsonl", ".yaml": "application/yaml", ".yml": "application/yaml",
	".toml": "application/toml", ".hcl": "text/x-hcl", ".proto": "text/x-protobuf", ".graphql": "application/graphql",
	".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp",
	".svg": "image/svg+xml", ".avif": "image/avif", ".ico": "image/x-icon", ".bmp": "image/bmp", ".tiff": "image/tiff",
	".mp3": "audio/mpeg", ".wav": "audio/wav", ".ogg": "audio/ogg", ".flac": "audio/flac", ".m4a": "audio/mp4",
	".mp4": "video/mp4", ".webm": "video/webm", ".pdf": "application/pdf", ".zip": "application/zip", ".gz": "application/gzip",
	".wasm": "application/wasm", ".woff2": "font/woff2",
}

// typeOfFile returns the type of a file by its name, or else by its content.
func typeOfFile(name string, content []byte) string {
	if known := mimeTypes[strings.ToLower(path.Ext(name))]; known != "" {
		return known
	}
	if isText(content) {
		return plainType
	}
	return binaryType
}

func isText(content []byte) bool { return utf8.Valid(content) && bytes.IndexByte(content, 0) < 0 }

// isTextual reports whether content of a type is for reading.
func isTextual(mimeType string) bool {
	base, _, _ := strings.Cut(mimeType, ";")
	base = strings.ToLower(strings.TrimSpace(base))
	if strings.HasPrefix(base, "text/") || strings.HasSuffix(base, "+json") || strings.HasSuffix(base, "+xml") {
		return true
	}
	kind, name, _ := strings.Cut(base, "/")
	switch strings.TrimPrefix(name, "x-") {
	case "json", "jsonl", "ndjson", "xml", "yaml", "toml", "sql", "graphql", "javascript", "typescript", "sh":
		return kind == "application"
	}
	return false
}

// mimeType decodes an argument that is a media type, "" when it is absent or
// was reported.
func (d *decoder) mimeType(body *hclsyntax.Body, name string) string {
	s, ok := d.text(body, name)
	if !ok {
		return ""
	}
	if !isMIMEType(s) {
		d.fail("bad-value", d.f.rng(body.Attributes[name].Expr.Range()), "this is not a MIME type", "write a type and a subtype, such as \"text/markdown\"")
		return ""
	}
	return s
}

// maxMIMEType bounds a media type, in bytes.
const maxMIMEType = 128

// isMIMEType reports whether s is a media type (RFC 9110 section 8.3.1).
func isMIMEType(s string) bool {
	base, _, err := mime.ParseMediaType(s)
	return err == nil && strings.Contains(base, "/") && len(s) <= maxMIMEType
}
