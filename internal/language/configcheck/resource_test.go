package configcheck_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/internal/language/configcheck"
	"github.com/mcpd/mcpd/internal/language/definition"
)

func TestCeiling_inputRequests(t *testing.T) {
	const file = `
tool "t" {
  allow {
    ask {
      elicit = true
      sample = true
    }
  }
  run = "return 1;"
}
resource "r" {
  uri = "x:r"
  allow {
    ask { roots = true }
  }
  run = "return 1;"
}
resource_template "u" {
  uri_template = "x:u/{id}"
  allow {
    http "crm" { hosts = ["crm.example:443"] }
  }
  run = "return 1;"
}
prompt "p" {
  allow {
    ask { sample = true }
  }
  run = "return 1;"
}
`
	for ceiling, want := range map[string][]string{
		"": nil,
		`ceiling { ask = ["elicit", "sample"] }`: {
			`a.hcl:14:11: error: resource "r" grants "roots", which the ceiling does not allow; remove it, or ask the operator to add it to ceiling.ask`,
			"  note mcpd.hcl:1:1: the ceiling",
		},
		"ceiling {\n  http_hosts = []\n  ask = [\"sample\", \"roots\", \"elicit\"]\n}": {
			`a.hcl:21:27: error: template "u" grants the host "crm.example:443", which the ceiling does not allow; use a host of ceiling.http_hosts, or ask the operator to add this one`,
			"  note mcpd.hcl:1:1: the ceiling",
		},
		`ceiling { ask = ["roots"] }`: {
			`a.hcl:5:7: error: tool "t" grants "elicit", which the ceiling does not allow; remove it, or ask the operator to add it to ceiling.ask`,
			"  note mcpd.hcl:1:1: the ceiling",
			`a.hcl:6:7: error: tool "t" grants "sample", which the ceiling does not allow; remove it, or ask the operator to add it to ceiling.ask`,
			"  note mcpd.hcl:1:1: the ceiling",
			`a.hcl:27:11: error: prompt "p" grants "sample", which the ceiling does not allow; remove it, or ask the operator to add it to ceiling.ask`,
			"  note mcpd.hcl:1:1: the ceiling",
		},
	} {
		got := configcheck.Check(config(t, ceiling), []*definition.Definitions{tools(t, "a.hcl", file)}, configcheck.External{})
		if diff := cmp.Diff(want, said(got)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", ceiling, diff)
		}
	}
}

func TestCheck_duplicatesOfEachKind(t *testing.T) {
	const file = "resource \"r\" {\n  uri = \"x:r\"\n  text = \"x\"\n}\nprompt \"r\" {\n  message \"user\" { text = \"x\" }\n}\ntool \"r\" { run = \"return 1;\" }\n"
	const same = `
resource_template "r" {
  uri_template = "y:{id}"
  text = "x"
}
resource "s" {
  uri = "x:r"
  text = "x"
}
resource_folder "f" {
  root = "f"
  uri_prefix = "f:/"
}
resource_folder "g" {
  root = "g"
  uri_prefix = "f:/"
}
prompt "r" {
  message "user" { text = "x" }
}
`
	got := configcheck.Check(config(t, ""), []*definition.Definitions{tools(t, "a.hcl", file), tools(t, "b.hcl", same)}, configcheck.External{})
	want := []string{
		`b.hcl:2:19: error: resource "r" is defined twice; rename one of them or remove it`, "  note a.hcl:1:10: it is first defined here",
		`b.hcl:7:9: error: a second resource has the URI "x:r"; change one of them`, "  note a.hcl:2:9: it is first used here",
		`b.hcl:16:16: error: a second folder has the URI prefix "f:/"; change one of them`, "  note b.hcl:12:16: it is first used here",
		`b.hcl:18:8: error: prompt "r" is defined twice; rename one of them or remove it`, "  note a.hcl:5:8: it is first defined here",
	}
	if diff := cmp.Diff(want, said(got)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestCheck_overlappingTemplates(t *testing.T) {
	const file = `
resource "exact" {
  uri  = "crm://customers/C-1"
  text = "x"
}
resource_template "customer" {
  uri_template = "crm://customers/{id}"
  text         = "x"
}
resource_template "order" {
  uri_template = "crm://customers/{id}/orders/{order}"
  text         = "x"
}
resource_template "anything" {
  uri_template = "crm://{+path}"
  text         = "x"
}
`
	got := configcheck.Check(config(t, ""), []*definition.Definitions{tools(t, "a.hcl", file)}, configcheck.External{})
	want := []string{
		`a.hcl:15:18: warning: some URIs match template "anything" and template "customer"; the first one is used; change one of them, or merge them`,
		`  note a.hcl:7:18: template "customer"`,
	}
	if diff := cmp.Diff(want, said(got)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestCheck_targets(t *testing.T) {
	const file = `
resource "handbook" {
  uri = "x:r"
  text = "x"
}
resource_folder "docs" {
  root = "f"
  uri_prefix = "f:/"
}
resource_template "customer" {
  uri_template = "y:{id}"
  text = "x"
}
prompt "review" {
  message "user" { text = "x" }
}
hook "h" {
  on = ["end"]
  resources = ["handbook", "docs", "customer", "d*", "*", "review"]
  prompts = ["review", "handbook", "x*"]
  run = "log.info('x');"
}
`
	const policy = "policy \"p\" {\n  resources = [\"handbok\", \"x*\"]\n  prompts = [\"reviw\", \"*\"]\n  deny = \"true\"\n  reason = \"no\"\n}\n"
	got := configcheck.Check(config(t, policy), []*definition.Definitions{tools(t, "a.hcl", file)}, configcheck.External{})
	want := []string{
		`a.hcl:19:59: error: there is no resource named "review"; define it, or correct the name`,
		`a.hcl:20:24: error: there is no prompt named "handbook"; define it, or correct the name`,
		`a.hcl:20:36: warning: no prompt matches the pattern "x*" of hook "h"; it may match prompts that are added later; remove it if there will be none`,
		`mcpd.hcl:2:16: error: there is no resource named "handbok"; did you mean "handbook"?`,
		`mcpd.hcl:2:27: warning: no resource matches the pattern "x*" of policy "p"; it may match resources that are added later; remove it if there will be none`,
		`mcpd.hcl:3:14: error: there is no prompt named "reviw"; did you mean "review"?`,
	}
	if diff := cmp.Diff(want, said(got)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestProduction_policiesOfEachKind(t *testing.T) {
	const file = `
tool "t" {
  output "a" { type = string }
  run = "return 1;"
}
resource "r" {
  uri = "x:r"
  text = "x"
}
resource_folder "f" {
  root = "f"
  uri_prefix = "f:/"
}
resource_template "u" {
  uri_template = "y:{id}"
  text = "x"
}
prompt "p" {
  message "user" { text = "x" }
}
`
	of := func(lists string) []string {
		policy := "server { mode = \"production\" }\naudit { path = \"a.jsonl\" }\npolicy \"one\" {\n" + lists + "  allow = \"true\"\n  reason = \"no\"\n}\n"
		var names []string
		for _, p := range configcheck.Check(config(t, policy), []*definition.Definitions{tools(t, "a.hcl", file)}, configcheck.External{}) {
			names = append(names, p.Summary)
		}
		return names
	}
	lacks := func(names ...string) (summaries []string) {
		for _, name := range names {
			summaries = append(summaries, "no policy covers "+name+", which production mode requires")
		}
		return summaries
	}
	for lists, want := range map[string][]string{
		"": nil,
		"  tools = [\"*\"]\n  resources = [\"*\"]\n  prompts = [\"*\"]\n": nil,
		"  tools = [\"t\"]\n":            lacks(`resource "r"`, `resource "f"`, `resource "u"`, `prompt "p"`),
		"  resources = [\"r\", \"u\"]\n": lacks(`tool "t"`, `resource "f"`, `prompt "p"`),
		"  prompts = [\"p\"]\n":          lacks(`tool "t"`, `resource "r"`, `resource "f"`, `resource "u"`),
	} {
		if diff := cmp.Diff(want, of(lists)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", lists, diff)
		}
	}
}

// testsOfEachKind are tests of existing and missing items.
const testsOfEachKind = `
resource "r" {
  uri = "docs://handbook"
  text = "x"
}
resource_folder "f" {
  root = "f"
  uri_prefix = "f:/"
  glob = ["*.md"]
}
resource_template "u" {
  uri_template = "crm://{id}"
  text = "x"
}
prompt "review" {
  message "user" { text = "x" }
}
test "exact" {
  resource = "docs://handbook"
  expect { text = "x" }
}
test "a file" {
  resource = "f:/a.md"
  expect { text = "x" }
}
test "a match" {
  resource = "crm://C-1"
  expect { text = "x" }
}
test "a typo" {
  resource = "docs://handbok"
  expect { text = "x" }
}
test "no such file" {
  resource = "f:/a.txt"
  expect { text = "x" }
}
test "gone" {
  resource = "docs://gone"
  expect { error = "TOOL_NOT_FOUND" }
}
test "a prompt" {
  prompt = "review"
  expect { text = "x" }
}
test "another" {
  prompt = "revew"
  expect { text = "x" }
}
`

func TestCheck_testTargets(t *testing.T) {
	got := configcheck.Check(config(t, ""), []*definition.Definitions{tools(t, "a.hcl", testsOfEachKind)}, configcheck.External{})
	want := []string{
		`a.hcl:31:14: error: there is no resource with the URI "docs://handbok"; did you mean "docs://handbook"?`,
		`a.hcl:35:14: error: there is no resource with the URI "f:/a.txt"; define it, or correct the URI`,
		`a.hcl:47:12: error: there is no prompt named "revew"; did you mean "review"?`,
	}
	if diff := cmp.Diff(want, said(got)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// library is a registry of modules that accept only {}.
type library []string

func (l library) Names() []string { return l }

func (l library) Check(_ string, options json.RawMessage) error {
	if string(options) != "{}" {
		return errors.New("no " + string(options))
	}
	return nil
}

func TestCheck_modules(t *testing.T) {
	const file = `
tool "t" {
  allow {
    module "ledger" {}
    module "ledgr" {}
    module "clock" { zones = ["UTC", { a = 1.50 }] }
    module "zebra" {}
  }
  run = "return modules;"
}
hook "h" {
  on = ["end"]
  allow {
    module "phone" {}
  }
  run = "return modules;"
}
`
	definitions := []*definition.Definitions{tools(t, "a.hcl", file)}
	got := said(configcheck.Check(config(t, ``), definitions, configcheck.External{Modules: library{"clock", "ledger"}}))
	want := []string{
		`a.hcl:5:5: error: there is no module "ledgr"; did you mean "ledger"?`,
		`a.hcl:6:5: error: tool "t" grants the module "clock" with invalid arguments: no {"zones":["UTC",{"a":1.5}]}; write the arguments in the documentation of the module`,
		`a.hcl:7:5: error: there is no module "zebra"; there is clock, ledger`,
		`a.hcl:14:5: error: there is no module "phone"; there is clock, ledger`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	got = said(configcheck.Check(config(t, ``), definitions, configcheck.External{Modules: library(nil)}))
	if len(got) != 5 || got[0] != `a.hcl:4:5: error: there is no module "ledger"; only Go programs that embed mcpd have modules; use http, fs, env, secrets, kv, exec, sql, call or ask` {
		t.Errorf("got %q", got)
	}
}

func TestCeiling_modules(t *testing.T) {
	const file = `
tool "t" {
  allow {
    module "ledger" {}
    module "ledger_admin" {}
  }
  run = "return modules;"
}
`
	got := said(configcheck.Check(config(t, `ceiling { modules = ["ledger"] }`), []*definition.Definitions{tools(t, "a.hcl", file)}, configcheck.External{}))
	want := []string{`a.hcl:5:5: error: tool "t" grants the module "ledger_admin", which the ceiling does not allow; remove it, or ask the operator to add it to ceiling.modules`, "  note mcpd.hcl:1:1: the ceiling"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
