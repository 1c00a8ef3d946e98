package hclfile

import (
	"encoding/base64"
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/internal/language/definition"
)

func (d *decoder) resource(b *hclsyntax.Block) definition.Resource {
	nameAt := d.definition(b, "the resource")
	r := definition.Resource{
		Name: b.Labels[0], NameRange: nameAt,
		Annotations: d.annotationsOf(b.Body), Icons: d.icons(b.Body, rules["resource"]), Call: d.call(b),
	}
	r.Title, _ = d.text(b.Body, "title")
	r.Description, _ = d.text(b.Body, "description")
	if attr := b.Body.Attributes["uri"]; attr != nil {
		r.URI, _ = d.uri(b.Body, "uri")
		r.URIRange = d.f.rng(attr.Expr.Range())
	}
	d.contents(b, &r)
	r.Hashes = d.hashes()
	return r
}

func (d *decoder) contents(b *hclsyntax.Block, r *definition.Resource) {
	switch from := d.exactlyOne(b, rules["resource"], "the resource is empty", "text", "base64", "file", "run"); from {
	case "":
	case "run":
		r.Run, r.MIMEType, r.Size = d.run(b), d.mimeType(b.Body), d.contentSize(b.Body)
	default:
		d.checkUnusedGrant(b)
		d.rejectAttr(b.Body, "size", "the size of static content is known", "remove it")
		if r.Content = d.staticContent(b.Body, from); r.Content != nil {
			size := int64(len(r.Content.Bytes))
			r.MIMEType, r.Size = r.Content.MIMEType, &size
		}
	}
}

// contentSize decodes the size in bytes. It returns nil if the script has no fixed size.
func (d *decoder) contentSize(body *hclsyntax.Body) *int64 {
	n, ok := d.optionalInt(body, "size", 0, math.MaxInt32)
	if size := int64(n); ok {
		return &size
	}
	return nil
}

// staticContent decodes the content of an argument: "text", "base64" or "file". It returns nil
// after it has reported an error.
func (d *decoder) staticContent(body *hclsyntax.Body, from string) *definition.Content {
	c := &definition.Content{MIMEType: d.mimeType(body)}
	ok := false
	switch from {
	case "text":
		var text string
		text, ok = d.text(body, "text")
		c.Bytes = []byte(text)
	case "base64":
		c.Bytes, ok = d.base64(body, "base64")
		c.Binary = true
	case "file":
		c.Path, c.Bytes, ok = d.file(body)
		c.DetectType()
	}
	if !ok {
		return nil
	}
	if c.MIMEType == "" {
		c.MIMEType = definition.PlainType
		if c.Binary {
			c.MIMEType = definition.BinaryType
		}
	}
	return c
}

// base64 decodes standard base64, with or without line breaks.
func (d *decoder) base64(body *hclsyntax.Body, name string) ([]byte, bool) {
	s, ok := d.text(body, name)
	if !ok {
		return nil, false
	}
	content, err := base64.StdEncoding.DecodeString(strings.NewReplacer(" ", "", "\t", "", "\r", "", "\n", "").Replace(s))
	if err != nil {
		d.fail("bad-value", d.f.rng(body.Attributes[name].Expr.Range()), "this is not base64", "encode the bytes in standard base64 with padding, or use \"file\"")
		return nil, false
	}
	return content, true
}

// file reads the file at the path in "file", relative to the directory of the current file. Its
// content can be anything.
func (d *decoder) file(body *hclsyntax.Body) (path string, content []byte, ok bool) {
	attr := body.Attributes["file"]
	if call, ok := attr.Expr.(*hclsyntax.FunctionCallExpr); ok && call.Name == "file" {
		d.fail("wrong-type", d.f.rng(attr.Expr.Range()), "\"file\" takes a path, not text", "write only the path: file = \"x.md\"")
		return "", nil, false
	}
	written, ok := d.text(body, "file")
	if !ok {
		return "", nil, false
	}
	return d.eval.readFile(written, attr.Expr.Range())
}

// Limits of a resource folder.
const (
	defaultFolderFile = 1 << 20
	maxFolderFile     = 4 << 20
	maxGlobs          = 64
)

func (d *decoder) folder(b *hclsyntax.Block) definition.Folder {
	r := rules["resource_folder"]
	nameAt := d.definition(b, "the folder")
	f := definition.Folder{
		Name: b.Labels[0], NameRange: nameAt,
		Glob: d.globs(b.Body, "glob"), Exclude: d.globs(b.Body, "exclude"),
		MIMETypes: d.extensions(b.Body), Labels: d.stringMap(b.Body, "labels"),
		Annotations: d.annotationsOf(b.Body), Icons: d.icons(b.Body, r),
		MaxFile: defaultFolderFile,
	}
	f.Description, _ = d.text(b.Body, "description")
	if f.Glob == nil {
		f.Glob = []string{"**"}
	}
	if n := d.size(b.Body, "max_file", maxFolderFile); n > 0 {
		f.MaxFile = n
	}
	d.root(b.Body, &f)
	d.uriPrefix(b.Body, &f)
	f.Hashes = d.hashes()
	return f
}

func (d *decoder) root(body *hclsyntax.Body, f *definition.Folder) {
	written, ok := d.text(body, "root")
	if !ok {
		return
	}
	f.RootRange = d.f.rng(body.Attributes["root"].Expr.Range())
	f.Root = path.Join(d.f.dir, written)
	if !definition.IsInside(written, f.Root) {
		f.Root = ""
		d.fail("bad-path", f.RootRange, "the path is not a directory in the tools directory", "write a path to a subdirectory, relative to the directory of this file, with forward slashes")
	}
}

func (d *decoder) uriPrefix(body *hclsyntax.Body, f *definition.Folder) {
	if prefix, ok := d.text(body, "uri_prefix"); ok {
		f.URIPrefix, f.PrefixRange = prefix, d.f.rng(body.Attributes["uri_prefix"].Expr.Range())
		if problem, detail := checkURI(prefix + "x"); problem != "" {
			d.fail("bad-uri", f.PrefixRange, problem, detail)
		} else if !strings.HasSuffix(prefix, "/") && !strings.HasSuffix(prefix, ":") {
			d.fail("bad-uri", f.PrefixRange, "the prefix has no separator before the paths of files", fmt.Sprintf("end it with a slash: %q", clip(prefix)+"/"))
		}
	}
}

// globs decodes a list of path patterns. It returns nil if the list is missing.
func (d *decoder) globs(body *hclsyntax.Body, name string) []string {
	list, ok := d.stringList(body, name)
	if attr := body.Attributes[name]; ok && (len(list) == 0 || len(list) > maxGlobs) {
		d.fail("bad-value", d.f.rng(attr.Expr.Range()), fmt.Sprintf("%q contains %s", name, count(len(list), "pattern")), fmt.Sprintf("write 1 to %d of them, or remove it", maxGlobs))
	}
	for _, e := range list {
		if !definition.IsGlob(e.text) {
			d.fail("bad-value", d.f.rng(e.where), "this is not a valid path pattern", "write a path relative to \"root\", with * within a name and ** for any directories, such as \"**/*.md\"")
		}
	}
	return textsOf(list)
}

// extensions decodes the types of files by extension.
func (d *decoder) extensions(body *hclsyntax.Body) map[string]string {
	written := d.stringMap(body, "mime_types")
	if written == nil {
		return nil
	}
	exprs := d.memberExprs(body.Attributes["mime_types"].Expr)
	types := make(map[string]string, len(written))
	for _, extension := range slices.Sorted(maps.Keys(written)) {
		mimeType := written[extension]
		key, value := exprs(extension)
		if !strings.HasPrefix(extension, ".") || strings.ContainsAny(extension, "/*") || path.Ext(extension) != extension {
			d.fail("bad-value", d.f.rng(key.Range()), d.eval.show(extension)+" is not an extension", "write the last dot and the text after it, such as { \".md\" = \"text/markdown\" }")
		} else if !isMIMEType(mimeType) {
			d.fail("bad-value", d.f.rng(value.Range()), "this is not a MIME type", "write a type and a subtype, such as \"text/markdown\"")
		}
		types[strings.ToLower(extension)] = mimeType
	}
	return types
}
