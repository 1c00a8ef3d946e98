package configcheck_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/internal/language/configcheck"
	"github.com/mcpd/mcpd/internal/language/hclfile"
)

// library has modules that take {} and nothing else.
type library []string

func (l library) Names() []string { return l }

func (l library) Check(_ string, options json.RawMessage) error {
	if string(options) != "{}" {
		return errors.New("no " + string(options))
	}
	return nil
}

func TestModulesThatAreGrantedExistAndTakeTheirArguments(t *testing.T) {
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
	definitions := []*hclfile.Definitions{tools(t, "a.hcl", file)}
	got := said(configcheck.CheckModules(config(t, ``), definitions, library{"clock", "ledger"}))
	want := []string{
		`a.hcl:5:5: error: there is no module "ledgr"; did you mean "ledger"?`,
		`a.hcl:6:5: error: tool "t" grants the module "clock" with arguments that it does not take: no {"zones":["UTC",{"a":1.5}]}; write what the module takes; its program tells`,
		`a.hcl:7:5: error: there is no module "zebra"; there is clock, ledger`,
		`a.hcl:14:5: error: there is no module "phone"; there is clock, ledger`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	got = said(configcheck.CheckModules(config(t, ``), definitions, library(nil)))
	if len(got) != 5 || got[0] != `a.hcl:4:5: error: there is no module "ledger"; modules are objects of Go programs that embed mcpd, and this program has none; mcpd itself has http, fs, env, secrets, kv, exec, sql, call and ask` {
		t.Errorf("got %q", got)
	}
}

func TestACeilingBoundsModules(t *testing.T) {
	const file = `
tool "t" {
  allow {
    module "ledger" {}
    module "ledger_admin" {}
  }
  run = "return modules;"
}
`
	got := said(configcheck.Check(config(t, `ceiling { modules = ["ledger"] }`), []*hclfile.Definitions{tools(t, "a.hcl", file)}, configcheck.Elsewhere{}))
	want := []string{`a.hcl:5:5: error: tool "t" grants the module "ledger_admin", which the operator's ceiling does not allow; remove it, or ask the operator to add it to ceiling.modules`, "  note mcpd.hcl:1:1: the ceiling"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
