package catalog

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/base/redact"
	"github.com/mcpd/mcpd/internal/host/oauth"
	"github.com/mcpd/mcpd/internal/host/secrets"
	"github.com/mcpd/mcpd/internal/language/configcheck"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/internal/language/loader"
	"github.com/mcpd/mcpd/policylang"
	"github.com/mcpd/mcpd/scripting"
)

// Base is the compiled part of a catalog that files, the embedding program and mcpd.lock define, so
// that [Builder.Overlay] reads no file. It is immutable, except for a cache of the policies that
// were compiled for the last offers.
type Base struct {
	// Catalog is the catalog without upstream offers.
	*Catalog
	config *loader.Config
	rules  *ruleSet
	// resourceRules are the policies, limits and hooks for specific resources. references are names
	// that only upstream servers can resolve.
	resourceRules []resourceRule
	references    []configcheck.Reference
	names         *names
	// locked are the upstreams with tools in mcpd.lock.
	locked []string
	// sources are the files.
	sources Sources
}

// linker links items, policies, limits and hooks into a catalog.
type linker struct {
	*Builder
	state   *buildState
	catalog *Catalog
	rules   *ruleSet
	// reportedFolders are the pairs of folder blocks with a reported URI conflict.
	reportedFolders map[[2]*definition.Folder]bool
	// hidden are pairs of items with the same address: the one that is read, and one that is not.
	hidden [][2]*Item
}

// link runs the checks that involve several definitions. It returns a base even if it reports
// errors.
func (b *Builder) link(state *buildState, registered []*Item) *Base {
	config := state.config
	l := &linker{Builder: b, state: state, catalog: &Catalog{
		Revision: b.revision(state, registered), Tests: state.tests,
		Settings: Settings{
			Server: mergeServer(config.Server, b.options.Server), Listen: config.Listen, Reload: config.Reload, Limits: config.Limits, Upstreams: state.upstreams,
			Sensitive: sensitive(config.Variables, state.vars),
		},
		Rules: Rules{
			Hooks: state.hooks, Policies: len(config.Policies) + b.options.GoPolicies + len(state.policies),
			DenyByDefault: config.Server.DefaultDecision == definition.DecideDeny || config.Server.Mode == definition.Production,
		},
	}, rules: b.rulesOf(state), reportedFolders: map[[2]*definition.Folder]bool{}}
	l.addAccess(config)
	l.catalog.Console = l.console(config.Console)
	l.catalog.Secrets, l.catalog.SecretKeys = secretsOf(config.Secrets)
	l.catalog.upstreamOrder = make(map[string]int, len(state.upstreams))
	for i := range state.upstreams {
		l.catalog.upstreamOrder[state.upstreams[i].Name] = i + 1
	}
	l.addItems(slices.Concat(slices.DeleteFunc(slices.Clone(registered), func(i *Item) bool {
		problems := b.listable(i)
		state.report(problems)
		return problems != nil
	}), state.items))
	l.checkURIConflicts()
	entries, share := l.groupByFolder()
	l.bind(entries)
	l.checkIDs(config)
	l.catalog.addOwnLimits(entries)
	l.catalog.addHooks(entries)
	share()
	base := &Base{
		Catalog: l.catalog, config: b.config, rules: l.rules, resourceRules: resourceRules(state), references: state.references,
		names: state.names, locked: state.accepted.Upstreams,
	}
	base.Catalog.base = base
	return base
}

// bind adds policies and limits to entries, and reports their diagnostics. It also checks the
// accepted tools in mcpd.lock.
func (l *linker) bind(entries []*Entry) {
	l.catalog.RateLimits = l.rules.counted
	found := bindParallel(l, l.rules.policies, entries, l.rules.bindPolicies,
		"the policies that read args cover too many items: more than %d pairs of a policy and different inputs",
		"name in the tools of each policy only those whose args it reads")
	found = append(found, bindParallel(l, l.rules.keys, entries, l.rules.bindLimits,
		"the limits whose keys read args cover too many items: more than %d pairs of a limit and different inputs",
		"name in the tools of each limit only those whose args its key reads")...)
	accepted, locked := l.acceptedEntries(), l.rules.fork()
	found = append(found, locked.lockedErrors(accepted)...)
	l.cache.rules = locked.compiled()
	l.rules.known = l.cache.rules
	all := slices.Concat(entries, accepted)
	found = append(found, l.compileUnusedKeys(l.rules.limits, all)...)
	l.state.report(found.OncePerPlace())
	l.compileUnused(slices.Concat(l.rules.operators, l.rules.authors), all)
}

// acceptedEntries returns the tools in mcpd.lock, to check policies and limits against them.
func (l *linker) acceptedEntries() (entries []*Entry) {
	holders := l.state.names.accepted(l.state.accepted.Known)
	for _, item := range l.state.accepted.Items {
		if holders[item.Name] == item.Upstream && l.catalog.Entry(Tools, item.Name) == nil {
			entries = append(entries, &Entry{Item: item})
		}
	}
	return entries
}

// mergeServer fills the fields of first that are empty from second.
func mergeServer(first, second definition.Server) definition.Server {
	first.Name, first.Version = cmp.Or(first.Name, second.Name), cmp.Or(first.Version, second.Version)
	first.Title = cmp.Or(first.Title, second.Title)
	first.Description = cmp.Or(first.Description, second.Description)
	first.Instructions = cmp.Or(first.Instructions, second.Instructions)
	return first
}

func withInstructions(s definition.Server, more []string) definition.Server {
	if len(more) > 0 {
		s.Instructions = strings.TrimPrefix(s.Instructions+"\n\n"+strings.Join(more, "\n\n"), "\n\n")
	}
	return s
}

func sensitive(variables map[string]definition.Variable, vars []byte) redact.Text {
	var pointers []string
	for name, v := range variables {
		if v.Sensitive {
			pointers = append(pointers, "/"+name)
		}
	}
	return redact.NewText(vars, pointers)
}

func (l *linker) addItems(items []*Item) {
	for kind := range l.catalog.byAddress {
		l.catalog.byAddress[kind] = map[string]*Entry{}
	}
	l.catalog.byAddress[Tools] = make(map[string]*Entry, len(items))
	// Items that a file names come before files of folder blocks.
	slices.SortStableFunc(items, func(a, b *Item) int { return cmp.Compare(itemPriority(a), itemPriority(b)) })
	var last [len(l.catalog.Entries)]string // the address of the last entry of each kind
	var unsorted [len(l.catalog.Entries)]bool
	for _, item := range items {
		if first := l.catalog.byAddress[item.Kind][item.Address]; first != nil {
			l.hidden = append(l.hidden, [2]*Item{first.Item, item})
			l.duplicateFile(first.Item, item) // configcheck reports other duplicate addresses
			continue
		}
		e := &Entry{Item: item}
		l.catalog.byAddress[item.Kind][item.Address] = e
		l.catalog.Entries[item.Kind] = append(l.catalog.Entries[item.Kind], e)
		unsorted[item.Kind] = unsorted[item.Kind] || item.Address < last[item.Kind]
		last[item.Kind] = item.Address
	}
	l.catalog.templates = slices.Clone(l.catalog.Entries[Templates])
	for kind, entries := range l.catalog.Entries {
		if !unsorted[kind] { // the usual case: sorting would read all addresses again
			continue
		}
		slices.SortFunc(entries, func(a, b *Entry) int { return strings.Compare(a.Address, b.Address) })
	}
}

// itemPriority returns 1 for a file of a folder block, and 0 for any other item.
func itemPriority(i *Item) int {
	if i.folder != nil {
		return 1
	}
	return 0
}

// listable returns an error if clients cannot display a tool.
func (b *Builder) listable(item *Item) diag.List {
	err := b.listError(item)
	if err == nil {
		return nil
	}
	return diag.List{{
		Code: "unlistable-tool", Range: item.Where,
		Summary: fmt.Sprintf("tool %q cannot be shown to clients: %v", item.Name, err),
		Detail:  "correct its schema",
	}}
}

func (b *Builder) listError(item *Item) error {
	if b.options.Checks.Item == nil || item.Kind != Tools || item.Input == nil {
		return nil
	}
	return b.options.Checks.Item(item)
}

// groupByFolder returns one entry per folder block, and all other entries. share copies the
// policies, limits and hooks to the remaining entries of each folder.
func (l *linker) groupByFolder() (entries []*Entry, share func()) {
	leaders := map[*definition.Folder]*Entry{}
	var followers []*Entry
	for _, e := range slices.Concat(l.catalog.Entries[:]...) {
		switch leader := leaders[e.folder]; {
		case e.folder == nil:
			entries = append(entries, e)
		case leader == nil:
			leaders[e.folder], entries = e, append(entries, e)
		default:
			followers = append(followers, e)
		}
	}
	return entries, func() {
		for _, e := range followers {
			leader := leaders[e.folder]
			e.Rules, e.ResultRules, e.Limits, e.Hooks = leader.Rules, leader.ResultRules, leader.Limits, leader.Hooks
		}
	}
}

func (c *Catalog) addHooks(entries []*Entry) {
	for _, e := range entries {
		for _, h := range c.Hooks {
			if covers(h.targets, e.Kind, e.Name) {
				e.Hooks = append(e.Hooks, h)
			}
		}
	}
}

// maxRemoved bounds the removed items that a catalog remembers.
const maxRemoved = 1000

type removedKey struct {
	kind    Kind
	address string
}

// removedItem is an item of an earlier catalog: the revision that removed it, and the data to
// decide who may know of it.
type removedItem struct {
	revision      string
	entry         *Entry
	denyByDefault bool
}

// RememberRemoved adds the items that an earlier catalog has and this one lacks. It must be called
// before the catalog serves.
func (c *Catalog) RememberRemoved(earlier *Catalog) {
	c.removed = make(map[removedKey]removedItem, len(earlier.removed))
	for k := range earlier.Entries {
		for _, e := range earlier.Entries[k] {
			if key := (removedKey{Kind(k), e.Address}); len(c.removed) < maxRemoved && c.Entry(key.kind, key.address) == nil {
				slim := &Entry{Item: &Item{Facts: e.Facts, Upstream: e.Upstream}, Rules: e.Rules}
				c.removed[key] = removedItem{c.Revision, slim, earlier.DenyByDefault}
			}
		}
	}
	for key, old := range earlier.removed {
		if len(c.removed) < maxRemoved && c.Entry(key.kind, key.address) == nil {
			c.removed[key] = old
		}
	}
}

// IsUnreachable reports whether an item was removed because its upstream server is unreachable.
func (c *Catalog) IsUnreachable(k Kind, address string) bool {
	removed, ok := c.removed[removedKey{k, address}]
	return ok && slices.Contains(c.offers.Unreachable, removed.entry.Upstream)
}

// Removed returns the revision that removed an item, and false if the caller could not see the
// item. facts are as in [Catalog.IsHidden].
func (c *Catalog) Removed(ctx context.Context, k Kind, address string, facts policylang.Input) (revision string, ok bool) {
	removed, ok := c.removed[removedKey{k, address}]
	if !ok || (&Catalog{Rules: Rules{DenyByDefault: removed.denyByDefault}}).IsHidden(ctx, removed.entry, facts) {
		return "", false
	}
	return removed.revision, true
}

// unusedGrants returns a warning for each granted object that no script can reach. ranges are the
// positions of the grants. A script with errors, which is nil, suppresses the warnings.
func unusedGrants(granted grant.Set, ranges map[string]diag.Range, bodies []*scripting.Program) (list diag.List) {
	for _, object := range objectsOf(granted) {
		where, written := ranges[object.Kind+"."+object.Name]
		if !written || len(bodies) == 0 || object.Kind == "fs.write" ||
			slices.ContainsFunc(bodies, func(p *scripting.Program) bool { return p == nil || p.Reaches(object) }) {
			continue
		}
		name := object.Kind + "." + object.Name
		if object.Kind == "ask" {
			name = object.Name
		}
		list = append(list, diag.Diagnostic{
			Severity: diag.Warning, Code: "unused-grant", Range: where,
			Summary: fmt.Sprintf("%s is granted, but no script uses it", name), Detail: "remove the grant",
		})
	}
	return list
}

// objectsOf returns the script objects of grants.
func objectsOf(granted grant.Set) (objects []scripting.Object) {
	add := func(kind, name string, given bool) {
		if given {
			objects = append(objects, scripting.Object{Kind: kind, Name: name})
		}
	}
	for _, g := range granted.HTTP {
		add("http", g.Name, true)
	}
	for _, g := range granted.FS {
		add("fs", g.Name, true)
		add("fs.write", g.Name, g.Write)
	}
	for _, name := range granted.Env {
		add("env", name, true)
	}
	for _, name := range granted.Secrets {
		add("secrets", name, true)
	}
	for _, g := range granted.Exec {
		add("exec", g.Name, true)
	}
	for _, g := range granted.SQL {
		add("sql", g.Name, true)
		add("sql.write", g.Name, g.Write)
		add("sql.open", g.Name, g.PathFromCall)
	}
	for _, g := range granted.KV {
		add("kv", g.Name, true)
	}
	for _, g := range granted.Modules {
		add("modules", g.Name, true)
	}
	for _, pattern := range granted.Call {
		add("tools", pattern, true)
	}
	if granted.Ask != nil {
		for _, name := range append(granted.Ask.Names(), "ask") {
			add("ask", name, true)
		}
	}
	return objects
}

// secretsOf returns the definitions of secrets, and their keys by name. OAuth clients come last, as
// they refer to other secrets.
func secretsOf(blocks []definition.Secret) (defs []secrets.Definition, keys map[string]string) {
	keys = map[string]string{}
	add := func(def secrets.Definition) { defs, keys[def.Name] = append(defs, def), def.Key() }
	var clients []definition.Secret
	for _, s := range blocks {
		if s.OAuth != nil {
			clients = append(clients, s)
			continue
		}
		add(secrets.Definition{Name: s.Name, Env: s.Env, File: s.File, Command: s.Command, ScriptReadable: s.Reveal})
	}
	for _, s := range clients {
		add(secrets.Definition{Name: s.Name, ScriptReadable: s.Reveal, OAuth: &oauth.Client{
			AuthorizeURL: s.OAuth.AuthorizeURL, RedirectURL: s.OAuth.RedirectURL, TokenURL: s.OAuth.TokenURL, ID: s.OAuth.ClientID, Secret: keys[s.OAuth.ClientSecret],
			Scopes: s.OAuth.Scopes, Params: s.OAuth.Params, InBody: s.OAuth.CredentialsInBody, PrivateNetworks: s.OAuth.PrivateNetworks,
		}})
	}
	return defs, keys
}
