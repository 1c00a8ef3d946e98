package configcheck_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/configcheck"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/hclfile"
)

// at returns a distinct range.
func at(file string, line int) diag.Range {
	return diag.Range{File: file, Start: diag.Pos{Line: line, Column: 1}}
}

// config decodes a config file.
func config(t *testing.T, text string) *definition.Config {
	t.Helper()
	file, problems := hclfile.Parse(hclfile.Source{Path: "mcpd.hcl", Bytes: []byte(text)}, hclfile.ConfigKind)
	if problems.HasErrors() {
		t.Fatal(problems)
	}
	decoded, problems := file.DecodeConfig(nil)
	if problems.HasErrors() {
		t.Fatal(problems)
	}
	return decoded
}

// tools decodes a tool file.
func tools(t *testing.T, name, text string) *definition.Definitions {
	t.Helper()
	file, problems := hclfile.Parse(hclfile.Source{Path: name, Bytes: []byte(text)}, hclfile.ToolsKind)
	if problems.HasErrors() {
		t.Fatal(problems)
	}
	defined, problems := file.Decode(hclfile.Scope{})
	if problems.HasErrors() {
		t.Fatal(problems)
	}
	return &defined
}

// said returns the diagnostics in a comparable form.
func said(problems diag.List) []string {
	var lines []string
	for _, p := range problems.Sort() {
		lines = append(lines, p.String())
		for _, note := range p.Notes {
			lines = append(lines, "  note "+note.Range.String()+": "+note.Message)
		}
	}
	return lines
}

func TestCheck_valid(t *testing.T) {
	got := configcheck.Check(
		config(t, "policy \"everything\" {\n  deny   = \"false\"\n  reason = \"no\"\n}\n"),
		[]*definition.Definitions{
			tools(t, "a.hcl", "tool \"a\" { run = \"return 1;\" }\nhook \"h\" {\n  on = [\"end\"]\n  tools = [\"built_in\", \"a*\"]\n  run = \"log.info('x');\"\n}\n"),
			tools(t, "b.hcl", "policy \"p\" {\n  tools = [\"a\"]\n  deny = \"false\"\n  reason = \"no\"\n}\ntest \"t\" {\n  tool = \"a\"\n  expect { denied_by = \"p\" }\n}\n"),
		},
		configcheck.External{Names: []configcheck.ExternalName{{Kind: "tool", Name: "built_in", Range: at("(go)", 0)}}},
	)
	if len(got) != 0 {
		t.Errorf("got %v", said(got))
	}
}

func TestCheck_duplicateNames(t *testing.T) {
	const policy = "policy \"p\" {\n  deny = \"false\"\n  reason = \"no\"\n}\n"
	const hook = "hook \"h\" {\n  on = [\"end\"]\n  run = \"log.info('x');\"\n}\n"
	const tool = "tool \"a\" { run = \"return 1;\" }\ntool \"go\" { run = \"return 1;\" }\n"
	got := configcheck.Check(config(t, policy+hook),
		[]*definition.Definitions{tools(t, "a.hcl", tool), tools(t, "b.hcl", tool+policy+hook)},
		configcheck.External{Names: []configcheck.ExternalName{{Kind: "tool", Name: "go", Range: at("(go)", 0)}}},
	)
	want := []string{
		`a.hcl:2:6: error: tool "go" is defined twice; rename one of them or remove it`, "  note (go): it is first defined here",
		`b.hcl:1:6: error: tool "a" is defined twice; rename one of them or remove it`, "  note a.hcl:1:6: it is first defined here",
		`b.hcl:2:6: error: tool "go" is defined twice; rename one of them or remove it`, "  note (go): it is first defined here",
		`b.hcl:3:8: error: policy "p" is defined twice; rename one of them or remove it`, "  note mcpd.hcl:1:8: it is first defined here",
		`b.hcl:7:6: error: hook "h" is defined twice; rename one of them or remove it`, "  note mcpd.hcl:5:6: it is first defined here",
	}
	if diff := cmp.Diff(want, said(got)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestCheck_unknownNames(t *testing.T) {
	got := configcheck.Check(config(t, ""), []*definition.Definitions{tools(t, "a.hcl", `
tool "get_customer" { run = "return 1;" }
policy "p" {
  tools  = ["get_custmer"]
  deny   = "false"
  reason = "no"
}
hook "h" {
  on    = ["end"]
  tools = ["nothing_like_it"]
  run   = "log.info('x');"
}
test "t" {
  tool = "get_customr"
  expect { denied_by = "pp" }
}
`)}, configcheck.External{})
	want := []string{
		`a.hcl:4:13: error: there is no tool named "get_custmer"; did you mean "get_customer"?`,
		`a.hcl:10:12: error: there is no tool named "nothing_like_it"; define it, or correct the name`,
		`a.hcl:14:10: error: there is no tool named "get_customr"; did you mean "get_customer"?`,
		`a.hcl:15:24: error: there is no policy named "pp"; define it, or correct the name`,
	}
	if diff := cmp.Diff(want, said(got)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestCheck_unmatchedPattern(t *testing.T) {
	got := configcheck.Check(config(t, ""), []*definition.Definitions{tools(t, "a.hcl", `
policy "p" {
  tools  = ["get_*", "*"]
  deny   = "false"
  reason = "no"
}
`)}, configcheck.External{})
	want := []string{`a.hcl:3:13: warning: no tool matches the pattern "get_*" of policy "p"; it may match tools that are added later; remove it if there will be none`}
	if diff := cmp.Diff(want, said(got)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestCheck_testOfMissingTool(t *testing.T) {
	got := configcheck.Check(config(t, ""), []*definition.Definitions{tools(t, "a.hcl", `
test "it is gone" {
  tool = "old"
  expect { error = "TOOL_NOT_FOUND" }
}
`)}, configcheck.External{})
	if len(got) != 0 {
		t.Errorf("got %v", said(got))
	}
}

const granting = `
tool "crm" {
  allow {
    http "crm" { hosts = ["crm.example.com:443", "crm.example.net:443"] }
  }
  run = "return http.crm;"
}
hook "report" {
  on = ["end"]
  allow {
    http "log" { hosts = ["*.net:443"] }
  }
  run = "http.log;"
}
`

func TestCeiling_grants(t *testing.T) {
	got := configcheck.Check(config(t, "ceiling { http_hosts = [\"*.example.com:443\"] }\n"), []*definition.Definitions{tools(t, "a.hcl", granting)}, configcheck.External{})
	var summaries []string
	for _, p := range got.Sort() {
		summaries = append(summaries, p.Code+" "+p.Summary)
		if p.Range.File != "a.hcl" || len(p.Notes) != 1 || p.Notes[0].Range.File != "mcpd.hcl" {
			t.Errorf("%s has the range %s and the notes %v", p.Summary, p.Range, p.Notes)
		}
	}
	want := []string{
		`over-ceiling tool "crm" grants the host "crm.example.net:443", which the ceiling does not allow`,
		`over-ceiling hook "report" grants the host "*.net:443", which the ceiling does not allow`,
	}
	if diff := cmp.Diff(want, summaries); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestCeiling_privateNetworks(t *testing.T) {
	const reaching = `
tool "t" {
  allow {
    http "near" {
      hosts            = ["localhost:80", "build.internal:80"]
      private_networks = true
    }
    http "far" {
      hosts            = ["api.example.com:443"]
      private_networks = false
    }
  }
  run = "return http.near && http.far;"
}
`
	const (
		local    = `a.hcl:6:26: error: tool "t" grants the host "localhost:80" in private networks, which the ceiling does not allow; remove private_networks, or ask the operator to add the host to ceiling.private_networks`
		internal = `a.hcl:6:26: error: tool "t" grants the host "build.internal:80" in private networks, which the ceiling does not allow; remove private_networks, or ask the operator to add the host to ceiling.private_networks`
		note     = `  note mcpd.hcl:1:1: the ceiling`
	)
	for ceiling, want := range map[string][]string{
		``: nil,
		`ceiling { http_hosts = ["*:80", "*:443"] }`:                       nil,
		`ceiling { private_networks = [] }`:                                {internal, note, local, note},
		`ceiling { private_networks = ["*.internal:*"] }`:                  {local, note},
		`ceiling { private_networks = ["build.internal:443"] }`:            {internal, note, local, note},
		`ceiling { private_networks = ["localhost:80", "*.internal:80"] }`: nil,
	} {
		got := said(configcheck.Check(config(t, ceiling), []*definition.Definitions{tools(t, "a.hcl", reaching)}, configcheck.External{}))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", ceiling, diff)
		}
	}
}

func TestCeiling_emptyHosts(t *testing.T) {
	got := configcheck.Check(config(t, "ceiling { http_hosts = [] }\n"), []*definition.Definitions{tools(t, "a.hcl", granting)}, configcheck.External{})
	if len(got) != 3 {
		t.Errorf("3 hosts are granted; over the ceiling: %v", said(got))
	}
	for _, p := range got {
		if p.Code != "over-ceiling" {
			t.Error(p)
		}
	}
}

func TestCeiling_none(t *testing.T) {
	files := []*definition.Definitions{tools(t, "a.hcl", granting)}
	for _, operator := range []string{"", "ceiling { }\n"} {
		if got := configcheck.Check(config(t, operator), files, configcheck.External{}); len(got) != 0 {
			t.Errorf("with %q: %v", operator, said(got))
		}
	}
}

func TestCeiling_configFileIsExempt(t *testing.T) {
	got := configcheck.Check(config(t, `
ceiling { http_hosts = ["*.example.net:443"] }
hook "report" {
  on = ["end"]
  allow {
    http "log" { hosts = ["log.example.com:443"] }
  }
  run = "http.log;"
}
`), nil, configcheck.External{})
	if len(got) != 0 {
		t.Errorf("got %v", said(got))
	}
}

func TestProduction_policyAndOutput(t *testing.T) {
	got := configcheck.Check(config(t, "server { mode = \"production\" }\n"), []*definition.Definitions{
		tools(t, "a.hcl", "tool \"bare\" { run = \"return 1;\" }\ntool \"good\" {\n  output \"n\" { type = integer }\n  run = \"return { n: 1 };\"\n}\n"),
		tools(t, "b.hcl", "policy \"p\" {\n  tools = [\"goo*\"]\n  deny = \"false\"\n  reason = \"no\"\n}\n"),
	}, configcheck.External{Names: []configcheck.ExternalName{{Kind: "tool", Name: "in_go", Range: at("(go) in_go", 0)}, {Kind: "tool", Name: "good_in_go", Range: at("(go) good_in_go", 0)}}})
	want := []string{
		`(go) good_in_go: warning: no allow policy covers tool "good_in_go": every call of it is denied; add a policy block whose tools match it, with allow = "…"`,
		`(go) in_go: error: no policy covers tool "in_go", which production mode requires; add a policy block whose tools match it`,
		`a.hcl:1:6: error: no policy covers tool "bare", which production mode requires; add a policy block whose tools match it`,
		`a.hcl:1:6: error: tool "bare" declares no output, which production mode requires; add output blocks for its result`,
		`a.hcl:2:6: warning: no allow policy covers tool "good": every call of it is denied; add a policy block whose tools match it, with allow = "…"`,
		`mcpd.hcl:1:1: error: there is no audit block, which production mode requires; add audit { path = "…" }`,
	}
	if diff := cmp.Diff(want, said(got)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestCheck_incomplete(t *testing.T) {
	got := configcheck.Check(config(t, ""), []*definition.Definitions{tools(t, "a.hcl", `
tool "one" { run = "return 1" }
policy "p" {
  tools  = ["two", "three", "t*"]
  deny   = "false"
  reason = "no"
}
test "t" {
  tool = "two"
  expect { output = 1 }
}
test "u" {
  resource = "page://two"
  expect { text = "2" }
}
`)}, configcheck.External{Incomplete: true})
	if len(got) > 0 {
		t.Error(said(got))
	}
}

func TestCheck_duplicateLimit(t *testing.T) {
	got := configcheck.Check(
		config(t, "limit \"all\" { rate = \"1/s\" }\n"),
		[]*definition.Definitions{tools(t, "a.hcl", "limit \"all\" { rate = \"1000/s\" }\n")}, configcheck.External{},
	)
	want := []string{`a.hcl:1:7: error: limit "all" is defined twice; rename one of them or remove it`, "  note mcpd.hcl:1:7: it is first defined here"}
	if diff := cmp.Diff(want, said(got)); diff != "" {
		t.Error(diff)
	}
}

// Only written limits can exceed the ceiling.
func TestCeiling_bounds(t *testing.T) {
	ceiling := "ceiling {\n  timeout = \"900ms\"\n  memory = \"64MiB\"\n  output = \"1MiB\"\n  concurrency = 8\n}\n"
	got := configcheck.Check(config(t, ceiling), []*definition.Definitions{tools(t, "a.hcl", `
tool "over" {
  limits {
    timeout     = "2s"
    memory      = "65MiB"
    output      = "2MiB"
    concurrency = 9
  }
  run = "return 1"
}
tool "silent" { run = "return 1" }
prompt "within" {
  timeout = "900ms"
  limits {
    memory      = "64MiB"
    output      = "1MiB"
    concurrency = 8
  }
  run = "return 'x'"
}
hook "silent" {
  on  = ["end"]
  run = "log.info('x')"
}
hook "over" {
  on      = ["end"]
  timeout = "1s"
  run     = "log.info('x')"
}
`)}, configcheck.External{})
	const detail = "; lower it to the ceiling, or ask the operator to raise the ceiling"
	want := []string{
		`a.hcl:4:19: error: tool "over" has more timeout than the ceiling allows` + detail, "  note mcpd.hcl:2:13: the ceiling",
		`a.hcl:5:19: error: tool "over" has more memory than the ceiling allows` + detail, "  note mcpd.hcl:3:12: the ceiling",
		`a.hcl:6:19: error: tool "over" has more output than the ceiling allows` + detail, "  note mcpd.hcl:4:12: the ceiling",
		`a.hcl:7:19: error: tool "over" has more concurrency than the ceiling allows` + detail, "  note mcpd.hcl:5:17: the ceiling",
		`a.hcl:27:13: error: hook "over" has more timeout than the ceiling allows` + detail, "  note mcpd.hcl:2:13: the ceiling",
	}
	if diff := cmp.Diff(want, said(got)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestCheck_callableTools(t *testing.T) {
	const file = `
tool "crm_get" { run = "return 1;" }
tool "report" {
  allow {
    call { tools = ["crm_get", "crm_gte", "crm_*", "erp_*", "*", "in_go", "report"] }
  }
  run = "return tools.crm_get();"
}
prompt "plan" {
  allow {
    call { tools = ["nowhere"] }
  }
  run = "return tools.nowhere();"
}
test "mocks" {
  tool = "report"
  mock "tools" "anything" { json = 1 }
  expect { output = 1 }
}
`
	got := said(configcheck.Check(config(t, ``), []*definition.Definitions{tools(t, "a.hcl", file)}, configcheck.External{Names: []configcheck.ExternalName{{Kind: "tool", Name: "in_go", Range: at("(go) in_go", 0)}}}))
	want := []string{
		`a.hcl:5:32: error: there is no tool named "crm_gte"; did you mean "crm_get"?`,
		`a.hcl:5:52: warning: no tool matches the pattern "erp_*" of tool "report"; it may match tools that are added later; remove it if there will be none`,
		`a.hcl:11:21: error: there is no tool named "nowhere"; define it, or correct the name`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestCheckMocks_tools(t *testing.T) {
	const file = `
tool "crm_get" { run = "return 1;" }
tool "report" {
  allow {
    call { tools = ["crm_get"] }
  }
  run = "return tools.crm_get();"
}
test "of the tool" {
  tool = "report"
  mock "tools" "crm_get" { json = 1 }
  mock "tools" "crm_gte" { json = 1 }
  expect { output = 1 }
}
test "of none" {
  tool = "crm_get"
  mock "tools" "report" { json = 1 }
  expect { output = 1 }
}
`
	got := said(configcheck.Check(config(t, ``), []*definition.Definitions{tools(t, "a.hcl", file)}, configcheck.External{}))
	want := []string{
		`a.hcl:12:3: error: tool "report" may not call tool "crm_gte", so this mock is never used; did you mean "crm_get"?`,
		`a.hcl:17:3: error: tool "crm_get" is not granted tools, so this mock is never used; add an allow block with call { tools = [...] } to it, or remove the mock`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestCheck_codeactTools(t *testing.T) {
	operator := config(t, "upstream \"crm\" { url = \"https://crm.example/mcp\" }\ncodeact {\n  tools = [\"lookup\", \"lokup\", \"sub_*\", \"crm_get\", \"crm_*\", \"*\"]\n}\n")
	files := []*definition.Definitions{tools(t, "a.hcl", "tool \"lookup\" { run = \"return 1\" }\n")}
	want := []string{
		`mcpd.hcl:3:22: error: there is no tool named "lokup"; did you mean "lookup"?`,
		`mcpd.hcl:3:31: warning: no tool matches the pattern "sub_*" of the codeact block; it may match tools that are added later; remove it if there will be none`,
	}
	if diff := cmp.Diff(want, said(configcheck.Check(operator, files, configcheck.External{}))); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// Code uses tool names without the prefix of the upstream, but the block uses the full names.
func TestCheck_codeactUpstreamTools(t *testing.T) {
	operator := config(t, "codeact {\n  tools = [\"read_file\"]\n}\n")
	files := []*definition.Definitions{tools(t, "a.hcl", "tool \"files_read_file\" { run = \"return 1\" }\n")}
	want := []string{`mcpd.hcl:2:12: error: there is no tool named "read_file"; did you mean "files_read_file"?`}
	if diff := cmp.Diff(want, said(configcheck.Check(operator, files, configcheck.External{}))); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestCheck_deniedByDefault(t *testing.T) {
	const file = `tool "open" { run = "return 1" }
tool "asked" { run = "return 1" }
tool "bare" { run = "return 1" }
prompt "hello" {
  message "user" { text = "hi" }
}
policy "allows" {
  tools  = ["open"]
  allow  = "principal.id == 'ada'"
  reason = "no"
}
policy "asks" {
  tools             = ["*"]
  requires_approval = "true"
  reason            = "sure?"
}
policy "results" {
  on     = "result"
  tools  = ["bare"]
  deny   = "false"
  reason = "no"
}
`
	warning := func(place, what, kind string) string {
		return place + ": warning: no allow policy covers " + what + ": every call of it is denied; add a policy block whose " + kind +
			`s match it, with allow = "…"`
	}
	for operator, want := range map[string][]string{
		"server { default_decision = \"deny\" }\n": {
			warning("a.hcl:2:6", `tool "asked"`, "tool"), warning("a.hcl:3:6", `tool "bare"`, "tool"), warning("a.hcl:4:8", `prompt "hello"`, "prompt"),
		},
		"server { default_decision = \"allow\" }\n": nil,
		"": nil,
	} {
		got := said(configcheck.Check(config(t, operator), []*definition.Definitions{tools(t, "a.hcl", file)}, configcheck.External{}))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s(-want +got)\n%s", operator, diff)
		}
	}
}

func TestCheck_deniedToolsOfOneBlock(t *testing.T) {
	operator := config(t, "server { default_decision = \"deny\" }\ncodeact {}\n")
	var offers []configcheck.ExternalName
	for _, name := range []string{"call_tool", "describe_tool", "run_code"} {
		offers = append(offers, configcheck.ExternalName{Kind: "tool", Name: name, Range: operator.Codeact.Range})
	}
	want := []string{`mcpd.hcl:2:1: warning: no allow policy covers tools "call_tool", "describe_tool" and "run_code": every call of them is denied; ` +
		`add a policy block whose tools match them, with allow = "…"`}
	if diff := cmp.Diff(want, said(configcheck.Check(operator, nil, configcheck.External{Names: offers}))); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestCheckEncryption_public(t *testing.T) {
	const file = `server { mode = %q }
audit { path = "/a.jsonl" }
secret "k" { env = "K" }
upstream "crm" {
  url = "http://mcp.example.com/mcp"
  header "Accept-Language" { value = "en" }
  header "Authorization" { value = "Basic ${base64encode("u:${secret.k}")}" }
}
`
	const detail = "write https://, or set private_networks = true if the host is in your own network"
	for mode, want := range map[string]string{
		"development": `mcpd.hcl:5:9: warning: the header "Authorization" sends a secret to this server unencrypted; ` + detail,
		"production":  `mcpd.hcl:5:9: error: the header "Authorization" sends a secret to this server unencrypted, which production mode forbids; ` + detail,
	} {
		if diff := cmp.Diff([]string{want}, said(configcheck.Check(config(t, fmt.Sprintf(file, mode)), nil, configcheck.External{}))); diff != "" {
			t.Errorf("%s (-want +got)\n%s", mode, diff)
		}
	}
}

func TestCheckEncryption_private(t *testing.T) {
	const header = "  header \"X-Key\" { value = secret.k }\n"
	url := func(url string) string { return fmt.Sprintf("  url = %q\n", url) }
	for says, told := range map[string]bool{
		url("http://mcp.example.com:8080/mcp") + header: true,
		url("HTTP://MCP.EXAMPLE.COM/mcp") + header:      true,
		url("http://203.0.113.7/mcp") + header:          true,
		url("http://[2001:db8::7]/mcp") + header:        true,
		url("http://local.example.com/mcp") + header:    true,

		url("https://mcp.example.com/mcp") + header:                                             false,
		url("http://mcp.example.com/mcp"):                                                       false,
		url("http://mcp.example.com/mcp") + "  header \"Authorization\" { value = \"none\" }\n": false,
		url("http://mcp.example.com/mcp") + "  private_networks = true\n" + header:              false,
		url("http://localhost:8080/mcp") + header:                                               false,
		url("http://crm.localhost/mcp") + header:                                                false,
		url("http://127.0.0.2/mcp") + header:                                                    false,
		url("http://[::1]:8080/mcp") + header:                                                   false,
		url("http://10.1.2.3/mcp") + header:                                                     false,
		url("http://[fd00::7]/mcp") + header:                                                    false,
		url("http://169.254.1.2/mcp") + header:                                                  false,
		url("http://crm:8080/mcp") + header:                                                     false,
		url("http://crm.tools.svc/mcp") + header:                                                false,
		url("http://crm.tools.svc.cluster.local/mcp") + header:                                  false,
		url("http://crm.corp.internal/mcp") + header:                                            false,
		"  container {\n    image = \"crm:1\"\n    port  = 8001\n  }\n" + header:                false,
	} {
		got := configcheck.Check(config(t, "secret \"k\" { env = \"K\" }\nupstream \"crm\" {\n"+says+"}\n"), nil, configcheck.External{})
		if strings.Contains(strings.Join(said(got), "\n"), "unencrypted") != told || len(got) > 1 {
			t.Errorf("%s\ngot %v, want a report: %t", says, said(got), told)
		}
	}
}
