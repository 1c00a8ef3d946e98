package hclfile

import (
	"time"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/internal/language/uritemplate"
)

// DefaultAskTimeout is how long a call waits for a person when its definition
// does not say.
const DefaultAskTimeout = 5 * time.Minute

// maxAskTimeout is how long a call can wait for its client at most, which is
// how long the seal of what it waits for holds.
const maxAskTimeout = 10 * time.Minute

// Call is what a definition says of every call of it.
type Call struct {
	// Labels are for policies; clients never see them.
	Labels map[string]string
	Bounds
	// AskTimeout is the time in which the client must have answered what it was
	// asked.
	AskTimeout time.Duration
	Grant      grant.Set
	// GrantRanges maps an object such as "http.crm" to its block.
	GrantRanges map[string]diag.Range
}

// Annotations tell clients what content is good for.
type Annotations struct {
	// Audience holds [User] and [Assistant], each at most once.
	Audience []string
	// Priority lies from 0 to 1; nil means that the file does not say.
	Priority *float64
}

// Content is what stays the same until the files change.
type Content struct {
	Bytes []byte
	// Binary content is sent in base64. What is not binary is UTF-8.
	Binary bool
	// MIMEType is never empty.
	MIMEType string
	// Path is the file that the content was read from, relative to the tools
	// root, and "" for content that stands in the definition itself.
	Path string
}

// Resource is a resource block. Exactly one of Content and Run is set.
type Resource struct {
	Name, URI, Title, Description string
	// MIMEType is "" only when the body decides.
	MIMEType string
	// Size is in bytes, nil when the body decides.
	Size        *int64
	Annotations *Annotations
	Icons       []Icon
	Call

	Content *Content
	Run     *Body

	Range, NameRange, URIRange diag.Range
	Hashes
}

// Folder is a resource_folder block: the files of a folder as resources.
type Folder struct {
	Name, Description string
	// Root is relative to the tools root; empty when it was reported.
	Root string
	// Glob and Exclude are patterns of paths below Root; see [Folder.Offers].
	Glob, Exclude []string
	// URIPrefix stands before the path in the URI of each file.
	URIPrefix string
	// MIMETypes are types by extension, in lower case with the dot, that win
	// over those that are known.
	MIMETypes map[string]string
	// MaxFile is in bytes. Larger files are not offered.
	MaxFile     int64
	Labels      map[string]string
	Annotations *Annotations
	Icons       []Icon

	Range, NameRange, RootRange, PrefixRange diag.Range
	Hashes
}

// Template is a resource_template block. Exactly one of Text and Run is set.
type Template struct {
	Name, Title, Description string
	URITemplate              *uritemplate.Template
	// Params are the variables of URITemplate in its order.
	Params []Param
	// MIMEType is "" only when the body decides.
	MIMEType    string
	Annotations *Annotations
	Icons       []Icon
	Call

	// Text holds the names of Params.
	Text Phrase
	Run  *Body

	Range, NameRange, URIRange diag.Range
	Hashes
}

// Param is a variable of a [Template].
type Param struct {
	Name, Description string
	// Pattern is an RE2 pattern that the value must match, "" for any value.
	Pattern string
	// Complete is nil when nothing completes the value.
	Complete *Complete
	// Range is that of the param block, or else of the template.
	Range diag.Range
}
