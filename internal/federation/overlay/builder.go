package overlay

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/base/redact"
	"github.com/mcpd/mcpd/internal/base/safetext"
	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/internal/federation/lockfile"
	"github.com/mcpd/mcpd/internal/federation/upstream"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/uritemplate"
	"github.com/mcpd/mcpd/scripting"
)

type itemBuilder struct {
	upstream  *definition.Upstream
	pool      *upstream.Pool
	redactor  redact.Redactor
	completes bool
	previous  map[[32]byte]*catalog.Item
	// pinned means that all tools are compared with the lock, by mode. Otherwise only tools
	// with invisible characters are.
	pinned bool
	mode   lockfile.Mode
	lock   *lockfile.Lock

	items       []*catalog.Item
	addresses   map[address]bool
	excluded    []catalog.LeftOut
	diagnostics diag.List
	suppressed  int
	firstUse    bool
	accepted    map[string]lockfile.Tool // the accepted definitions of the served tools
	acceptance  *acceptance
	toPin       []lockfile.Tool
	quarantined []lockfile.Change
}

type address struct {
	kind catalog.Kind
	text string
}

// jsonObject is an entry of a list. Its names are case-sensitive.
type jsonObject map[string]json.RawMessage

// text returns a string member, or "".
func (o jsonObject) text(name string) (text string) {
	_ = json.Unmarshal(o[name], &text)
	return text
}

// boolean returns a boolean member, or nil.
func (o jsonObject) boolean(name string) *bool {
	switch string(o[name]) {
	case "true", "false":
		value := string(o[name]) == "true"
		return &value
	}
	return nil
}

func (b *itemBuilder) buildAll(l *upstream.Listing) {
	if b.upstream.Offers(definition.OfferTools) {
		tools, more := includedTools(b.upstream, l.Tools)
		b.excludeExcess(catalog.Tools, more, maxTools)
		b.build(catalog.Tools, b.acceptedTools(tools), b.tool)
	}
	if b.upstream.Offers(definition.OfferResources) {
		b.build(catalog.Resources, l.Resources, b.resource)
		b.build(catalog.Templates, b.limit(catalog.Templates, l.Templates, maxTemplates), b.template)
	}
	if b.upstream.Offers(definition.OfferPrompts) {
		b.build(catalog.Prompts, b.limit(catalog.Prompts, l.Prompts, maxPrompts), b.prompt)
	}
	if b.suppressed > 0 {
		b.diagnostics = append(b.diagnostics, b.newWarning("left-out", fmt.Sprintf("%d more items of its lists cannot be offered", b.suppressed)))
	}
}

// build converts each entry of a list, and excludes entries that cannot be offered.
func (b *itemBuilder) build(kind catalog.Kind, entries []json.RawMessage, convert func(*catalog.Item, jsonObject) error) {
	for _, entry := range entries {
		if object, err := b.buildItem(kind, entry, convert); err != nil {
			b.exclude(kind, object.displayName(kind), err.Error())
		}
	}
}

// The reasons to exclude an entry regardless of its content.
var (
	errNotObject      = errors.New("it is not an object")
	errDuplicate      = errors.New("it is listed twice")
	errRenameConflict = errors.New("rename gives its name to another item")
)

// buildItem converts an entry and returns its redacted members.
func (b *itemBuilder) buildItem(kind catalog.Kind, entry json.RawMessage, convert func(*catalog.Item, jsonObject) error) (jsonObject, error) {
	var unredacted jsonObject
	if json.Unmarshal(entry, &unredacted) != nil || unredacted == nil {
		return nil, errNotObject
	}
	entry = b.redactor.RedactJSON(entry)
	object := decoded(entry)
	if object.address(kind) != unredacted.address(kind) {
		return object, errSecretName
	}
	key := b.key(kind, entry)
	if accepted, pinned := b.accepted[object.text("name")]; pinned && kind == catalog.Tools {
		key = b.key(kind, accepted.Definition()) // regardless of how the server formats it
		if accepted.Raw() {
			key = b.key(kind, append(accepted.Definition(), " raw"...))
		}
	}
	item := b.previous[key]
	if item == nil {
		shown, err := b.visible(kind, object)
		if err != nil {
			return object, err
		}
		item = b.newItem(kind, shown)
		item.Key = key
		if err := convert(item, shown); err != nil {
			return object, err
		}
		item.Finalize()
	}
	at := address{kind, item.Address}
	if b.addresses[at] && b.upstream.HasAlias(item.Name) {
		return object, errRenameConflict
	}
	if b.addresses[at] {
		return object, errDuplicate
	}
	b.addresses[at], b.items = true, append(b.items, item)
	return object, nil
}

// key hashes everything that an item depends on.
func (b *itemBuilder) key(kind catalog.Kind, entry json.RawMessage) (key [32]byte) {
	h := sha256.New()
	fmt.Fprintf(h, "upstream %d %t %x %d ", kind, b.completes, b.upstream.Semantic, len(entry))
	h.Write(entry)
	h.Sum(key[:0])
	return key
}

func (b *itemBuilder) newItem(kind catalog.Kind, object jsonObject) *catalog.Item {
	u := b.upstream
	item := &catalog.Item{
		Kind: kind, Upstream: u.Name, Where: u.AliasRange(u.Rename[object.text("name")]),
		About:     catalog.About{Title: object.text("title"), Labels: u.Labels, Icons: iconsOf(object["icons"])},
		Allowance: catalog.Allowance{Timeout: u.Timeout, AskTimeout: u.AskTimeout, Bounds: scripting.Limits{Output: outputLimit(u.Output)}, Concurrency: u.Concurrency},
	}
	if _, ok := object["description"]; ok {
		description := object.text("description")
		item.Description = &description
	}
	return item
}

func outputLimit(limit int64) int {
	if limit == 0 {
		return definition.DefaultOutput
	}
	return int(limit)
}

// address returns the address that the server uses for an entry.
func (o jsonObject) address(kind catalog.Kind) string {
	switch kind {
	case catalog.Resources:
		return o.text("uri")
	case catalog.Templates:
		return o.text("uriTemplate")
	}
	return o.text("name")
}

// displayName returns the address that the server uses for an entry, or else its name.
func (o jsonObject) displayName(kind catalog.Kind) string {
	if at := o.address(kind); at != "" {
		return at
	}
	return o.text("name")
}

// iconsOf returns the icons of an entry that clients may show (2026-07-28 server/tools, Icon:
// clients must not fetch other schemes).
func iconsOf(list json.RawMessage) (icons []definition.Icon) {
	var listed []struct {
		Src      string
		MIMEType string `json:"mimeType"`
		Sizes    []string
		Theme    string
	}
	if json.Unmarshal(list, &listed) != nil {
		return nil
	}
	for _, icon := range listed[:min(len(listed), 16)] {
		if at, err := url.Parse(icon.Src); err == nil && (at.Scheme == "https" || at.Scheme == "data") && !hidesIcon(icon.Src, icon.MIMEType, icon.Theme, icon.Sizes) {
			icons = append(icons, definition.Icon{Src: icon.Src, MIMEType: icon.MIMEType, Sizes: icon.Sizes, Theme: icon.Theme})
		}
	}
	return icons
}

func hidesIcon(src, mimeType, theme string, sizes []string) bool {
	return safetext.Hides(src) || safetext.Hides(mimeType) || safetext.Hides(theme) || slices.ContainsFunc(sizes, safetext.Hides)
}

// checkName checks the local name of a tool or a prompt.
func checkName(name string) error {
	if !definition.IsToolName(name) {
		return fmt.Errorf("no tool can be called %.*q here; rename it", maxNameLen, name)
	}
	return nil
}

// checkURI checks a resource URI.
func checkURI(uri string) error {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme == "" || len(uri) > uritemplate.MaxURI {
		return errors.New("it has no absolute URI")
	}
	if safetext.Hides(uri) || strings.ContainsAny(uri, "\t\n") {
		return errHiddenURI
	}
	return nil
}

func isObject(raw json.RawMessage) bool { return bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) }

// checkNames warns of names in the block that match nothing in the listing: an excluded tool
// would still be offered, and an override would have no effect. If the server was not asked,
// the accepted tools say nothing about excluded tools or prompts, so these names are not
// checked.
func (b *itemBuilder) checkNames(l *upstream.Listing, asked bool) {
	tools, prompts := b.namesIn(l.Tools), b.namesIn(l.Prompts)
	for _, n := range b.upstream.Include {
		b.checkListed(n, "include", tools)
	}
	for i := range b.upstream.Overrides {
		o := &b.upstream.Overrides[i]
		b.checkListed(definition.Name{Text: o.Tool, Range: o.Range}, "an override block", tools)
	}
	if !asked {
		return
	}
	for _, n := range b.upstream.Exclude {
		b.checkListed(n, "exclude", tools)
	}
	all := slices.Concat(tools, prompts)
	for _, from := range slices.Sorted(maps.Keys(b.upstream.Rename)) {
		b.checkListed(definition.Name{Text: from, Range: b.upstream.NameRange}, "rename", all)
	}
}

// checkListed warns of a name or pattern that matches nothing.
func (b *itemBuilder) checkListed(n definition.Name, option string, names []string) {
	if slices.ContainsFunc(names, n.Matches) {
		return
	}
	d := diag.Diagnostic{
		Severity: diag.Warning, Code: "unknown-tool", Range: n.Range,
		Summary: fmt.Sprintf("the upstream %q lists nothing that is called %q, which %s names", b.upstream.Name, n.Text, option),
		Detail:  diag.DidYouMean(n.Text, names),
	}
	if strings.Contains(n.Text, "*") {
		d.Code, d.Summary = "pattern-matches-nothing", fmt.Sprintf("the upstream %q lists nothing that the pattern %q of %s covers", b.upstream.Name, n.Text, option)
	}
	b.diagnostics = append(b.diagnostics, d)
}

// namesIn returns the redacted names of the entries in a list.
func (b *itemBuilder) namesIn(list []json.RawMessage) []string {
	names := make([]string, 0, len(list))
	for _, entry := range list {
		if name := decoded(entry).text("name"); name != "" {
			names = append(names, b.redactor.Redact(name))
		}
	}
	return names
}
