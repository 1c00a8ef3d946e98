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
	"github.com/mcpd/mcpd/internal/base/safetext"
	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/internal/federation/lockfile"
	"github.com/mcpd/mcpd/internal/federation/upstream"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/uritemplate"
	"github.com/mcpd/mcpd/scripting"
)

type maker struct {
	block     *definition.Upstream
	fleet     *upstream.Fleet
	veil      Veil
	completes bool
	before    map[[32]byte]*catalog.Item
	// pins says that all tools are held to the lock, in a mode; otherwise those are that
	// hold invisible characters.
	pins bool
	mode lockfile.Mode
	lock *lockfile.Lock

	items    []*catalog.Item
	taken    map[address]bool
	left     []catalog.LeftOut
	problems diag.List
	untold   int
	first    bool
	held     map[string]lockfile.Tool // what was accepted of the tools that are served
	judge    *judge
	pinned   []lockfile.Tool
	changes  []lockfile.Change
}

type address struct {
	kind catalog.Kind
	text string
}

// members are those of an entry of a list, by their names to the letter.
type members map[string]json.RawMessage

// text returns a member that is text, "" of any other.
func (m members) text(name string) (text string) {
	_ = json.Unmarshal(m[name], &text)
	return text
}

// flag returns a member that is true or false, nil of any other.
func (m members) flag(name string) *bool {
	switch string(m[name]) {
	case "true", "false":
		is := string(m[name]) == "true"
		return &is
	}
	return nil
}

func (m *maker) all(l *upstream.Listing) {
	if m.block.Offers(definition.OfferTools) {
		tools, more := included(m.block, l.Tools)
		m.cut(catalog.Tools, more, maxTools)
		m.each(catalog.Tools, m.accepted(tools), m.tool)
	}
	if m.block.Offers(definition.OfferResources) {
		m.each(catalog.Resources, l.Resources, m.resource)
		m.each(catalog.Templates, m.atMost(catalog.Templates, l.Templates, maxTemplates), m.template)
	}
	if m.block.Offers(definition.OfferPrompts) {
		m.each(catalog.Prompts, m.atMost(catalog.Prompts, l.Prompts, maxPrompts), m.prompt)
	}
	if m.untold > 0 {
		m.problems = append(m.problems, m.warning("left-out", fmt.Sprintf("%d things more that it lists cannot be offered", m.untold)))
	}
}

// each makes an item of each entry of a list, and leaves out those that are none.
func (m *maker) each(kind catalog.Kind, entries []json.RawMessage, make func(*catalog.Item, members) error) {
	for _, entry := range entries {
		if said, err := m.one(kind, entry, make); err != nil {
			m.leave(kind, said.called(kind), err.Error())
		}
	}
}

// The reasons for which an entry of a list is left out, whatever it says.
var (
	errNoObject = errors.New("it is no object")
	errTwice    = errors.New("it is listed twice")
	errGiven    = errors.New("another one has that name here, as rename says")
)

// one makes an item of an entry, and returns what that says, from behind the veil.
func (m *maker) one(kind catalog.Kind, entry json.RawMessage, make func(*catalog.Item, members) error) (members, error) {
	var unveiled members
	if json.Unmarshal(entry, &unveiled) != nil || unveiled == nil {
		return nil, errNoObject
	}
	entry = m.veil.RedactJSON(entry)
	said := decoded(entry)
	if said.address(kind) != unveiled.address(kind) {
		return said, errSecretName
	}
	key := m.key(kind, entry)
	if held, pinned := m.held[said.text("name")]; pinned && kind == catalog.Tools {
		key = m.key(kind, held.Definition()) // however the server writes it
		if held.Raw() {
			key = m.key(kind, append(held.Definition(), " raw"...))
		}
	}
	item := m.before[key]
	if item == nil {
		shown, err := m.shown(kind, said)
		if err != nil {
			return said, err
		}
		item = m.item(kind, shown)
		item.Key = key
		if err := make(item, shown); err != nil {
			return said, err
		}
		item.Finalize()
	}
	at := address{kind, item.Address}
	if m.taken[at] && m.block.HasAlias(item.Name) {
		return said, errGiven
	}
	if m.taken[at] {
		return said, errTwice
	}
	m.taken[at], m.items = true, append(m.items, item)
	return said, nil
}

// key hashes all that an item depends on.
func (m *maker) key(kind catalog.Kind, entry json.RawMessage) (key [32]byte) {
	h := sha256.New()
	fmt.Fprintf(h, "upstream %d %t %x %d ", kind, m.completes, m.block.Semantic, len(entry))
	h.Write(entry)
	h.Sum(key[:0])
	return key
}

func (m *maker) item(kind catalog.Kind, said members) *catalog.Item {
	u := m.block
	item := &catalog.Item{
		Kind: kind, Upstream: u.Name, Where: u.AliasRange(u.Rename[said.text("name")]),
		About:     catalog.About{Title: said.text("title"), Labels: u.Labels, Icons: iconsOf(said["icons"])},
		Allowance: catalog.Allowance{Timeout: u.Timeout, AskTimeout: u.AskTimeout, Bounds: scripting.Limits{Output: outputOf(u.Output)}, Concurrency: u.Concurrency},
	}
	if _, given := said["description"]; given {
		description := said.text("description")
		item.Description = &description
	}
	return item
}

func outputOf(most int64) int {
	if most == 0 {
		return definition.DefaultOutput
	}
	return int(most)
}

// address returns what a server itself calls an entry by.
func (m members) address(kind catalog.Kind) string {
	switch kind {
	case catalog.Resources:
		return m.text("uri")
	case catalog.Templates:
		return m.text("uriTemplate")
	}
	return m.text("name")
}

// called returns what a server calls an entry, if not by its address, then by its name.
func (m members) called(kind catalog.Kind) string {
	if at := m.address(kind); at != "" {
		return at
	}
	return m.text("name")
}

// iconsOf returns those icons of an entry that clients may show (2026-07-28 server/tools,
// Icon: other schemes are not to be fetched).
func iconsOf(list json.RawMessage) (icons []definition.Icon) {
	var said []struct {
		Src      string
		MIMEType string `json:"mimeType"`
		Sizes    []string
		Theme    string
	}
	if json.Unmarshal(list, &said) != nil {
		return nil
	}
	for _, icon := range said[:min(len(said), 16)] {
		if at, err := url.Parse(icon.Src); err == nil && (at.Scheme == "https" || at.Scheme == "data") && !hidesIcon(icon.Src, icon.MIMEType, icon.Theme, icon.Sizes) {
			icons = append(icons, definition.Icon{Src: icon.Src, MIMEType: icon.MIMEType, Sizes: icon.Sizes, Theme: icon.Theme})
		}
	}
	return icons
}

func hidesIcon(src, mimeType, theme string, sizes []string) bool {
	return safetext.Hides(src) || safetext.Hides(mimeType) || safetext.Hides(theme) || slices.ContainsFunc(sizes, safetext.Hides)
}

// named checks what a tool or a prompt is called here.
func named(name string) error {
	if !definition.IsToolName(name) {
		return fmt.Errorf("no tool can be called %.*q here; rename it", maxShown, name)
	}
	return nil
}

// addressed checks a URI.
func addressed(uri string) error {
	at, err := url.Parse(uri)
	if err != nil || at.Scheme == "" || len(uri) > uritemplate.MaxURI {
		return errors.New("it has no absolute URI")
	}
	if safetext.Hides(uri) || strings.ContainsAny(uri, "\t\n") {
		return errHidesAddress
	}
	return nil
}

func isObject(raw json.RawMessage) bool { return bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) }

// unknown warns of names in the block that the server lists nothing by: a tool that is meant
// to be left out is offered, and what is said of it in the place of its server holds for
// none. Where the server was not asked, what was accepted of it says nothing of what is
// left out, nor of prompts.
func (m *maker) unknown(l *upstream.Listing, asked bool) {
	tools, prompts := m.namesIn(l.Tools), m.namesIn(l.Prompts)
	for _, n := range m.block.Include {
		m.unlisted(n, "include", tools)
	}
	for i := range m.block.Overrides {
		o := &m.block.Overrides[i]
		m.unlisted(definition.Name{Text: o.Tool, Range: o.Range}, "an override block", tools)
	}
	if !asked {
		return
	}
	for _, n := range m.block.Exclude {
		m.unlisted(n, "exclude", tools)
	}
	all := slices.Concat(tools, prompts)
	for _, from := range slices.Sorted(maps.Keys(m.block.Rename)) {
		m.unlisted(definition.Name{Text: from, Range: m.block.NameRange}, "rename", all)
	}
}

// unlisted warns of a name or a pattern that covers nothing of a list.
func (m *maker) unlisted(n definition.Name, where string, names []string) {
	if slices.ContainsFunc(names, n.Matches) {
		return
	}
	d := diag.Diagnostic{
		Severity: diag.Warning, Code: "unknown-tool", Range: n.Range,
		Summary: fmt.Sprintf("the upstream %q lists nothing that is called %q, which %s names", m.block.Name, n.Text, where),
		Detail:  diag.DidYouMean(n.Text, names),
	}
	if strings.Contains(n.Text, "*") {
		d.Code, d.Summary = "pattern-matches-nothing", fmt.Sprintf("the upstream %q lists nothing that the pattern %q of %s covers", m.block.Name, n.Text, where)
	}
	m.problems = append(m.problems, d)
}

// namesIn returns how a server calls the entries of a list, from behind the veil.
func (m *maker) namesIn(list []json.RawMessage) []string {
	names := make([]string, 0, len(list))
	for _, entry := range list {
		if name := decoded(entry).text("name"); name != "" {
			names = append(names, m.veil.Redact(name))
		}
	}
	return names
}
