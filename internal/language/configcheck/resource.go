package configcheck

import (
	"fmt"
	"maps"
	"slices"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/internal/language/hclfile"
	"github.com/mcpd/mcpd/internal/language/uritemplate"
)

// maxCompared is how many pairs of templates are compared, and maxSteps how many
// steps that may take in all. Beyond them a warning may be missing.
const (
	maxCompared = 100_000
	maxSteps    = 2_000_000
)

// defineResources remembers the resources, folders and templates of a file.
func (c *checker) defineResources(f *hclfile.Definitions) {
	for i := range f.Resources {
		r := &f.Resources[i]
		c.define(c.resources, r.Name, r.NameRange)
		c.ceiling("resource", r.Name, r.Grant, r.GrantRanges)
		c.bounds("resource", r.Name, r.Bounds)
		c.claim(c.uris, r.URI, r.URIRange, "a second resource has the URI")
		c.grants["resource "+r.URI] = r.Grant
	}
	for i := range f.Folders {
		folder := &f.Folders[i]
		c.folders = append(c.folders, folder)
		c.define(c.resources, folder.Name, folder.NameRange)
		c.claim(c.prefixes, folder.URIPrefix, folder.PrefixRange, "a second folder has the URI prefix")
	}
	for i := range f.Templates {
		t := &f.Templates[i]
		c.define(c.resources, t.Name, t.NameRange)
		c.ceiling("template", t.Name, t.Grant, t.GrantRanges)
		c.bounds("template", t.Name, t.Bounds)
		if t.URITemplate != nil {
			c.templates = append(c.templates, t)
			c.grants["template "+t.URITemplate.String()] = t.Grant
			c.arguments["template "+t.URITemplate.String()] = t.URITemplate.Names()
		}
	}
}

// claim remembers a URI, and reports that it was taken.
func (c *checker) claim(taken map[string]diag.Range, uri string, where diag.Range, summary string) {
	if uri == "" {
		return // whoever decoded the file has told
	}
	first, twice := taken[uri]
	if !twice {
		taken[uri] = where
		return
	}
	c.report(diag.Diagnostic{
		Code: "duplicate-uri", Range: where, Summary: fmt.Sprintf("%s %q", summary, uri), Detail: "change one of the two",
		Notes: []diag.Note{{Range: first, Message: "the first one is here"}},
	})
}

// checkTemplates warns of templates that match the same URIs.
func (c *checker) checkTemplates() {
	compared, steps := 0, maxSteps
	for i, t := range c.templates {
		for _, earlier := range c.templates[:i] {
			if compared++; compared > maxCompared || steps == 0 {
				return
			}
			if !t.URITemplate.Overlaps(earlier.URITemplate, &steps) {
				continue
			}
			c.report(diag.Diagnostic{
				Severity: diag.Warning, Code: "overlapping-templates", Range: t.URIRange,
				Summary: fmt.Sprintf("some URIs match template %q and template %q", t.Name, earlier.Name),
				Detail:  "the first of the two is read then; change one, or join them",
				Notes:   []diag.Note{{Range: earlier.URIRange, Message: fmt.Sprintf("template %q", earlier.Name)}},
			})
			break
		}
	}
}

// checkURI reports a URI that no resource, folder or template can have.
func (c *checker) checkURI(uri string, where diag.Range) {
	if _, known := c.grantOf(uri); known || c.incomplete {
		return
	}
	detail := diag.DidYouMean(uri, slices.Collect(maps.Keys(c.uris)))
	if detail == "" {
		detail = "define it, or correct the URI"
	}
	c.report(diag.Diagnostic{
		Code: "unknown-resource", Range: where, Summary: fmt.Sprintf("there is no resource with the URI %q", uri), Detail: detail,
	})
}

// grantOf returns what the resource with a URI is granted, and false when no
// resource, folder or template can have it.
func (c *checker) grantOf(uri string) (granted grant.Set, known bool) {
	if granted, known = c.grants["resource "+uri]; known {
		return granted, true
	}
	for _, folder := range c.folders {
		if _, known := folder.File(uri); known {
			return grant.Set{}, true
		}
	}
	read := uritemplate.NewURI(uri)
	for _, t := range c.templates {
		if _, known := t.URITemplate.Match(read); known {
			return t.Grant, true
		}
	}
	return grant.Set{}, false
}
