package configcheck_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/internal/language/configcheck"
	"github.com/mcpd/mcpd/internal/language/hclfile"
)

func TestWhatATestCompletesExists(t *testing.T) {
	const file = `
prompt "plan" {
  argument "day" {}
  message "user" { text = "{{day}}" }
}
resource_template "customer" {
  uri_template = "crm://{id}{?view}"
  text = "x"
}
test "a prompt" {
  prompt   = "plan"
  complete = "day"
  expect { values = [] }
}
test "a template" {
  resource = "crm://{id}{?view}"
  complete = "view"
  expect { values = [] }
}
test "no such prompt" {
  prompt   = "plann"
  complete = "day"
  expect { values = [] }
}
test "no such argument" {
  prompt   = "plan"
  complete = "dy"
  expect { values = [] }
}
test "no template" {
  resource = "crm://C-1"
  complete = "id"
  expect { values = [] }
}
test "no such variable" {
  resource = "crm://{id}{?view}"
  complete = "customer"
  mock "http.crm" "GET /" { text = "x" }
  expect { values = [] }
}
`
	got := configcheck.Check(config(t, ""), []*hclfile.Definitions{tools(t, "a.hcl", file)}, configcheck.Elsewhere{})
	want := []string{
		`a.hcl:21:14: error: there is no prompt named "plann"; did you mean "plan"?`,
		`a.hcl:27:14: error: the prompt "plan" has no argument "dy"; there is day`,
		`a.hcl:31:14: error: there is no template "crm://C-1"; write the uri_template of a resource_template, as it stands there`,
		`a.hcl:37:14: error: the template "crm://{id}{?view}" has no argument "customer"; there is id, view`,
		`a.hcl:38:3: error: the template is not granted http.crm, so nothing asks this mock; add an allow block with http "crm" { hosts = [...] } to it, or remove the mock`,
	}
	if diff := cmp.Diff(want, said(got)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
