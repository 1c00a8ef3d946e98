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

// addAccess adds the auth, listen and audit settings of mcpd.hcl, with resolved paths.
func (l *linker) addAccess(config *definition.Config) {
	folder := filepath.Dir(filepath.FromSlash(l.options.ConfigPath))
	if config.Listen.TLS != nil {
		tls := *config.Listen.TLS
		for _, file := range []*string{&tls.CertFile, &tls.KeyFile, &tls.ClientCAFile} {
			*file = resolvePath(folder, *file)
		}
		l.catalog.Listen.TLS = &tls
		l.checkTLS(tls)
	}
	for _, auth := range config.Auths {
		if auth.APIKeys != nil {
			auth.APIKeys = &definition.AuthAPIKeys{File: resolvePath(folder, auth.APIKeys.File)}
		}
		l.catalog.Auths = append(l.catalog.Auths, auth)
	}
	l.checkAuths()
	l.checkListen(config.Listen)
	if config.Audit != nil {
		audit := *config.Audit
		audit.Path = resolvePath(folder, audit.Path)
		l.catalog.Audit = &audit
		if l.options.Checks.Audit != nil && audit.Path != "" { // a missing path is already reported
			if err := l.options.Checks.Audit(audit); err != nil {
				l.state.report(diag.List{BadAudit(&audit, err)})
			}
		}
	}
}

// ConsoleAccess says who has access to the console of the listener. Operate and Impersonate are nil if
// not set.
type ConsoleAccess struct{ Allow, Operate, Impersonate *policylang.Access }

// MayLook reports whether a caller may see the console. An error permits nothing.
func (c *ConsoleAccess) MayLook(ctx context.Context, p identity.Principal, now time.Time) (bool, error) {
	return permits(ctx, c.Allow, p, p, now)
}

// MayOperate reports whether a caller may call items and change something.
func (c *ConsoleAccess) MayOperate(ctx context.Context, p identity.Principal, now time.Time) (bool, error) {
	return permits(ctx, c.Operate, p, p, now)
}

// MayActAs reports whether a caller may operate as another principal.
func (c *ConsoleAccess) MayActAs(ctx context.Context, p, other identity.Principal, now time.Time) (bool, error) {
	if may, err := c.MayOperate(ctx, p, now); !may || err != nil {
		return false, err
	}
	return permits(ctx, c.Impersonate, p, other, now)
}

func permits(ctx context.Context, condition *policylang.Access, p, other identity.Principal, now time.Time) (bool, error) {
	if condition == nil || p.Kind == identity.KindAnonymous {
		return false, nil
	}
	return condition.Permits(ctx, p, other, now)
}

// console compiles the console block. It returns nil for none, and for one with an error.
func (l *linker) console(block *definition.Console) *ConsoleAccess {
	if block == nil {
		return nil
	}
	c, failed := &ConsoleAccess{}, false
	for _, condition := range []struct {
		argument string
		code     *definition.Code
		into     **policylang.Access
	}{{"allow", block.Allow, &c.Allow}, {"operate", block.Operate, &c.Operate}, {"impersonate", block.Impersonate, &c.Impersonate}} {
		if condition.code == nil {
			continue
		}
		var problems diag.List
		*condition.into, problems = l.state.env.CompileAccess(policylang.AccessSource{
			Argument: condition.argument, Block: "the console block", Text: condition.code.Text, Range: block.Range, Other: condition.argument == "impersonate",
		})
		l.state.report(problems)
		failed = failed || problems.HasErrors()
	}
	if failed || c.Allow == nil {
		return nil
	}
	return c
}

// checkListen reports an address that unauthenticated clients could reach.
func (l *linker) checkListen(listen definition.Listen) {
	if l.options.Checks.Listen == nil || listen.Address == "" || l.state.config.Incomplete { // an auth block may be missing
		return
	}
	if err := l.options.Checks.Listen(listen, l.catalog.Auths); err != nil {
		l.state.report(diag.List{{
			Code: "open-listen", Range: listen.AddressRange, Summary: err.Error(),
			Detail: "listen on 127.0.0.1, or add an auth block and a tls block, or override with --insecure-listen",
		}})
	}
}

// BadAudit returns the diagnostic for an audit block with a log that cannot be written.
func BadAudit(audit *definition.Audit, err error) diag.Diagnostic {
	return diag.Diagnostic{
		Code: "bad-audit", Range: audit.Range, Summary: fmt.Sprintf("calls cannot be audited: %v", err), Detail: "fix the path, or the file that it names",
	}
}

// AuditInUse returns the diagnostic for an audit log that another process has open.
func AuditInUse(audit *definition.Audit, err error) diag.Diagnostic {
	d := BadAudit(audit, err)
	d.Detail = "stop that process, or set another path"
	return d
}

// AuditChanged returns the warning about an audit block, nil if it was removed, that differs from the
// one in effect. audited reports whether calls are audited.
func AuditChanged(block *definition.Audit, audited bool) diag.Diagnostic {
	d := restartNeeded("the audit block has changed; until mcpd is restarted, calls are not audited")
	if audited {
		d.Summary = "the audit block has changed; until mcpd is restarted, calls are audited as before"
	}
	if block != nil {
		d.Range = block.Range
	}
	return d
}

// StateChanged returns the warning about a state block, nil if it was removed, that differs from the
// one in effect.
func StateChanged(block *definition.State) diag.Diagnostic {
	d := restartNeeded("the state block has changed; until mcpd is restarted, the state is where it was")
	if block != nil {
		d.Range = block.Range
	}
	return d
}

func restartNeeded(summary string) diag.Diagnostic {
	return diag.Diagnostic{Severity: diag.Warning, Code: "restart-needed", Summary: summary, Detail: "restart mcpd, or undo the change"}
}

// checkTLS reports a tls block with files that cannot be used.
func (l *linker) checkTLS(tls definition.ListenTLS) {
	if l.options.Checks.TLS == nil {
		return
	}
	if err := l.options.Checks.TLS(tls); err != nil {
		l.state.report(diag.List{{
			Code: "bad-tls", Range: tls.Range, Summary: fmt.Sprintf("the tls block cannot be applied: %v", err), Detail: "fix the block or the files that it names",
		}})
	}
}

// checkAuths reports auth blocks that cannot be applied, as they would reject every caller. An
// error of one block is reported at that block, and an error of the combination at the last block.
func (l *linker) checkAuths() {
	found := len(l.catalog.Auths) == 0
	for i, block := range l.catalog.Auths {
		switch {
		case block.JWT != nil && block.JWT.Issuer == "":
			found = true // already reported
		case block.JWT != nil && l.options.NoTokens:
			found = true
			l.state.report(diag.List{{
				Code: "missing-extension", Range: block.Range, Summary: "this program cannot check tokens",
				Detail: "import github.com/mcpd/mcpd/extensions/oidc into the program, and add oidc.New() to engine.Options.Extensions",
			}})
		default:
			found = l.checkAuth(l.catalog.Auths[i:i+1], block) || found
		}
	}
	if !found {
		l.checkAuth(l.catalog.Auths, l.catalog.Auths[len(l.catalog.Auths)-1])
	}
}

// checkAuth reports an error of the blocks at one of them. It returns whether there is one.
func (l *linker) checkAuth(blocks []definition.Auth, at definition.Auth) bool {
	if l.options.Checks.Auth == nil {
		return false
	}
	err := l.options.Checks.Auth(blocks)
	if err != nil {
		l.state.failedAuth = append(l.state.failedAuth, blocks...)
		l.state.report(diag.List{{
			Code: "bad-auth", Range: at.Range, Summary: fmt.Sprintf("auth %q %q cannot be applied: %v", at.Kind, at.Name, err),
			Detail: "fix the block or the file that it names",
		}})
	}
	return err != nil
}

// resolvePath resolves a path relative to a directory; an empty path stays empty.
func resolvePath(folder, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(folder, filepath.FromSlash(path))
}

// checkIDs warns of policies and inputs that identify callers by principal.id alone, if several
// auth blocks may assign the same id to different callers.
func (l *linker) checkIDs(config *definition.Config) {
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
			l.state.report(diag.List{{
				Severity: diag.Warning, Code: "ambiguous-principal", Range: id,
				Summary: fmt.Sprintf("%s identifies callers by principal.id alone, but the auth blocks %s may give two callers the same id", what, blocks),
				Detail:  "compare principal.issuer, too: the URL of the identity provider, the issuer of the certificate, or '' for API keys and local users",
			}})
		}
	}
	for _, policies := range [][]definition.Policy{config.Policies, l.state.policies} {
		for i := range policies {
			p := &policies[i]
			warn(fmt.Sprintf("policy %q", p.Name), textOf(p.When), textOf(p.Allow), textOf(p.Deny), textOf(p.Approval))
		}
	}
	for _, item := range l.state.items {
		for i := range item.From {
			warn(fmt.Sprintf("the input %q", item.From[i].Name), &item.From[i].Text)
		}
	}
}

// ListInput returns the policy input for a caller that lists items.
func ListInput(caller identity.Caller, now time.Time) policylang.Input {
	return policylang.Input{Caller: caller, Call: policylang.CallFacts{Via: string(call.ViaClient)}, Now: now}
}

// DecisionFunc receives the decision of a policy, with the index of the policy in its entry.
type DecisionFunc func(index int, decision policylang.Decision)

// DecideStatic evaluates all policies of an item without arguments, and calls record for each,
// unless record is nil. It returns the first policy that denies the call whatever the arguments are.
// covered reports that an allow rule may still allow the call.
func (e *Entry) DecideStatic(ctx context.Context, facts policylang.Input, record DecisionFunc) (denier *Policy, decision policylang.Decision, covered bool) {
	for i := range e.Rules {
		p := &e.Rules[i]
		if p.Compiled == nil {
			continue
		}
		decision = p.Compiled.Partial(ctx, facts)
		if record != nil {
			record(i, decision)
		}
		if decision.Outcome == policylang.Deny {
			return p, decision, covered
		}
		covered = covered || p.Allows && decision.Outcome != policylang.NotApplicable
	}
	return nil, policylang.Decision{}, covered
}

// IsHidden reports whether policies deny every call of an item to a caller, so that the item is not
// listed. facts describe the caller and its call.
func (c *Catalog) IsHidden(ctx context.Context, e *Entry, facts policylang.Input) bool {
	facts.Tool = e.Facts
	denier, _, covered := e.DecideStatic(ctx, facts, nil)
	return denier != nil || c.DenyByDefault && !covered
}

// HiddenMask returns a byte per entry of a kind, in order: 1 if the entry is hidden from the
// caller. It returns nil if nothing can be hidden.
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

// Nearest returns the address of a visible item that the caller may have intended: the resource of
// that name, the upstream item that its own server calls so, an item with a similar address, one
// with an address that ends in the name, or a template of its shape. It returns "" if there is
// none.
func (c *Catalog) Nearest(ctx context.Context, k Kind, name string, input policylang.Input) string {
	hidden := c.HiddenMask(ctx, k, input)
	addresses, prefixed := make([]string, 0, len(c.Entries[k])), map[string]string{}
	for i, e := range c.Entries[k] {
		switch {
		case hidden != nil && hidden[i] != 0:
		case k != Tools && e.Name == name:
			return e.Address
		default:
			addresses = append(addresses, e.Address)
			if bare := c.withoutPrefix(k, e); bare != "" && (prefixed[bare] == "" || e.Address < prefixed[bare]) {
				prefixed[bare] = e.Address
			}
		}
	}
	if full := prefixed[name]; full != "" {
		return full
	}
	near := diag.Suggest(name, slices.AppendSeq(slices.Clone(addresses), maps.Keys(prefixed)))
	if full := prefixed[near]; full != "" && !slices.Contains(addresses, near) {
		near = full
	}
	longer := ""
	if k == Tools || k == Prompts {
		longer = diag.SuggestLonger(name, addresses)
	}
	return cmp.Or(near, longer, c.firstTemplate(k, name, func(e *Entry) bool { return c.IsHidden(ctx, e, input) }))
}

// withoutPrefix returns the name of an upstream tool or prompt without the prefix of the upstream;
// "" if it has no prefix.
func (c *Catalog) withoutPrefix(k Kind, e *Entry) string {
	if e.Upstream == "" || k != Tools && k != Prompts {
		return ""
	}
	for i := range c.Upstreams {
		if u := &c.Upstreams[i]; u.Name == e.Upstream && u.Prefix != "" {
			bare, _ := strings.CutPrefix(e.Address, u.Prefix)
			if bare != e.Address {
				return bare
			}
		}
	}
	return ""
}

// firstTemplate returns the address of the first visible template that the URI would match with
// other values; "" if there is none, or if the kind is not Resources.
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
