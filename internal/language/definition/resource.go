package definition

import (
	"bytes"
	"net/url"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/uritemplate"
)

// Annotations describe the use of content to clients.
type Annotations struct {
	// Audience holds [User] and [Assistant], each at most once.
	Audience []string
	// Priority is between 0 and 1; nil means unknown.
	Priority *float64
}

// Content is content that is constant until the files change.
type Content struct {
	Bytes []byte
	// Binary content is sent in base64. Other content is UTF-8.
	Binary bool
	// MIMEType is never empty.
	MIMEType string
	// Path is the source file of the content, relative to the tools root. It is empty for
	// inline content.
	Path string
}

// Resource is a resource block. Exactly one of Content and Run is set.
type Resource struct {
	Name, URI, Title, Description string
	// MIMEType is empty only if the script decides.
	MIMEType string
	// Size is in bytes, and nil if the script decides.
	Size        *int64
	Annotations *Annotations
	Icons       []Icon
	Call

	Content *Content
	Run     *Code

	NameRange, URIRange diag.Range
	Hashes
}

// Folder is a resource_folder block: the files of a directory as resources.
type Folder struct {
	Name, Description string
	// Root is relative to the tools root. It is empty if it was invalid.
	Root string
	// Glob and Exclude are patterns of paths below Root; see [Folder.Includes].
	Glob, Exclude []string
	// URIPrefix precedes the path in the URI of each file.
	URIPrefix string
	// MIMETypes maps extensions to types, in lower case with the dot. They override the
	// built-in types.
	MIMETypes map[string]string
	// MaxFile is in bytes. Larger files are excluded.
	MaxFile     int64
	Labels      map[string]string
	Annotations *Annotations
	Icons       []Icon

	NameRange, RootRange, PrefixRange diag.Range
	Hashes
}

// Template is a resource_template block. Exactly one of Text and Run is set.
type Template struct {
	Name, Title, Description string
	URITemplate              *uritemplate.Template
	// Params are the variables of URITemplate, in order.
	Params []Param
	// MIMEType is empty only if the script decides.
	MIMEType    string
	Annotations *Annotations
	Icons       []Icon
	Call

	// The placeholders of Text are Params.
	Text TextTemplate
	Run  *Code

	NameRange, URIRange diag.Range
	Hashes
}

// Param is a variable of a [Template].
type Param struct {
	Name, Description string
	// Pattern is an RE2 pattern for the value; empty accepts any value.
	Pattern string
	// Complete is nil if the value has no completion.
	Complete *Complete
	// Range is the param block, or the template if there is none.
	Range diag.Range
}

// DetectType sets the missing MIME type of a file and whether it is binary.
func (c *Content) DetectType() {
	if c.MIMEType == "" {
		c.MIMEType = TypeOfFile(c.Path, c.Bytes)
	}
	c.Binary = !IsText(c.Bytes) || !IsTextual(c.MIMEType)
}

// The default types of content.
const (
	PlainType  = "text/plain"
	BinaryType = "application/octet-stream"
)

// mimeTypes maps extensions to types. The table is built in, so that a folder has the same
// types on every machine.
var mimeTypes = map[string]string{
	".txt": PlainType, ".log": PlainType, ".md": "text/markdown", ".html": "text/html", ".htm": "text/html",
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

// TypeOfFile returns the type of a file by its extension, or else by its content.
func TypeOfFile(name string, content []byte) string {
	if known := mimeTypes[strings.ToLower(path.Ext(name))]; known != "" {
		return known
	}
	if IsText(content) {
		return PlainType
	}
	return BinaryType
}

func IsText(content []byte) bool { return utf8.Valid(content) && bytes.IndexByte(content, 0) < 0 }

// IsTextual reports whether content of a type is text.
func IsTextual(mimeType string) bool {
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

// Includes reports whether a file is a resource, by its path below Root. Tool files and files
// with too long URIs are not.
func (f *Folder) Includes(name string) bool {
	if strings.HasSuffix(name, ".hcl") || strings.HasSuffix(name, ".hcl.json") {
		return false
	}
	matches := func(patterns []string) bool {
		for _, p := range patterns {
			if matchGlob(p, name) {
				return true
			}
		}
		return false
	}
	return matches(f.Glob) && !matches(f.Exclude) && len(f.URI(name)) <= uritemplate.MaxURI
}

// URI returns the URI of a file, by its path below Root.
func (f *Folder) URI(name string) string {
	const hex = "0123456789ABCDEF"
	uri := []byte(f.URIPrefix)
	for i := range len(name) {
		if c := name[i]; strings.IndexByte(WordCharacters+"-.~/", c) >= 0 {
			uri = append(uri, c)
		} else {
			uri = append(uri, '%', hex[c>>4], hex[c&15])
		}
	}
	return string(uri)
}

// PathOf returns the path below Root for a URI, and false if the URI is not in the folder.
func (f *Folder) PathOf(uri string) (string, bool) {
	rest, ok := strings.CutPrefix(uri, f.URIPrefix)
	if !ok {
		return "", false
	}
	name, err := url.PathUnescape(rest)
	if err != nil || !IsInside(name, path.Clean(name)) || path.Clean(name) != name || !f.Includes(name) {
		return "", false
	}
	return name, true
}

// Content returns the content of a file in the folder.
func (f *Folder) Content(name string, content []byte) Content {
	c := Content{Bytes: content, Path: path.Join(f.Root, name), MIMEType: f.MIMETypes[strings.ToLower(path.Ext(name))]}
	c.DetectType()
	return c
}

// IsGlob reports whether s is a pattern of relative paths. In a name, * matches any characters
// and ? one character. As a whole name, ** matches any directories.
func IsGlob(s string) bool {
	if s == "" || len(s) > MaxPatternName || strings.ContainsAny(s, "\\\x00") {
		return false
	}
	for part := range strings.SplitSeq(s, "/") {
		if part == "" || part == "." || part == ".." || part != "**" && strings.Contains(part, "**") {
			return false
		}
	}
	return true
}

// matchGlob reports whether a path matches a pattern.
func matchGlob(pattern, path string) bool {
	parts, names := strings.Split(pattern, "/"), strings.Split(path, "/")
	return matchRun(len(parts), len(names),
		func(i int) bool { return parts[i] == "**" },
		func(i, j int) bool { return matchName(parts[i], names[j]) })
}

func matchName(pattern, name string) bool {
	p, n := []rune(pattern), []rune(name)
	return matchRun(len(p), len(n),
		func(i int) bool { return p[i] == '*' },
		func(i, j int) bool { return p[i] == '?' || p[i] == n[j] })
}

// matchRun reports whether n items match a pattern of m elements. A star matches any number of
// items. It calls fits at most m*n times.
func matchRun(m, n int, star func(i int) bool, fits func(i, j int) bool) bool {
	i, j, behind, from := 0, 0, -1, 0
	for j < n {
		switch {
		case i < m && star(i):
			i++
			behind, from = i, j
		case i < m && fits(i, j):
			i, j = i+1, j+1
		case behind >= 0:
			from++
			i, j = behind, from
		default:
			return false
		}
	}
	for i < m && star(i) {
		i++
	}
	return i == m
}

// Complete is the completion of a value. Exactly one of Values and Run is set.
type Complete struct {
	Values []string
	Run    *Code
}

// The roles of a conversation, in audiences and in messages.
const (
	User      = "user"
	Assistant = "assistant"
)

// IsInside reports whether a path is in the tools directory. joined is the path joined to its
// base directory.
func IsInside(written, joined string) bool {
	return written != "" && !path.IsAbs(written) && !strings.ContainsAny(written, "\\\x00") &&
		joined != ".." && !strings.HasPrefix(joined, "../") && joined != "."
}
