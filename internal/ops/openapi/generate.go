// Package openapi generates tool files from OpenAPI documents.
//
// [Generate] makes a tool and a test of each selected operation. [Merge] puts them into the file of
// an earlier import, and keeps the blocks that were edited since.
//
// Documents are untrusted. They supply text, schemas and hosts; the caller must show the hosts to the
// operator. All their texts are quoted as HCL, JSON or JavaScript on one line. Names of tools,
// inputs, grants and secrets consist of letters, digits and underscores. Operations whose path has
// characters that a plain URL cannot have are left out.
package openapi

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/base/safetext"
	"github.com/mcpd/mcpd/internal/base/yaml"
	"github.com/mcpd/mcpd/internal/language/hclfile"
	"github.com/mcpd/mcpd/internal/language/schema"
	"github.com/mcpd/mcpd/internal/ops/openapi/spec"
	"github.com/mcpd/mcpd/internal/ops/tooltest"
)

// Options choose operations and names. An empty list selects all.
type Options struct {
	// Name is the name of the grant, and the start of the names of secrets.
	Name string
	// Prefix starts the names of all tools.
	Prefix string
	// Server is a URL that replaces the servers of the document.
	Server string
	// Bearer sends a bearer token where the document asks for no credential.
	Bearer                             bool
	Tags, Paths, Methods, OperationIDs []string
	// Earlier are the tools of an earlier import, by [spec.Operation.Key].
	Earlier map[string]EarlierTool
	// MaxText bounds the text of all tools and tests, in bytes, and MaxHCL that outside of heredocs.
	// Tools that the author owns do not count. Zero means no bound.
	MaxText, MaxHCL int
}

// Generated are the blocks of a document.
type Generated struct {
	Tools   []Tool
	Secrets []Secret
	// Skipped are the selected operations that no tool can serve.
	Skipped []Skipped
	// All are the keys of all operations of the document.
	All map[string]bool
}

// Tool is a tool and its test, in formatted HCL. Test is empty if there is no example to test with.
type Tool struct {
	Key, Name, Text, Test string
	// Arguments are an example of the required inputs, and AllArguments of all. Inputs without an
	// example are missing.
	Arguments, AllArguments json.RawMessage
}

// Secret is a secret that the tools need.
type Secret struct {
	Name, Variable string
	// Reveal means that scripts read it: it is sent in the query.
	Reveal bool
	// Hosts are the hosts that get it, sorted, with ports.
	Hosts []string
}

// Skipped is an operation without a tool, or a tool without a test.
type Skipped struct {
	Key, Reason string
	// Test means that only the test is missing.
	Test bool
}

// errTooComplex ends an import whose schemas refer to each other too often.
var errTooComplex = errors.New("the schemas of the document are too complex; select fewer operations with --tag, --path, --method or --operation")

// ErrTooLarge ends an import whose text exceeds MaxText or MaxHCL.
var ErrTooLarge = errors.New("the tools take more than 1 MiB, or 256 KiB outside of heredocs")

// Generate makes the tools of a document.
func Generate(d *spec.Document, o Options) (*Generated, error) { return newGenerator(d, o).generate() }

func newGenerator(d *spec.Document, o Options) *generator {
	return &generator{options: o, schemas: schemas{document: d, maxWork: maxWork}, out: &Generated{All: map[string]bool{}}}
}

func (g *generator) generate() (*Generated, error) {
	d, o := g.schemas.document, g.options
	if o.Server != "" {
		if _, err := parseEndpoint(o.Server, true); err != nil {
			return nil, fmt.Errorf("--server: %w", err)
		}
	}
	var selected []*spec.Operation
	var keys, wanted []string
	for _, op := range d.Operations {
		g.out.All[op.Key()] = true
		if !o.selects(op) {
			continue
		}
		if err := checkPath(op.Path); err != nil {
			g.out.Skipped = append(g.out.Skipped, Skipped{Key: op.Method + " " + safetext.Title(op.Path, 100), Reason: err.Error()})
			continue
		}
		selected, keys, wanted = append(selected, op), append(keys, op.Key()), append(wanted, op.ID)
	}
	names := toolNames(keys, wanted, o.Prefix, o.Earlier)
	for i, op := range selected {
		tool, err := g.tool(op, names[i])
		if g.schemas.work > g.schemas.maxWork {
			return nil, errTooComplex
		}
		if err != nil {
			g.out.Skipped = append(g.out.Skipped, Skipped{Key: op.Key(), Reason: err.Error()})
			continue
		}
		g.out.Tools = append(g.out.Tools, tool)
		if !o.Earlier[op.Key()].Owned {
			g.count(tool)
		}
		if o.MaxText > 0 && g.text > o.MaxText || o.MaxHCL > 0 && g.hcl > o.MaxHCL {
			return nil, ErrTooLarge
		}
	}
	return g.out, nil
}

// count adds the sizes of the blocks of a tool.
func (g *generator) count(tool Tool) {
	for _, kind := range []string{"tool", "test"} {
		if text := tool.block(kind); text != "" {
			text = marked(kind, tool.Key, text)
			g.text += len(text)
			g.hcl += len(text)
			outline, _ := hclfile.OutlineOf([]byte(text))
			for _, h := range outline.Heredocs {
				g.hcl -= h.End - h.Start
			}
		}
	}
}

// selects reports whether the options select an operation.
func (o *Options) selects(op *spec.Operation) bool {
	one := func(list []string, fits func(string) bool) bool {
		return len(list) == 0 || slices.ContainsFunc(list, fits)
	}
	return one(o.Tags, func(tag string) bool { return slices.Contains(op.Tags, tag) }) &&
		one(o.Methods, func(method string) bool { return strings.EqualFold(method, op.Method) }) &&
		one(o.OperationIDs, func(id string) bool { return id == op.ID }) &&
		one(o.Paths, func(glob string) bool { return matches(glob, op.Path) })
}

// matches matches a path with a glob. A final /** matches everything below.
func matches(glob, name string) bool {
	if below, ok := strings.CutSuffix(glob, "/**"); ok {
		for at := name; at != "/" && at != "."; at = path.Dir(at) {
			if fits, _ := path.Match(below, at); fits {
				return true
			}
		}
		return false
	}
	fits, _ := path.Match(glob, name)
	return fits
}

// generator makes tools one after the other.
type generator struct {
	options Options
	schemas schemas
	text    int // bytes of the tools and tests
	hcl     int // bytes of them outside of heredocs
	out     *Generated
}

func (g *generator) tool(op *spec.Operation, name string) (Tool, error) {
	if op.Problem != "" {
		return Tool{}, errors.New(words(op.Problem, maxNote))
	}
	if op.Method == "OPTIONS" {
		return Tool{}, errors.New("OPTIONS describes the server itself")
	}
	at, err := endpointOf(g.schemas.document, op, g.options.Server)
	if err != nil {
		return Tool{}, err
	}
	g.schemas.compiled = map[*yaml.Map]*schema.Schema{}
	r := &request{schemas: &g.schemas, op: op, taken: map[string]bool{}, helpers: map[string]bool{}, exampleValues: &yaml.Map{}}
	if err := r.parameters(at); err != nil {
		return Tool{}, errors.New(words(err.Error(), maxNote))
	}
	if err := r.requestBody(); err != nil {
		return Tool{}, err
	}
	credentials, secrets, err := g.credentials(op)
	if err != nil {
		return Tool{}, err
	}
	answer := r.answerOf()
	var b strings.Builder
	fmt.Fprintf(&b, "tool %s {\n  description = %s\n  timeout = \"30s\"\n", tooltest.QuoteHCL(name), tooltest.QuoteHCL(description(op)))
	b.WriteString(annotations(op.Method))
	r.writeInputs(&b)
	if answer.output != nil {
		fmt.Fprintf(&b, "\n  output_schema = <<JSON\n%s\nJSON\n", pretty(answer.output))
	}
	g.writeGrant(&b, op, at, credentials)
	fmt.Fprintf(&b, "\n  run = <<JS\n%s\nJS\n}\n", strings.TrimRight(indent(r.script(g.options.Name, credentials, answer)), "\n"))
	tool := Tool{Key: op.Key(), Name: name, Arguments: appendJSON(nil, r.exampleValues), AllArguments: appendJSON(nil, r.allExamples())}
	if tool.Text, err = formatted(b.String()); err != nil {
		return Tool{}, err
	}
	switch {
	case r.untestable != "":
		g.out.Skipped = append(g.out.Skipped, Skipped{op.Key(), fmt.Sprintf("no example fits input %s; write a test", r.untestable), true})
	case !answer.mock.ok:
		g.out.Skipped = append(g.out.Skipped, Skipped{op.Key(), "no example fits its response; write a test", true})
	default:
		if tool.Test, err = formatted(g.test(r, name, credentials, answer)); err != nil {
			return Tool{}, err
		}
	}
	if err := checkTool(tool, secrets); err != nil {
		return Tool{}, err
	}
	g.needSecrets(secrets, at.host)
	return tool, nil
}

// needSecrets records the secrets of a tool that are sent to a host.
func (g *generator) needSecrets(secrets []Secret, host string) {
	for _, s := range secrets {
		i := slices.IndexFunc(g.out.Secrets, func(known Secret) bool { return known.Name == s.Name })
		if i < 0 {
			i, g.out.Secrets = len(g.out.Secrets), append(g.out.Secrets, s)
		}
		all := &g.out.Secrets[i]
		all.Reveal = all.Reveal || s.Reveal
		if at, known := slices.BinarySearch(all.Hosts, host); !known {
			all.Hosts = slices.Insert(all.Hosts, at, host)
		}
	}
}

// formatted formats a block like mcpd fmt.
func formatted(block string) (string, error) {
	out, problems := hclfile.Format(hclfile.Source{Path: "imported.hcl", Bytes: []byte(block)})
	if problems.HasErrors() {
		return "", fmt.Errorf("its tool is not valid: %s", problems[0].Summary)
	}
	return string(out), nil
}

// checkTool reports why mcpd would not load a tool, so that one tool does not stop an import.
func checkTool(tool Tool, secrets []Secret) error {
	file, problems := hclfile.Parse(hclfile.Source{Path: "imported.hcl", Bytes: []byte(tool.Text + "\n" + tool.Test)}, hclfile.ToolsKind)
	if !problems.HasErrors() {
		var scope hclfile.Scope
		for _, s := range secrets {
			scope.Secrets = append(scope.Secrets, s.Name)
		}
		_, problems = file.Decode(scope)
	}
	for _, p := range problems {
		if p.Severity == diag.Error {
			return fmt.Errorf("its tool is not valid: %s", p.Summary)
		}
	}
	return nil
}

func indent(code string) string {
	var b strings.Builder
	for line := range strings.Lines(code) {
		b.WriteString("    " + line)
	}
	return b.String()
}

// maxDescription is the maximum length of the description of a tool, in bytes.
const maxDescription = 1_000

// description returns the texts of an operation, or its method and path if it has none.
func description(op *spec.Operation) string {
	text, more := words(op.Summary, maxDescription), words(op.Description, maxDescription)
	if more != "" && more != text {
		text = strings.TrimSpace(text + "\n\n" + more)
	}
	return cmp.Or(words(text, maxDescription), op.Key())
}

// annotations returns the arguments that describe the effect of a method (RFC 9110, 9.2).
func annotations(method string) string {
	switch method {
	case "GET", "HEAD":
		return "  read_only = true\n"
	case "DELETE":
		return "  destructive = true\n"
	case "PUT":
		return ""
	}
	return "  idempotent = false\n"
}

func (g *generator) writeGrant(b *strings.Builder, op *spec.Operation, at endpoint, credentials []credential) {
	var revealed []string
	fmt.Fprintf(b, "\n  allow {\n    http %s {\n      hosts = [%s]\n      methods = [%s]\n      paths = [%s]\n",
		tooltest.QuoteHCL(g.options.Name), tooltest.QuoteHCL(at.host), tooltest.QuoteHCL(op.Method), tooltest.QuoteHCL(pattern(at.base+op.Path)))
	if at.private {
		b.WriteString("      private_networks = true\n")
	}
	for _, c := range credentials {
		if c.header != "" {
			fmt.Fprintf(b, "      header %s {\n        value = %s\n      }\n", tooltest.QuoteHCL(c.header), c.value)
		} else {
			revealed = append(revealed, tooltest.QuoteHCL(c.secret))
		}
	}
	b.WriteString("    }\n")
	if revealed != nil {
		fmt.Fprintf(b, "    secrets {\n      names = [%s]\n    }\n", strings.Join(revealed, ", "))
	}
	b.WriteString("  }\n")
}

// credentials returns how an operation authenticates, by the first of its alternatives.
func (g *generator) credentials(op *spec.Operation) (all []credential, secrets []Secret, err error) {
	var schemes []spec.Scheme
	if len(op.Security) > 0 {
		schemes = op.Security[0]
	}
	if len(schemes) == 0 && g.options.Bearer {
		schemes = []spec.Scheme{{Kind: "bearer"}}
	}
	need := func(suffix string, reveal bool) string {
		name := short(g.options.Name+"_"+suffix, maxTool)
		secrets = append(secrets, Secret{Name: name, Variable: strings.ToUpper(name), Reveal: reveal})
		return name
	}
	headers := map[string]bool{}
	for _, s := range schemes {
		c := credential{header: "Authorization"}
		switch s.Kind {
		case "bearer":
			c.value = fmt.Sprintf(`"Bearer ${secret.%s}"`, need("token", false))
		case "basic":
			c.value = fmt.Sprintf(`"Basic ${base64encode("${secret.%s}:${secret.%s}")}"`, need("user", false), need("password", false))
		default:
			name := need(cmp.Or(snake(s.Name), "key"), s.In == "query")
			if s.In == "query" {
				c = credential{query: s.Header, secret: name}
				break
			}
			if isReserved(s.Header) && !strings.EqualFold(s.Header, "Authorization") || !token.MatchString(s.Header) {
				return nil, nil, errors.New("its API key is in a header that cannot be set")
			}
			c.header, c.value = s.Header, "secret."+name
		}
		if c.header != "" && headers[strings.ToLower(c.header)] {
			continue
		}
		headers[strings.ToLower(c.header)] = true
		all = append(all, c)
	}
	return all, secrets, nil
}

// test returns the test of a tool: a call with the required inputs, and the example response.
func (g *generator) test(r *request, name string, credentials []credential, a answer) string {
	var b strings.Builder
	target, query := r.examplePath, r.exampleQuery
	for _, c := range credentials {
		if c.query != "" {
			query = append(slices.Clip(query), pair{c.query, "example"})
		}
	}
	if len(query) > 0 {
		target += "?" + formEncode(query)
	}
	fmt.Fprintf(&b, "test %s {\n  tool = %s\n", tooltest.QuoteHCL(name+" sends its request"), tooltest.QuoteHCL(name))
	if len(r.exampleValues.Names) > 0 {
		fmt.Fprintf(&b, "  input = %s\n", tooltest.ValueHCL(appendJSON(nil, r.exampleValues)))
	}
	for _, c := range credentials {
		if c.query != "" {
			fmt.Fprintf(&b, "\n  mock \"secrets\" %s {\n    text = \"example\"\n  }\n", tooltest.QuoteHCL(c.secret))
		}
	}
	request := r.op.Method + " " + target
	fmt.Fprintf(&b, "\n  mock %s %s {\n", tooltest.QuoteHCL("http."+g.options.Name), tooltest.QuoteHCL(request))
	if status := a.mock.status; len(status) == 3 && status[0] == '2' && status != "200" && strings.Trim(status, "0123456789") == "" {
		fmt.Fprintf(&b, "    status = %s\n", status)
	}
	if a.mock.json {
		fmt.Fprintf(&b, "    text = <<JSON\n%s\nJSON\n", a.mock.text)
	} else {
		fmt.Fprintf(&b, "    text = %s\n", tooltest.QuoteHCL(a.mock.text))
	}
	fmt.Fprintf(&b, "  }\n\n  expect {\n    calls = [%s]\n  }\n}\n", tooltest.QuoteHCL(fmt.Sprintf("http.%s %s", g.options.Name, request)))
	return b.String()
}
