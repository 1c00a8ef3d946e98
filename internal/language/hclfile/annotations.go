package hclfile

import (
	"regexp"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/diag"
)

// The roles of a conversation, in audiences and in messages.
const (
	User      = "user"
	Assistant = "assistant"
)

// annotationsOf decodes the annotations block in body, nil when there is none.
func (d *decoder) annotationsOf(body *hclsyntax.Body) *Annotations {
	b := first(body, "annotations")
	if b == nil {
		return nil
	}
	d.checkBody(b)
	a := &Annotations{}
	a.Audience = textsOf(d.choices(b.Body, "audience", []string{User, Assistant}, wrongWord{"bad-value", "%s is no audience", "the audiences are"}))
	if v, ok := d.typed(b.Body, "priority", numberKind); ok {
		n, _ := v.AsBigFloat().Float64()
		if n < 0 || n > 1 {
			d.fail("bad-value", d.f.rng(b.Body.Attributes["priority"].Expr.Range()), "\"priority\" must lie from 0 to 1", "write 1 for what must not be left out, 0 for what may")
		}
		a.Priority = &n
	}
	return a
}

// The values of [Icon.Theme].
const (
	LightTheme = "light"
	DarkTheme  = "dark"
)

// Icon is an icon block.
type Icon struct {
	// Src is an https or data URI.
	Src      string
	MIMEType string
	// Sizes are such as "48x48", or "any".
	Sizes []string
	// Theme is the background that the icon is for: [LightTheme], [DarkTheme]
	// or "".
	Theme string
	Range diag.Range
}

// icons decodes the icon blocks in body, without those that have no source:
// that is told where they stand.
func (d *decoder) icons(body *hclsyntax.Body, r *rule) []Icon {
	var icons []Icon
	for _, b := range blocks(body, r) {
		if b.Type != "icon" {
			continue
		}
		if i := d.icon(b); i.Src != "" {
			icons = append(icons, i)
		}
	}
	return icons
}

func (d *decoder) icon(b *hclsyntax.Block) Icon {
	d.checkBody(b)
	i := Icon{MIMEType: d.mimeType(b.Body, "mime_type"), Range: d.f.rng(b.DefRange())}
	if src, ok := d.text(b.Body, "src"); ok {
		i.Src = src
		if problem, detail := checkIcon(src); problem != "" {
			d.fail("bad-uri", d.f.rng(b.Body.Attributes["src"].Expr.Range()), problem, detail)
		}
	}
	list, _ := d.strings(b.Body, "sizes")
	for _, e := range list {
		if !iconSize.MatchString(e.text) {
			d.fail("bad-value", d.f.rng(e.where), "this is not the size of an icon", "write width and height as in \"48x48\", or \"any\" for an icon that scales")
		}
	}
	i.Sizes = textsOf(list)
	i.Theme, _ = d.oneOf(b.Body, "theme", LightTheme, DarkTheme)
	return i
}

// checkIcon says what keeps a text from being the source of an icon. Clients
// load it by themselves, so that only these two schemes are safe to show them.
func checkIcon(src string) (problem, detail string) {
	const wanted = "write an https URI, or the image itself as data:image/png;base64,…"
	scheme, rest, _ := strings.Cut(src, ":")
	switch strings.ToLower(scheme) {
	case "https":
		if host, _, _ := strings.Cut(strings.TrimPrefix(rest, "//"), "/"); !strings.HasPrefix(rest, "//") || host == "" {
			return "the URI of the icon names no host", wanted
		}
		return checkURI(src)
	case "data":
		if badURIByte(src) >= 0 || !strings.HasPrefix(strings.ToLower(rest), "image/") || !strings.Contains(rest, ",") {
			return "the data of the icon are no image", wanted
		}
		return "", ""
	default:
		return "an icon is loaded from nowhere else but https and data URIs", wanted
	}
}

// iconSize is WIDTHxHEIGHT or any.
var iconSize = regexp.MustCompile(`^([1-9][0-9]{0,4}x[1-9][0-9]{0,4}|any)$`)
