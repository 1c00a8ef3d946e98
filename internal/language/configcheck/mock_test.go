package configcheck_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/internal/language/configcheck"
	"github.com/mcpd/mcpd/internal/language/definition"
)

func TestCheckMocks_grants(t *testing.T) {
	const file = `
tool "crm" {
  allow {
    http "crm" { hosts = ["crm.example.com:443"] }
    ask { elicit = true }
  }
  run = "return http.crm && elicit;"
}
tool "plain" { run = "return 1;" }
resource_template "customer" {
  uri_template = "crm://{id}"
  allow {
    http "crm" { hosts = ["crm.example.com:443"] }
  }
  run = "return http.crm;"
}
resource "page" {
  uri  = "docs://page"
  text = "x"
}
prompt "plan" { run = "return 'x';" }
test "granted" {
  tool = "crm"
  mock "http.crm" "GET /" { text = "x" }
  mock "elicit" "elicit" { json = {} }
  expect { text = "x" }
}
test "a resource of a template" {
  resource = "crm://C-1"
  mock "http.crm" "GET /" { text = "x" }
  expect { text = "x" }
}
test "of Go" {
  tool = "go"
  mock "http.crm" "GET /" { text = "x" }
  expect { text = "x" }
}
test "gone" {
  tool = "gone"
  mock "http.crm" "GET /" { text = "x" }
  expect { error = "TOOL_NOT_FOUND" }
}
test "wrong" {
  tool = "crm"
  mock "http.cmr" "GET /" { text = "x" }
  mock "sample" "sample" { text = "x" }
  expect { text = "x" }
}
test "nothing" {
  tool = "plain"
  mock "http.crm" "GET /" { text = "x" }
  expect { text = "x" }
}
test "no body" {
  resource = "docs://page"
  mock "roots" "roots" { json = [] }
  expect { text = "x" }
}
test "a prompt" {
  prompt = "plan"
  mock "http.crm" "GET /" { text = "x" }
  expect { text = "x" }
}
`
	got := configcheck.Check(config(t, ""), []*definition.Definitions{tools(t, "a.hcl", file)}, configcheck.External{Names: []configcheck.ExternalName{{Kind: "tool", Name: "go", Range: at("(go)", 0)}}})
	want := []string{
		`a.hcl:45:3: error: tool "crm" is not granted http.cmr, so this mock is never used; did you mean "http.crm"?`,
		`a.hcl:46:3: error: tool "crm" is not granted sample, so this mock is never used; it is granted http.crm, elicit; add ask { sample = true } to its allow block, or remove the mock`,
		`a.hcl:51:3: error: tool "plain" is not granted http.crm, so this mock is never used; add an allow block with http "crm" { hosts = [...] } to it, or remove the mock`,
		`a.hcl:56:3: error: the resource is not granted roots, so this mock is never used; add an allow block with ask { roots = true } to it, or remove the mock`,
		`a.hcl:61:3: error: prompt "plan" is not granted http.crm, so this mock is never used; add an allow block with http "crm" { hosts = [...] } to it, or remove the mock`,
	}
	if diff := cmp.Diff(want, said(got)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// The approval mock needs no grant.
func TestCheckMocks_approval(t *testing.T) {
	file := `
tool "wipe" {
  run = "return 1"
}
tool "look" {
  run = "return 1"
}
policy "ask" {
  tools             = ["wipe"]
  requires_approval = "true"
  reason            = "All is lost"
}
test "asked" {
  tool = "wipe"
  mock "elicit" "approval" { json = { action = "accept" } }
  mock "elicit" "other" { json = { action = "accept" } }
  expect { text = "1" }
}
test "not asked" {
  tool = "look"
  mock "elicit" "approval" { json = { action = "accept" } }
  expect { text = "1" }
}
`
	got := configcheck.Check(config(t, ""), []*definition.Definitions{tools(t, "a.hcl", file)}, configcheck.External{})
	want := []string{
		`a.hcl:16:3: error: tool "wipe" is not granted elicit, so this mock is never used; add an allow block with ask { elicit = true } to it, or remove the mock`,
		`a.hcl:21:3: error: tool "look" is not granted elicit, so this mock is never used; add an allow block with ask { elicit = true } to it, or remove the mock`,
	}
	if diff := cmp.Diff(want, said(got)); diff != "" {
		t.Error(diff)
	}
}

func TestCheckCompletion(t *testing.T) {
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
	got := configcheck.Check(config(t, ""), []*definition.Definitions{tools(t, "a.hcl", file)}, configcheck.External{})
	want := []string{
		`a.hcl:21:14: error: there is no prompt named "plann"; did you mean "plan"?`,
		`a.hcl:27:14: error: the prompt "plan" has no argument "dy"; there is day`,
		`a.hcl:31:14: error: there is no template "crm://C-1"; write the uri_template of a resource_template exactly`,
		`a.hcl:37:14: error: the template "crm://{id}{?view}" has no argument "customer"; there is id, view`,
		`a.hcl:38:3: error: the template is not granted http.crm, so this mock is never used; add an allow block with http "crm" { hosts = [...] } to it, or remove the mock`,
	}
	if diff := cmp.Diff(want, said(got)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
