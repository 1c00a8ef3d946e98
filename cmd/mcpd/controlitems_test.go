package main

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/internal/ops/control"
)

const controlTools = `tool "add" {
  title       = "Add"
  description = <<-EOT
    Adds two numbers.

    The sum is exact.
  EOT
  read_only   = true
  timeout     = "20s"
  input "a" { type = number }
  input "b" { type = number }
  allow {
    http "crm" {
      hosts = ["crm.example.com:443"]
      header "Authorization" { value = "Bearer hunter2" }
    }
  }
  run = "log.info('adding'); progress(1, 2, 'half'); return input.a + input.b;"
}
tool "twice" {
  timeout = "20s"
  input "n" { type = number }
  allow {
    call { tools = ["add"] }
  }
  run = "return await tools.add({a: input.n, b: input.n});"
}
tool "ask" {
  timeout = "20s"
  allow {
    ask { elicit = true }
  }
  run = "const r = await elicit({message: 'Name?', schema: {type: 'object', properties: {name: {type: 'string'}}}}); return r.action === 'accept' ? 'hello ' + r.content.name : r.action;"
}
tool "hang" {
  task    = "optional"
  timeout = "1m"
  run     = "await new Promise(r => setTimeout(r, 50000)); return 1;"
}
tool "pay" {
  timeout = "20s"
  run     = "return 'paid';"
}
resource_template "page" {
  uri_template = "page://{n}"
  timeout      = "20s"
  param "n" { description = "Number" }
  run = "return 'page ' + params.n;"
}
prompt "greet" {
  timeout = "20s"
  argument "name" {
    description = "Name"
    required    = true
  }
  run = "return 'Greet ' + input.name;"
}
policy "leads_pay" {
  tools  = ["pay"]
  deny   = "!('leads' in principal.groups)"
  reason = "only leads pay"
}
policy "small" {
  tools  = ["add"]
  deny   = "args.a > 1000"
  reason = "too large"
}
limit "rate" {
  tools = ["add"]
  rate  = "1000/m"
  burst = 50
}
`

// controlledServer is a running server with controlTools, and the path of its control socket.
type controlledServer struct {
	*daemon
	dir, socket string
}

// startControlled starts the server, after prepare has written more files.
func startControlled(t *testing.T, config string, prepare ...func(dir string)) *controlledServer {
	t.Helper()
	a := &controlledServer{dir: t.TempDir()}
	a.socket = filepath.Join(a.dir, "s")
	if err := os.Mkdir(filepath.Join(a.dir, "tools.d"), 0o755); err != nil {
		t.Fatal(err)
	}
	save(t, filepath.Join(a.dir, "tools.d", "tools.hcl"), controlTools)
	if config != "" {
		save(t, filepath.Join(a.dir, "mcpd.hcl"), config)
	}
	for _, write := range prepare {
		write(a.dir)
	}
	var err error
	env := append(os.Environ(), "XDG_STATE_HOME="+t.TempDir())
	if a.daemon, err = startDaemon(buildDaemon(t), a.dir, env, []string{"--control", a.socket}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.kill)
	return a
}

// ask sends a request and decodes the result.
func (a *controlledServer) ask(t *testing.T, do control.Action, params, row any) error {
	t.Helper()
	r, err := control.NewRequest(do, params)
	if err != nil {
		t.Fatal(err)
	}
	return control.Do(t.Context(), a.socket, r, row)
}

// must is ask without an error.
func (a *controlledServer) must(t *testing.T, do control.Action, params, row any) {
	t.Helper()
	if err := a.ask(t, do, params, row); err != nil {
		t.Fatal(err)
	}
}

func TestControl_catalog(t *testing.T) {
	t.Parallel()
	a := startControlled(t, "")
	var got control.CatalogResult
	a.must(t, control.Catalog, nil, &got)
	var lines []string
	for _, i := range got.Items {
		lines = append(lines, strings.Join([]string{i.Kind, i.Address, i.Title, i.Summary, i.Origin, i.Place.File}, "|"))
	}
	want := []string{
		"tool|add|Add|Adds two numbers.|file|tools.d/tools.hcl", "tool|ask|||file|tools.d/tools.hcl", "tool|hang|||file|tools.d/tools.hcl",
		"tool|pay|||file|tools.d/tools.hcl", "tool|twice|||file|tools.d/tools.hcl",
		"template|page://{n}|||file|tools.d/tools.hcl", "prompt|greet|||file|tools.d/tools.hcl",
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if p := got.Items[0].Place; p.Line != 1 || p.Column != 6 || got.Revision == "" {
		t.Errorf("got %+v of revision %q", p, got.Revision)
	}
}

func TestControl_item(t *testing.T) {
	t.Parallel()
	a := startControlled(t, "")
	var got control.ItemResult
	a.must(t, control.Item, control.ItemName{Kind: "tool", Address: "add"}, &got)
	if !strings.HasPrefix(got.Source, `tool "add" {`) || !strings.HasSuffix(got.Source, "}") || strings.Contains(got.Source, "hunter2") || strings.Contains(got.Source, "twice") {
		t.Errorf("source:\n%s", got.Source)
	}
	if !strings.Contains(string(got.Input), `"a"`) || got.Output != nil || string(got.Annotations) != `{"idempotentHint":true,"readOnlyHint":true}` || !strings.Contains(got.Description, "The sum is exact.") {
		t.Errorf("got %s, %s, %s, %q", got.Input, got.Output, got.Annotations, got.Description)
	}
	if diff := cmp.Diff([]control.Policy{{Name: "small", Place: &control.Place{File: "tools.d/tools.hcl", Line: 63, Column: 8}}}, got.Policies); diff != "" {
		t.Errorf("policies (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"timeout 20s", `limit "rate": 1000 calls a minute, 50 at once after a pause`}, got.Limits); diff != "" {
		t.Errorf("limits (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{`http.crm (hosts "crm.example.com:443", methods "GET" "HEAD", paths "*")`, `http.crm header "authorization"`}, got.Grants); diff != "" {
		t.Errorf("grants (-want +got)\n%s", diff)
	}
	var page, greet control.ItemResult
	a.must(t, control.Item, control.ItemName{Kind: "template", Address: "page://{n}"}, &page)
	a.must(t, control.Item, control.ItemName{Kind: "prompt", Address: "greet"}, &greet)
	if diff := cmp.Diff([]control.Argument{{Name: "n", Description: "Number", Required: true}, {Name: "name", Description: "Name", Required: true}}, append(page.Arguments, greet.Arguments...)); diff != "" {
		t.Errorf("arguments (-want +got)\n%s", diff)
	}
	if !strings.HasPrefix(page.Source, `resource_template "page" {`) || !strings.HasPrefix(greet.Source, `prompt "greet" {`) {
		t.Errorf("sources:\n%s\n%s", page.Source, greet.Source)
	}
	// The source is that of the serving revision, whatever the file has become.
	save(t, filepath.Join(a.dir, "tools.d", "tools.hcl"), "\n\n\ntool \"add\" {")
	if code, _, _ := inProcess(t, a.dir, os.Environ(), "reload", "--control", a.socket); code != exitFindings {
		t.Fatalf("the broken file loaded: exit code %d", code)
	}
	var again control.ItemResult
	a.must(t, control.Item, control.ItemName{Kind: "tool", Address: "add"}, &again)
	if diff := cmp.Diff(got, again); diff != "" {
		t.Errorf("after a broken file (-want +got)\n%s", diff)
	}
}

func TestControl_itemErrors(t *testing.T) {
	t.Parallel()
	a := startControlled(t, "")
	for _, row := range []struct {
		params any
		want   string
	}{
		{control.ItemName{Kind: "tool", Address: "nope"}, `the server has no tool "nope"`},
		{control.ItemName{Kind: "hook", Address: "add"}, `the kind of an item is tool, resource, template or prompt, not "hook"`},
		{control.ItemName{Kind: "tool", Address: strings.Repeat("x", 1<<19)}, `the server has no tool "xxx`},
		{nil, `the kind of an item is tool, resource, template or prompt, not ""`},
		{map[string]any{"kind": "tool", "name": "add"}, `params of item: unknown field "name"`},
	} {
		err := a.ask(t, control.Item, row.params, &control.ItemResult{})
		if err == nil || !strings.Contains(err.Error(), row.want) || len(err.Error()) > 1000 {
			t.Errorf("got error %.1000v, want %s", err, row.want)
		}
	}
}

// No parameters end the server, or keep it from the next answer.
func TestControl_hostileParams(t *testing.T) {
	t.Parallel()
	a := startControlled(t, keysConfig, newKeys(t, new([]string), []string{"ci"}))
	long, deep := strings.Repeat("x", 900_000), strings.Repeat(`{"a":`, 30)+"1"+strings.Repeat("}", 30)
	many := "[" + strings.Repeat(`"",`, 45_000) + `""]`
	for _, do := range []control.Action{
		control.Catalog, control.Item, control.Explain, control.Matrix, control.Try, control.Calls, control.Audit,
		control.Pins, control.Accept, control.Keys, control.RevokeKey, control.Tasks, control.CancelTask,
	} {
		for _, params := range []string{
			`[]`, `"x"`, `7`, `true`, `{"kind":7}`, `{"kind":{}}`, `{"limit":"x"}`, `{"limit":1e99}`, `{"before":-1}`, `{"principals":{}}`, `{"principals":[null]}`,
			`{"principal":[]}`, `{"principal":{"id":"a","kind":"key","claims":` + deep + `}}`, `{"kind":"tool","address":"` + long + `"}`,
			`{"kind":"resource","address":"\u0000\u202e` + long + `"}`, `{"kind":"tool","address":"add","arguments":` + deep + `}`,
			`{"kind":"tool","address":"add","arguments":{"a":` + many + `}}`, `{"principals":` + many + `}`, `{"kind":"tool","address":"\ud800"}`,
			`{"upstream":"` + long + `","tool":"` + long[:50_000] + `"}`, `{"auth":"keys","id":"` + long + `"}`, `{"principal":"ada","auth_kind":"x","id":"` + long + `"}`,
		} {
			err := control.Do(t.Context(), a.socket, control.Request{Action: do, Params: json.RawMessage(params)}, new(any))
			if err != nil && len(err.Error()) > 1500 {
				t.Errorf("%s %.60s: an error of %d bytes", do, params, len(err.Error()))
			}
			if err == nil && do != control.Try && do != control.Explain && do != control.Matrix {
				t.Errorf("%s %.60s: no error", do, params)
			}
		}
	}
	a.must(t, control.Catalog, nil, &control.CatalogResult{})
}

func TestAnswer_panic(t *testing.T) {
	var log bytes.Buffer
	o := &runningServer{logger: slog.New(slog.NewJSONHandler(&log, nil))} // without a server
	got, err := o.answer(t.Context(), control.Request{Action: control.Catalog})
	if got != nil || err == nil || !strings.Contains(err.Error(), "a bug in mcpd") || !strings.Contains(log.String(), `"action":"catalog"`) || !strings.Contains(log.String(), "catalogResultOf") {
		t.Errorf("got %v, %v, and the log\n%s", got, err, &log)
	}
}
