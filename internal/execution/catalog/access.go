package catalog

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/uritemplate"
	"github.com/mcpd/mcpd/policylang"
)

// addAccess takes in who may enter and what is written down of them, with paths that
// are relative to the operator's file made those that the process opens.
func (k *linker) addAccess(config *definition.Config) {
	folder := filepath.Dir(filepath.FromSlash(k.options.ConfigPath))
	if config.Listen.TLS != nil {
		tls := *config.Listen.TLS
		for _, file := range []*string{&tls.CertFile, &tls.KeyFile, &tls.ClientCAFile} {
			*file = resolvePath(folder, *file)
		}
		k.catalog.Listen.TLS = &tls
		k.checkTLS(tls)
	}
	for _, auth := range config.Auths {
		if auth.APIKeys != nil {
			auth.APIKeys = &definition.AuthAPIKeys{File: resolvePath(folder, auth.APIKeys.File)}
		}
		k.catalog.Auths = append(k.catalog.Auths, auth)
	}
	k.checkAuths()
	k.checkListen(config.Listen)
	if config.Audit != nil {
		audit := *config.Audit
		audit.Path = resolvePath(folder, audit.Path)
		k.catalog.Audit = &audit
		if k.options.Checks.Audit != nil && audit.Path != "" { // one without a path is told where it stands
			if err := k.options.Checks.Audit(audit); err != nil {
				k.found.report(diag.List{BadAudit(&audit, err)})
			}
		}
	}
}

// checkListen reports an address that strangers reach who need not prove anything.
func (k *linker) checkListen(listen definition.Listen) {
	if k.options.Checks.Listen == nil || listen.Address == "" || k.found.config.Incomplete { // an auth block may be missing
		return
	}
	if err := k.options.Checks.Listen(listen, k.catalog.Auths); err != nil {
		k.found.report(diag.List{{
			Code: "open-listen", Range: listen.AddressRange, Summary: err.Error(),
			Detail: "listen on 127.0.0.1, demand credentials by an auth block and encrypt by a tls block, or override with --insecure-listen",
		}})
	}
}

// BadAudit says of an audit block that calls cannot be written to its log.
func BadAudit(audit *definition.Audit, why error) diag.Diagnostic {
	return diag.Diagnostic{
		Code: "bad-audit", Range: audit.Range, Summary: fmt.Sprintf("calls cannot be written down: %v", why), Detail: "correct the path, or what stands there",
	}
}

// AuditInUse says of an audit block that another process has its log.
func AuditInUse(audit *definition.Audit, why error) diag.Diagnostic {
	d := BadAudit(audit, why)
	d.Detail = "stop that process, or give this block a path of its own"
	return d
}

// checkTLS reports a tls block whose files do not do.
func (k *linker) checkTLS(tls definition.ListenTLS) {
	if k.options.Checks.TLS == nil {
		return
	}
	if err := k.options.Checks.TLS(tls); err != nil {
		k.found.report(diag.List{{
			Code: "bad-tls", Range: tls.Range, Summary: fmt.Sprintf("the tls block cannot be applied: %v", err), Detail: "correct the block or the files that it names",
		}})
	}
}

// checkAuths reports auth blocks that cannot be applied: nobody would be let in by them,
// and the operator would learn so from who is not. What is wrong with one block is told
// there, and what is wrong with all of them together at the last.
func (k *linker) checkAuths() {
	found := len(k.catalog.Auths) == 0
	for i, block := range k.catalog.Auths {
		switch {
		case block.JWT != nil && block.JWT.Issuer == "":
			found = true // told where it stands
		case block.JWT != nil && k.options.NoTokens:
			found = true
			k.found.report(diag.List{{
				Code: "missing-extension", Range: block.Range, Summary: "this program cannot check tokens",
				Detail: "import github.com/mcpd/mcpd/extensions/oidc into the program, and put its New() into engine.Options.Extensions",
			}})
		default:
			found = k.checkAuth(k.catalog.Auths[i:i+1], block) || found
		}
	}
	if !found {
		k.checkAuth(k.catalog.Auths, k.catalog.Auths[len(k.catalog.Auths)-1])
	}
}

// checkAuth reports what is wrong with blocks at one of them, if anything is.
func (k *linker) checkAuth(blocks []definition.Auth, at definition.Auth) bool {
	if k.options.Checks.Auth == nil {
		return false
	}
	err := k.options.Checks.Auth(blocks)
	if err != nil {
		k.found.failedAuth = append(k.found.failedAuth, blocks...)
		k.found.report(diag.List{{
			Code: "bad-auth", Range: at.Range, Summary: fmt.Sprintf("auth %q %q cannot be applied: %v", at.Kind, at.Name, err),
			Detail: "correct the block or what it names",
		}})
	}
	return err != nil
}

// within returns a path that is relative to a folder as one of the process; an empty
// one names nothing.
func resolvePath(folder, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(folder, filepath.FromSlash(path))
}

// checkIDs warns of rules and inputs that tell callers apart by principal.id alone where
// several auth blocks may give the same id to different callers.
func (k *linker) checkIDs(config *definition.Config) {
	var names []string
	taken := map[string]bool{}
	for _, auth := range config.Auths {
		from := auth.Kind
		switch {
		case auth.Kind == "anonymous":
			continue
		case auth.JWT != nil:
			from += " " + auth.JWT.Issuer
		}
		if !taken[from] {
			taken[from] = true
			names = append(names, strconv.Quote(auth.Name))
		}
	}
	if len(names) < 2 {
		return
	}
	blocks := strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
	warn := func(what string, texts ...*diag.Text) {
		var id diag.Range
		reads := false
		for _, text := range texts {
			if text == nil {
				continue
			}
			if _, issuer := policylang.Reads(*text, "principal", "issuer"); issuer {
				return
			}
			if at, found := policylang.Reads(*text, "principal", "id"); found && !reads {
				id, reads = at, true
			}
		}
		if reads {
			k.found.report(diag.List{{
				Severity: diag.Warning, Code: "ambiguous-principal", Range: id,
				Summary: fmt.Sprintf("%s tells callers apart by principal.id alone, and the auth blocks %s may give two callers the same id", what, blocks),
				Detail:  "compare principal.issuer too: the URL of the identity provider, the issuer of the certificate, or '' for API keys and local users",
			}})
		}
	}
	for _, policies := range [][]definition.Policy{config.Policies, k.found.policies} {
		for i := range policies {
			p := &policies[i]
			warn(fmt.Sprintf("policy %q", p.Name), textOf(p.When), textOf(p.Allow), textOf(p.Deny), textOf(p.Approval))
		}
	}
	for _, item := range k.found.items {
		for i := range item.From {
			warn(fmt.Sprintf("the input %q", item.From[i].Name), &item.From[i].Text)
		}
	}
}

// Looking is what policies know of a caller who looks at what there is.
func ListInput(caller identity.Caller, now time.Time) policylang.Input {
	return policylang.Input{Caller: caller, Call: policylang.CallFacts{Via: string(call.ViaClient)}, Now: now}
}

// Hearer is told what a policy has said, by its place among those of its entry.
type DecisionFunc func(place int, decision policylang.Decision)

// Surely asks every policy of an item what can be said without the arguments, and tells
// heard, unless it is nil. It returns the first that denies whatever they are; covered says
// that a policy may still allow the call.
func (e *Entry) DecideStatic(ctx context.Context, facts policylang.Input, heard DecisionFunc) (denier *Policy, decision policylang.Decision, covered bool) {
	for i := range e.Rules {
		p := &e.Rules[i]
		if p.Compiled == nil {
			continue
		}
		decision = p.Compiled.Partial(ctx, facts)
		if heard != nil {
			heard(i, decision)
		}
		if decision.Outcome == policylang.Deny {
			return p, decision, covered
		}
		covered = covered || p.Allows && decision.Outcome != policylang.NotConcerned
	}
	return nil, policylang.Decision{}, covered
}

// Hides reports whether a call of an item is surely denied to a caller, so that
// nothing shows the item to it. facts are those of the caller and its call.
func (c *Catalog) IsHidden(ctx context.Context, e *Entry, facts policylang.Input) bool {
	facts.Tool = e.Facts
	denier, _, covered := e.DecideStatic(ctx, facts, nil)
	return denier != nil || c.DenyByDefault && !covered
}

// Hidden marks with a one each entry of a kind that is hidden from a caller, in
// their order; nil when none can be.
func (c *Catalog) HiddenMask(ctx context.Context, k Kind, facts policylang.Input) []byte {
	if c.Policies == 0 && !c.DenyByDefault {
		return nil
	}
	entries := c.Entries[k]
	hidden := make([]byte, len(entries))
	for i, e := range entries {
		switch {
		case i > 0 && e.folder != nil && e.folder == entries[i-1].folder: // with the same policies and facts
			hidden[i] = hidden[i-1]
		case c.IsHidden(ctx, e, facts):
			hidden[i] = 1
		}
	}
	return hidden
}

// Nearest returns the address of what a caller who looks may see and may have meant by
// a name that is none: the resource of that name, what an upstream server itself calls so,
// one whose address is much the same, one that ends in the name, or a template of its shape;
// empty when there is nothing.
func (c *Catalog) Nearest(ctx context.Context, k Kind, name string, looking policylang.Input) string {
	hidden := c.HiddenMask(ctx, k, looking)
	addresses, prefixed := make([]string, 0, len(c.Entries[k])), map[string]string{}
	for i, e := range c.Entries[k] {
		switch {
		case hidden != nil && hidden[i] != 0:
		case k != Tools && e.Name == name:
			return e.Address
		default:
			addresses = append(addresses, e.Address)
			if own := c.withoutPrefix(k, e); own != "" && (prefixed[own] == "" || e.Address < prefixed[own]) {
				prefixed[own] = e.Address
			}
		}
	}
	if whole := prefixed[name]; whole != "" {
		return whole
	}
	near := diag.Suggest(name, slices.AppendSeq(slices.Clone(addresses), maps.Keys(prefixed)))
	if whole := prefixed[near]; whole != "" && !slices.Contains(addresses, near) {
		near = whole
	}
	longer := ""
	if k == Tools || k == Prompts {
		longer = diag.SuggestLonger(name, addresses)
	}
	return cmp.Or(near, longer, c.firstTemplate(k, name, func(e *Entry) bool { return c.IsHidden(ctx, e, looking) }))
}

// withoutPrefix returns the name of a tool or a prompt of an upstream without the prefix that
// the upstream gives it; "" where there is none.
func (c *Catalog) withoutPrefix(k Kind, e *Entry) string {
	if e.Upstream == "" || k != Tools && k != Prompts {
		return ""
	}
	for i := range c.Upstreams {
		if u := &c.Upstreams[i]; u.Name == e.Upstream && u.Prefix != "" {
			own, _ := strings.CutPrefix(e.Address, u.Prefix)
			if own != e.Address {
				return own
			}
		}
	}
	return ""
}

// firstTemplate returns the address of the first template that a URI would fit if its
// values were others, of those that are not hidden; "" when there is none, or
// the kind is not that of resources.
func (c *Catalog) firstTemplate(k Kind, uri string, hidden func(*Entry) bool) string {
	if k != Resources {
		return ""
	}
	read := uritemplate.NewURI(uri)
	for _, e := range c.templates {
		if _, ok := e.Offer.Template.Match(read); ok && !hidden(e) {
			return e.Address
		}
	}
	return ""
}
