package hclfile

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/diag"
)

// alsoCalled maps words that people know from elsewhere to the arguments and
// blocks that they may mean here. The first that may stand in a block is meant.
var alsoCalled = map[string][]string{
	"tools": {"call"}, "environment": {"env"},
	"url": {"uri", "uri_template", "src"}, "uri": {"uri_template", "uri_prefix"}, "prefix": {"uri_prefix"},
	"content": {"text"}, "contents": {"text"}, "body": {"run"}, "code": {"run"}, "script": {"run"},
	"blob": {"base64"}, "data": {"base64"}, "path": {"root", "file"}, "dir": {"root"}, "folder": {"root", "resource_folder"},
	"template": {"uri_template", "resource_template"}, "text": {"message"}, "messages": {"message"}, "enum": {"values"},
	"input": {"argument", "param"}, "argument": {"param", "input"}, "param": {"argument", "input"}, "variable": {"param"},
}

// meaning returns what may stand in the block and was most likely meant by a
// name that may not, or "".
func (r *rule) meaning(written string) string {
	return cmp.Or(r.synonym(written), diag.Suggest(written, r.names()))
}

// synonym returns what may stand in the block and is also called so, or "".
func (r *rule) synonym(written string) string {
	names := r.names()
	for _, other := range alsoCalled[written] {
		if slices.Contains(names, other) {
			return other
		}
	}
	return ""
}

// didYouMean asks whether that was meant; it returns "" when nothing was.
func (r *rule) didYouMean(written string) string {
	if meaning := r.meaning(written); meaning != "" {
		return fmt.Sprintf("did you mean %q?", meaning)
	}
	return ""
}

// meant reports whether body holds one of the names, or one that is reported as
// one of them written wrong.
func (d *decoder) meant(body *hclsyntax.Body, r *rule, names ...string) bool {
	near := func(written string) bool {
		if r.arg(written) == nil && !r.hasBlock(written) {
			written = r.meaning(written)
		}
		return slices.Contains(names, written)
	}
	for name := range body.Attributes {
		if near(name) {
			return true
		}
	}
	return slices.ContainsFunc(body.Blocks, func(b *hclsyntax.Block) bool { return near(b.Type) })
}
