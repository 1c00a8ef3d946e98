package hclfile

import (
	"fmt"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/grant"
)

// Bounds of an fs grant.
const (
	maxGrantedFile  = 16 << 20
	maxGrantedTotal = 64 << 20
	maxRoot         = 4096
)

// fs decodes an fs block. It notes the place of its root as "fs.NAME.root".
func (d *decoder) fs(b *hclsyntax.Block, ranges map[string]diag.Range) grant.FS {
	r := rules["fs"]
	d.checkBody(b)
	body := d.literalOnly(b.Body, r)
	g := grant.FS{Name: b.Labels[0]}
	if written, ok := d.text(body, "root"); ok {
		where := d.f.rng(body.Attributes["root"].Expr.Range())
		g.Root, g.Relative = d.folderPath(written, where), !filepath.IsAbs(written)
		ranges["fs."+g.Name+".root"] = where
	}
	mode, _ := d.oneOf(body, "mode", "ro", "rw")
	g.Write = mode == "rw"
	g.MaxFile = d.size(body, "max_file", maxGrantedFile)
	g.MaxTotal = d.size(body, "max_total", maxGrantedTotal)
	if g.MaxTotal > 0 && g.MaxFile > g.MaxTotal {
		d.fail("contradiction", d.f.rng(body.Attributes["max_file"].Expr.Range()), "one file may have more than all that a call reads and writes", "raise \"max_total\", or lower \"max_file\"")
	}
	return g
}

// folderPath returns the path of a folder that is written in the file, absolute
// where that can be known, "" for one that it reports.
func (d *decoder) folderPath(written string, where diag.Range) string {
	switch {
	case written == "":
		d.fail("bad-grant", where, "the path is empty", "write a path relative to the folder of this file, such as \"logs\", or an absolute one")
	case strings.HasPrefix(written, "~"):
		d.fail("bad-grant", where, "~ means no folder here", "write the path out")
	case len(written) > maxRoot || strings.ContainsFunc(written, unicode.IsControl):
		d.fail("bad-grant", where, "this is not the path of a folder", fmt.Sprintf("write at most %d bytes, without control characters", maxRoot))
	case filepath.IsAbs(written):
		return filepath.Clean(written)
	default:
		return filepath.Join(d.f.folder, filepath.FromSlash(written))
	}
	return ""
}

// ceilingRoots decodes the folders within which roots may lie, nil when the
// ceiling does not say.
func (d *decoder) ceilingRoots(body *hclsyntax.Body, name string) []Name {
	return d.ceilingList(body, name, func(e element) (string, bool) {
		path := d.folderPath(e.text, d.f.rng(e.where))
		return path, path != ""
	})
}

// ceilingList decodes a list of a ceiling, nil when the ceiling does not say.
// accept returns what an item says, and false for one that it reports.
func (d *decoder) ceilingList(body *hclsyntax.Body, name string, accept func(element) (string, bool)) []Name {
	if attr := body.Attributes[name]; attr == nil {
		return nil
	}
	names := []Name{}
	list, _ := d.strings(body, name)
	for _, e := range list {
		if text, ok := accept(e); ok {
			names = append(names, Name{Text: text, Range: d.f.rng(e.where)})
		}
	}
	return names
}
