package hclfile

import (
	"fmt"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/internal/language/uritemplate"
)

// Bounds of a resource folder.
const (
	defaultFolderFile = 1 << 20
	maxFolderFile     = 4 << 20
	maxGlobs          = 64
)

// folder decodes a resource_folder block.
func (d *decoder) folder(b *hclsyntax.Block) Folder {
	r := rules["resource_folder"]
	at, nameAt := d.definition(b, "the folder")
	f := Folder{
		Name: b.Labels[0], Range: at, NameRange: nameAt,
		Glob: d.globs(b.Body, "glob"), Exclude: d.globs(b.Body, "exclude"),
		MIMETypes: d.extensions(b.Body), Labels: d.textMap(b.Body, "labels"),
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

// root decodes the path of the folder.
func (d *decoder) root(body *hclsyntax.Body, f *Folder) {
	written, ok := d.text(body, "root")
	if !ok {
		return
	}
	f.RootRange = d.f.rng(body.Attributes["root"].Expr.Range())
	f.Root = path.Join(d.f.dir, written)
	if !isInside(written, f.Root) {
		f.Root = ""
		d.fail("bad-path", f.RootRange, "the path is no folder within the tools folder", "write a path relative to the folder of this file, with forward slashes; the tools folder itself is never a resource")
	}
}

func (d *decoder) uriPrefix(body *hclsyntax.Body, f *Folder) {
	if prefix, ok := d.text(body, "uri_prefix"); ok {
		f.URIPrefix, f.PrefixRange = prefix, d.f.rng(body.Attributes["uri_prefix"].Expr.Range())
		if problem, detail := checkURI(prefix + "x"); problem != "" {
			d.fail("bad-uri", f.PrefixRange, problem, detail)
		} else if !strings.HasSuffix(prefix, "/") && !strings.HasSuffix(prefix, ":") {
			d.fail("bad-uri", f.PrefixRange, "the paths of files would run into the prefix", fmt.Sprintf("end it with a slash: %q", clip(prefix)+"/"))
		}
	}
}

// globs decodes a list of patterns of paths, nil when it is absent.
func (d *decoder) globs(body *hclsyntax.Body, name string) []string {
	list, ok := d.strings(body, name)
	if attr := body.Attributes[name]; ok && (len(list) == 0 || len(list) > maxGlobs) {
		d.fail("bad-value", d.f.rng(attr.Expr.Range()), fmt.Sprintf("%q holds %s", name, count(len(list), "pattern")), fmt.Sprintf("write 1 to %d of them, or remove it", maxGlobs))
	}
	for _, e := range list {
		if !isGlob(e.text) {
			d.fail("bad-value", d.f.rng(e.where), "this is not a pattern of paths", "write a path relative to \"root\", with * within a name and ** for any folders, such as \"**/*.md\"")
		}
	}
	return textsOf(list)
}

// extensions decodes the types of files by their extension.
func (d *decoder) extensions(body *hclsyntax.Body) map[string]string {
	written := d.textMap(body, "mime_types")
	if written == nil {
		return nil
	}
	whole := body.Attributes["mime_types"].Expr
	members := d.memberExprs(whole)
	types := make(map[string]string, len(written))
	for _, extension := range slices.Sorted(maps.Keys(written)) {
		key, value, mimeType := whole, whole, written[extension]
		if m, ok := members[extension]; ok {
			key, value = m.KeyExpr, m.ValueExpr
		}
		if !strings.HasPrefix(extension, ".") || strings.ContainsAny(extension, "/*") || path.Ext(extension) != extension {
			d.fail("bad-value", d.f.rng(key.Range()), d.eval.show(extension)+" is no extension", "write the last dot and what follows, such as { \".md\" = \"text/markdown\" }")
		} else if !isMIMEType(mimeType) {
			d.fail("bad-value", d.f.rng(value.Range()), "this is not a MIME type", "write a type and a subtype, such as \"text/markdown\"")
		}
		types[strings.ToLower(extension)] = mimeType
	}
	return types
}

// Offers reports whether a file of the folder is a resource, by its path below
// Root. Tool files never are, nor is one whose URI would be too long to read.
func (f *Folder) Offers(name string) bool {
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
		if c := name[i]; c < 0x80 && (isWord(c) || strings.IndexByte("-.~/", c) >= 0) {
			uri = append(uri, c)
		} else {
			uri = append(uri, '%', hex[c>>4], hex[c&15])
		}
	}
	return string(uri)
}

// File returns the path below Root that a URI stands for, if it stands for one.
func (f *Folder) File(uri string) (string, bool) {
	rest, ok := strings.CutPrefix(uri, f.URIPrefix)
	if !ok {
		return "", false
	}
	name, err := url.PathUnescape(rest)
	if err != nil || !isInside(name, path.Clean(name)) || path.Clean(name) != name || !f.Offers(name) {
		return "", false
	}
	return name, true
}

// Content returns what a file of the folder is served as.
func (f *Folder) Content(name string, content []byte) Content {
	c := Content{Bytes: content, Path: path.Join(f.Root, name), MIMEType: f.MIMETypes[strings.ToLower(path.Ext(name))]}
	c.settle()
	return c
}

// isGlob reports whether s is a pattern of paths: relative, with * for a run
// of characters and ? for one within a name, and ** alone for any folders.
func isGlob(s string) bool {
	if s == "" || len(s) > maxPatternName || strings.ContainsAny(s, "\\\x00") {
		return false
	}
	for part := range strings.SplitSeq(s, "/") {
		if part == "" || part == "." || part == ".." || part != "**" && strings.Contains(part, "**") {
			return false
		}
	}
	return true
}

// matchGlob reports whether a path matches a pattern of [isGlob].
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

// matchRun reports whether n items match a pattern of m, of which those that
// are stars stand for any run of items. It asks fits at most m times n times.
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
