package configcheck_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/internal/language/configcheck"
	"github.com/mcpd/mcpd/internal/language/hclfile"
)

func TestToolsThatMayBeCalledExist(t *testing.T) {
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
	got := said(configcheck.Check(config(t, ``), []*hclfile.Definitions{tools(t, "a.hcl", file)}, configcheck.Elsewhere{Offered: []configcheck.Offered{{Kind: "tool", Name: "in_go", Range: at("(go) in_go", 0)}}}))
	want := []string{
		`a.hcl:5:32: error: there is no tool named "crm_gte"; did you mean "crm_get"?`,
		`a.hcl:5:52: warning: no tool matches the pattern "erp_*" of tool "report"; the pattern covers tools that are added later; remove it if none will be`,
		`a.hcl:11:21: error: there is no tool named "nowhere"; define it, or correct the name`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestAMockOfAToolIsOfOneThatMayBeCalled(t *testing.T) {
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
	got := said(configcheck.Check(config(t, ``), []*hclfile.Definitions{tools(t, "a.hcl", file)}, configcheck.Elsewhere{}))
	want := []string{
		`a.hcl:12:3: error: tool "report" may not call tool "crm_gte", so nothing asks this mock; did you mean "crm_get"?`,
		`a.hcl:17:3: error: tool "crm_get" is not granted tools, so nothing asks this mock; add an allow block with call { tools = [...] } to it, or remove the mock`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
