package hclfile

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/grant"
)

// maxConcurrency bounds limits.concurrency.
const maxConcurrency = 1 << 16

// DecodeConfig evaluates the config file with the given values of its variables. The config is
// complete only if the list has no errors.
func (f *File) DecodeConfig(values definition.VarValues) (_ *definition.Config, problems diag.List) {
	defer f.reportPanic(&problems)
	d := newDecoder(f, Scope{})
	r := fileRules[ConfigKind]
	d.check(f.body, r, "the config file", f.body.SrcRange)
	all := blocks(f.body, r)
	c := &definition.Config{Range: d.f.rng(f.body.SrcRange), Incomplete: f.broken}
	c.Variables = d.variables(ofType(all, "variable"), values)
	d.eval.scope = Scope{Vars: c.Variables, Secrets: declaredSecrets(ofType(all, "secret")), Incomplete: f.broken}
	c.Secrets = d.secrets(ofType(all, "secret"))
	c.Server = d.server(first(f.body, "server"))
	c.Listen = d.listen(first(f.body, "listen"))
	c.Auths = d.auths(ofType(all, "auth"), c.Listen)
	d.checkAnonymousTokens(c.Secrets, ofType(all, "auth"))
	c.Reload = d.reload(first(f.body, "reload"))
	c.Limits = d.limits(first(f.body, "limits"))
	c.Ceiling = d.ceiling(first(f.body, "ceiling"))
	c.Audit = d.audit(first(f.body, "audit"))
	c.State = d.state(first(f.body, "state"))
	c.Report = d.report(first(f.body, "report"))
	c.Upstreams = d.upstreams(ofType(all, "upstream"), c.Secrets)
	c.Codeact = d.codeact(first(f.body, "codeact"))
	c.Console = d.console(first(f.body, "console"), c.Auths)
	policies, limits, hooks := declaredNames{}, declaredNames{}, declaredNames{}
	for _, b := range all {
		switch b.Type {
		case "policy":
			d.declare(policies, b)
			c.Policies = append(c.Policies, d.policy(b))
		case "limit":
			d.declare(limits, b)
			c.RateLimits = append(c.RateLimits, d.limit(b))
		case "hook":
			d.declare(hooks, b)
			c.Hooks = append(c.Hooks, d.hook(b))
		}
	}
	return c, f.finish(d.problems)
}

func (d *decoder) server(b *hclsyntax.Block) definition.Server {
	s := definition.Server{Mode: definition.Development, DefaultDecision: definition.DecideAllow}
	if b == nil {
		return s
	}
	d.checkBody(b)
	s.Range = d.f.rng(b.DefRange())
	s.Name, _ = d.text(b.Body, "name")
	s.Title, _ = d.text(b.Body, "title")
	s.Version, _ = d.text(b.Body, "version")
	s.Description, _ = d.text(b.Body, "description")
	s.Instructions, _ = d.text(b.Body, "instructions")
	s.Icons = d.icons(b.Body, rules["server"])
	s.Mode = cmp.Or(d.enumAttr(b.Body, "mode", definition.Development, definition.Production), s.Mode)
	if s.Mode == definition.Production {
		s.DefaultDecision = definition.DecideDeny
	}
	s.DefaultDecision = cmp.Or(d.enumAttr(b.Body, "default_decision", definition.DecideAllow, definition.DecideDeny), s.DefaultDecision)
	if s.Mode == definition.Production && s.DefaultDecision == definition.DecideAllow {
		d.fail("contradiction", d.f.rng(b.Body.Attributes["default_decision"].Expr.Range()), "in production mode, the default decision is deny", "remove \"default_decision\", or the mode")
	}
	s.ExposeTraces, _ = d.boolean(b.Body, "expose_traces", false)
	if s.Mode == definition.Production && s.ExposeTraces {
		d.fail("contradiction", d.f.rng(b.Body.Attributes["expose_traces"].SrcRange), "in production mode, callers get no script positions", "remove \"expose_traces\", or the mode; the log has the positions")
	}
	strict, _ := d.boolean(b.Body, "strict_lifecycle", true)
	s.LenientLifecycle = !strict
	return s
}

func (d *decoder) listen(b *hclsyntax.Block) definition.Listen {
	if b == nil {
		return definition.Listen{}
	}
	d.checkBody(b)
	l := definition.Listen{Range: d.f.rng(b.DefRange())}
	d.listenAddress(b, &l)
	l.Hosts = d.listOf(b.Body, "hosts", isListenHost, "this is not the name of a host", "write a name, such as \"mcp.internal\", without scheme and path")
	l.Origins = d.listOf(b.Body, "origins", isOrigin, "this is not an origin", "write scheme, host and perhaps port, such as \"https://app.example.com\"")
	l.TLS = d.listenTLS(first(b.Body, "tls"))
	return l
}

// listenAddress decodes the address or socket to listen on.
func (d *decoder) listenAddress(b *hclsyntax.Block, l *definition.Listen) {
	if address, ok := d.text(b.Body, "address"); ok {
		l.Address, l.AddressRange = address, d.f.rng(b.Body.Attributes["address"].Expr.Range())
		host, port, err := net.SplitHostPort(address)
		n, portErr := strconv.ParseUint(port, 10, 16)
		switch {
		case err != nil || strings.ContainsAny(host, "/@ "):
			d.fail("bad-value", l.AddressRange, "this is not an address to listen on", "write a host and a port, such as \"127.0.0.1:8080\"")
		case portErr != nil || strconv.FormatUint(n, 10) != port:
			d.fail("bad-value", l.AddressRange, "this is not a port to listen on", "write a port from 0 to 65535, such as \"127.0.0.1:8080\"; 0 chooses a free port")
		}
	}
	path, ok := d.text(b.Body, "unix")
	if !ok {
		return
	}
	where := d.f.rng(b.Body.Attributes["unix"].Expr.Range())
	if l.Address != "" {
		d.fail("contradiction", where, "the listen block has both \"address\" and \"unix\"", "keep one of them")
	}
	if !filepath.IsAbs(path) || strings.ContainsRune(path, 0) {
		d.fail("bad-value", where, "this is not the path of a socket", "write an absolute path, such as \"/run/mcpd/mcpd.sock\"")
	}
	l.Address, l.AddressRange = "unix:"+path, where
}

// isListenHost reports whether s is a host name, with or without a port.
func isListenHost(s string) bool {
	name, port, hasPort := cutPort(s)
	_, err := strconv.ParseUint(port, 10, 16)
	return definition.IsHostName(name) && !strings.Contains(name, "*") && (!hasPort || err == nil)
}

// isOrigin reports whether s is an origin (RFC 6454 section 6.2).
func isOrigin(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.Scheme != "" && u.Host != "" && u.User == nil && u.Path == "" && u.RawQuery == "" && u.Fragment == "" && !strings.Contains(s, "*")
}

func (d *decoder) reload(b *hclsyntax.Block) definition.Reload {
	l := definition.Reload{Watch: true}
	if b == nil {
		return l
	}
	d.checkBody(b)
	l.Range = d.f.rng(b.DefRange())
	l.Watch, _ = d.boolean(b.Body, "watch", true)
	l.RequireTests, _ = d.boolean(b.Body, "require_tests", false)
	return l
}

func (d *decoder) limits(b *hclsyntax.Block) definition.Limits {
	if b == nil {
		return definition.Limits{}
	}
	d.checkBody(b)
	bounds := d.bounds(b.Body)
	return definition.Limits{Concurrency: bounds.Concurrency, Memory: bounds.Memory, Range: d.f.rng(b.DefRange())}
}

func (d *decoder) ceiling(b *hclsyntax.Block) *definition.Ceiling {
	if b == nil {
		return nil
	}
	d.checkBody(b)
	c := &definition.Ceiling{Range: d.f.rng(b.DefRange()), Bounds: d.bounds(b.Body)}
	c.HTTPHosts, c.PrivateNetworks = d.ceilingHosts(b.Body, "http_hosts", ":443"), d.ceilingHosts(b.Body, "private_networks", ":443")
	c.Ask = d.ceilingWords(b.Body, "ask", askNames, "%s is not an input request")
	c.KV = d.ceilingWords(b.Body, "kv", grant.Scopes(), "%s is not a scope")
	c.ExecPaths, c.Modules = d.ceilingPrograms(b.Body), d.ceilingIdentifiers(b.Body, "modules", "module", "ledger")
	c.FSRoots, c.Env = d.ceilingRoots(b.Body, "fs_roots"), d.ceilingIdentifiers(b.Body, "env", "variable", "APP_*")
	c.SQLDrivers = d.ceilingWords(b.Body, "sql_drivers", sqlDrivers, "%s is not a driver")
	c.SQLRoots, c.SQLHosts = d.ceilingRoots(b.Body, "sql_roots"), d.ceilingHosts(b.Body, "sql_hosts", ":5432")
	return c
}

// ceilingHosts decodes the allowed hosts, or nil if the ceiling has no list. port is the usual
// port, for advice.
func (d *decoder) ceilingHosts(body *hclsyntax.Body, name, port string) []definition.Name {
	return d.ceilingList(body, name, func(e stringItem) (string, bool) {
		host := strings.ToLower(e.text)
		problem, detail := hostShape(host)
		if problem != "" {
			d.fail("bad-grant", d.f.rng(e.where), problem, strings.ReplaceAll(detail, ":443", port))
		}
		return host, problem == ""
	})
}

// ceilingWords decodes a list of allowed words, or nil if the ceiling has no list.
func (d *decoder) ceilingWords(body *hclsyntax.Body, name string, words []string, wrong string) []definition.Name {
	if body.Attributes[name] == nil {
		return nil
	}
	names := []definition.Name{}
	for _, e := range d.choices(body, name, words, wrongWord{"bad-grant", wrong, "write some of"}) {
		names = append(names, definition.Name{Text: e.text, Range: d.f.rng(e.where)})
	}
	return names
}

// Maximums of an audit block.
const (
	maxAuditFile  = 16 << 30
	maxAuditFiles = 10_000
	maxAuditAge   = 10 * 365 * 24 * time.Hour
)

func (d *decoder) audit(b *hclsyntax.Block) *definition.Audit {
	if b == nil {
		return nil
	}
	d.checkBody(b)
	a := &definition.Audit{Range: d.f.rng(b.DefRange())}
	d.auditPath(b.Body, a)
	a.Mode = cmp.Or(d.enumAttr(b.Body, "mode", definition.AuditRelaxed, definition.AuditStrict), definition.AuditRelaxed)
	a.MaxSize = d.size(b.Body, "max_size", maxAuditFile)
	a.MaxFiles = d.intAttr(b.Body, "keep", 1, maxAuditFiles)
	a.MaxAge = d.durationWithin(b.Body, "max_age", 0, maxAuditAge)
	a.Capture = d.patterns(b.Body, "capture", patternTexts{wrong: "this is not a name", characters: patternCharacters,
		empty: "the list of names is empty", detail: "add names, or remove \"capture\" to record no values"})
	return a
}

func (d *decoder) auditPath(body *hclsyntax.Body, a *definition.Audit) {
	path, ok := d.text(body, "path")
	if !ok {
		return
	}
	a.Path, a.PathRange = path, d.f.rng(body.Attributes["path"].Expr.Range())
	if path == "" || strings.HasSuffix(path, "/") || strings.ContainsRune(path, 0) || strings.Trim(path, "./") == "" {
		d.fail("bad-value", a.PathRange, "this is not the path of a file", "write the path of the log, such as \"audit/mcpd.jsonl\"")
	}
}

func (d *decoder) state(b *hclsyntax.Block) *definition.State {
	if b == nil {
		return nil
	}
	d.checkBody(b)
	s := &definition.State{Range: d.f.rng(b.DefRange())}
	d.stateURL(b.Body.Attributes["url"], s)
	s.Key = d.secretOnly(b.Body, "key")
	s.OldKey = d.secretOnly(b.Body, "old_key")
	s.Fleet = d.nonEmptyText(b.Body, "fleet", "write the name that all servers with this state share, or remove it")
	if inner := first(b.Body, "replica"); inner != nil {
		s.Replica = d.replica(inner)
		if b.Body.Attributes["key"] == nil {
			d.fail("missing-argument", d.f.rng(inner.DefRange()), "a replica block needs a key in its state block", "replicas recognize each other by the key: declare a secret that all of them share, and write key = secret.NAME")
		}
	}
	return s
}

// replica decodes where a server listens for requests of other replicas.
func (d *decoder) replica(b *hclsyntax.Block) *definition.Replica {
	d.checkBody(b)
	r := &definition.Replica{}
	r.Listen = d.matchingText(b.Body, "listen", func(s string) bool { return isHostPort(s, 0) }, "this is not an address to listen on", "write an address and a port, such as \"0.0.0.0:7443\"")
	r.Address = d.matchingText(b.Body, "address", func(s string) bool {
		host, _, _ := net.SplitHostPort(s)
		return isHostPort(s, 1) && host != ""
	}, "this is not an address to connect to", "write the address and the port at which the other servers reach this one, such as \"10.0.0.7:7443\"")
	return r
}

// isHostPort reports whether s is HOST:PORT with a port that is at least least.
func isHostPort(s string, least uint64) bool {
	host, port, err := net.SplitHostPort(s)
	n, portErr := strconv.ParseUint(port, 10, 16)
	return err == nil && len(s) <= 300 && !strings.ContainsAny(host, "/@ \x00") && portErr == nil && strconv.FormatUint(n, 10) == port && n >= least
}

// stateURL decodes the URL of the database: one secret, or a URL with secrets in it.
func (d *decoder) stateURL(attr *hclsyntax.Attribute, s *definition.State) {
	if attr == nil {
		return
	}
	parts, ok := d.privateText(attr.Expr)
	if !ok {
		return
	}
	where := d.f.rng(attr.Expr.Range())
	s.URL = grant.Value{Parts: parts}
	if len(parts) == 1 && parts[0].Secret != "" {
		return
	}
	text := ""
	for _, p := range parts {
		if p.Secret != "" || p.Base64 != nil {
			text += secretMark
		}
		text += p.Literal
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" || u.Host == "" {
		d.fail("bad-value", where, "this is not the URL of a PostgreSQL database", "write url = secret.NAME, or \"postgres://mcpd:${secret.NAME}@HOST:5432/DATABASE?sslmode=verify-full\"")
		return
	}
	if password, written := u.User.Password(); written && password != secretMark {
		d.fail("misplaced-secret", where, "the file contains the password", "declare a secret with env, file or command, and write ${secret.NAME} instead")
	}
	if strings.Contains(u.Host+u.Path+u.RawQuery, secretMark) {
		d.fail("misplaced-secret", where, "a secret is in the address", "use secrets for the user and the password, or write url = secret.NAME for the whole URL")
	}
}

func (d *decoder) report(b *hclsyntax.Block) *definition.Report {
	if b == nil {
		return nil
	}
	d.checkBody(b)
	r := &definition.Report{Range: d.f.rng(b.DefRange()), Token: d.secretOnly(b.Body, "token"), Labels: d.stringMap(b.Body, "labels")}
	if text, ok := d.text(b.Body, "url"); ok {
		u, err := url.Parse(text)
		switch where := d.f.rng(b.Body.Attributes["url"].Expr.Range()); {
		case err != nil || u.Host == "" || u.Fragment != "" || !definition.IsHostName(definition.HostOf(u)):
			d.fail("bad-value", where, "this is not the URL of a web server", "write it as in \"https://maker.example.com/reports\"")
		case u.User != nil || u.RawQuery != "":
			d.fail("bad-value", where, "the URL contains a user or a query", "put a secret in token = secret.NAME, and other values in labels")
		case u.Scheme != "https" && (u.Scheme != "http" || !definition.IsLoopback(u.Hostname())):
			d.fail("bad-value", where, "reports need https", "write https://; http:// is only for this machine")
		default:
			r.URL = text
		}
	}
	r.Every = d.durationWithin(b.Body, "every", definition.DefaultReportEvery, definition.MaxReportEvery)
	if r.Every < definition.MinReportEvery {
		d.fail("bad-value", d.f.rng(b.Body.Attributes["every"].Expr.Range()), "\"every\" is out of range", "write at least 10s")
	}
	d.reportLabels(b.Body, r.Labels)
	return r
}

// reportLabels reports labels that a rollout could not select by.
func (d *decoder) reportLabels(body *hclsyntax.Body, labels map[string]string) {
	if len(labels) == 0 {
		return
	}
	x := body.Attributes["labels"].Expr
	if len(labels) > definition.MaxApplianceLabels {
		d.fail("bad-value", d.f.rng(x.Range()), "there are too many labels", fmt.Sprintf("write at most %d", definition.MaxApplianceLabels))
	}
	exprs := d.memberExprs(x)
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		key, value := exprs(name)
		for _, wrong := range []struct {
			text string
			x    hclsyntax.Expression
		}{{name, key}, {labels[name], value}} {
			if !definition.IsApplianceLabel(wrong.text) {
				d.fail("bad-value", d.f.rng(wrong.x.Range()), "this is not valid in a label", fmt.Sprintf("use 1 to %d letters, digits, \".\", \"_\", \"/\" and \"-\"", definition.MaxApplianceLabel))
			}
		}
	}
}

// secretOnly decodes an argument that must be one secret. It returns the name of the secret.
func (d *decoder) secretOnly(body *hclsyntax.Body, name string) string {
	attr := body.Attributes[name]
	if attr == nil {
		return ""
	}
	if usesSecret(attr.Expr) {
		parts, ok := d.secretText(attr.Expr)
		if !ok {
			return ""
		}
		if len(parts) == 1 && parts[0].Secret != "" {
			return parts[0].Secret
		}
	}
	d.fail("misplaced-secret", d.f.rng(attr.Expr.Range()), fmt.Sprintf("%q must be one secret", name), fmt.Sprintf("declare a secret with env, file or command, and write %s = secret.NAME", name))
	return ""
}

func (d *decoder) console(b *hclsyntax.Block, auths []definition.Auth) *definition.Console {
	if b == nil {
		return nil
	}
	d.checkBody(b)
	c := &definition.Console{Range: d.f.rng(b.DefRange()), Allow: d.cel(b.Body, "allow"), Operate: d.cel(b.Body, "operate"), Impersonate: d.cel(b.Body, "impersonate")}
	named := func(a definition.Auth) bool { return a.Kind != "anonymous" }
	if !slices.ContainsFunc(auths, named) && !d.f.broken {
		d.fail("contradiction", c.Range, "no caller can have access to the console", "add an auth block, so that callers have names; without one, use mcpd console on this machine")
	}
	return c
}

func (d *decoder) codeact(b *hclsyntax.Block) *definition.Codeact {
	if b == nil {
		return nil
	}
	d.checkBody(b)
	d.begin(b)
	c := &definition.Codeact{
		Range: d.f.rng(b.DefRange()), Bounds: d.boundsOf(b), Labels: d.stringMap(b.Body, "labels"),
	}
	c.Tools = d.toolPatterns(b.Body, "tools", patternCharacters)
	c.MaxCalls = cmp.Or(d.intAttr(b.Body, "max_calls", 1, definition.MaxCodeCalls), definition.DefaultCodeCalls)
	c.MaxParallel = cmp.Or(d.intAttr(b.Body, "max_parallel", 1, definition.MaxCodeParallel), definition.DefaultCodeParallel)
	c.MaxStdout = int(cmp.Or(d.size(b.Body, "max_stdout", definition.MaxCodeStdout), definition.DefaultCodeStdout))
	c.Search, _ = d.boolean(b.Body, "search", true)
	if _, written := c.Ranges["timeout"]; !written {
		c.Timeout = definition.DefaultCodeTimeout
	}
	c.AskTimeout = d.durationWithin(b.Body, "ask_timeout", definition.DefaultAskTimeout, definition.MaxAskTimeout)
	c.Hashes = d.hashes()
	return c
}
