package engine_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
)

// operatorRules are rules of the operator for each kind of item. All calls in [restrictedCalls] are denied,
// counted or passed to a hook.
const operatorRules = `
policy "closed" {
  tools     = ["pay"]
  resources = ["ledger", "row", "papers"]
  prompts   = ["draft"]
  deny      = "principal.id != 'root'"
  reason    = "the operator says no"
}
policy "small" {
  tools  = ["refund"]
  deny   = "args.amount > 50.0"
  reason = "the operator says less"
}
policy "approved" {
  tools             = ["wipe"]
  requires_approval = "tool.name == 'wipe'"
  reason            = "the operator asks"
}
policy "kept" {
  on     = "result"
  tools  = ["tell"]
  deny   = "result.secret"
  reason = "the operator keeps it"
}
policy "signed" {
  resources         = ["vault", "cell"]
  prompts           = ["letter"]
  requires_approval = "tool.kind != ''"
  reason            = "the operator asks"
}
policy "sealed" {
  on        = "result"
  resources = ["diary", "page"]
  prompts   = ["poem"]
  deny      = "size(result) > 0"
  reason    = "the operator keeps it"
}
limit "few" {
  tools = ["echo"]
  rate  = "1/h"
}
limit "scarce" {
  key       = "tool.name"
  resources = ["news", "story"]
  prompts   = ["joke"]
  rate      = "1/h"
}
hook "told" {
  on  = ["start"]
  run = "log.info('told of ' + event.kind + ' ' + event.tool)"
}
`

// authorFiles are tool files under these rules.
var authorFiles = map[string]string{
	"tools.hcl": `
tool "pay" { run = "return 'done'" }
tool "refund" {
  input "amount" { type = number }
  run = "return 'done'"
}
tool "wipe" { run = "return 'done'" }
tool "tell" {
  output "secret" { type = bool }
  run = "return { secret: true }"
}
tool "echo" { run = "return 'done'" }
tool "calls" {
  allow {
    call { tools = ["*"] }
  }
  run = "return await tools.pay()"
}
`,
	"others.hcl": `
resource "ledger" {
  uri  = "x://ledger"
  text = "done"
}
resource_template "row" {
  uri_template = "x://rows/{id}"
  param "id" { pattern = "^[0-9]+$" }
  complete "id" { values = ["done"] }
  text = "done"
}
resource_folder "papers" {
  root       = "papers"
  uri_prefix = "x://papers/"
}
prompt "draft" {
  argument "day" {
    complete { values = ["done"] }
  }
  argument "hour" {}
  message "user" { text = "done" }
}
` + itemsNamed("vault", "cell", "letter") + itemsNamed("diary", "page", "poem") + itemsNamed("news", "story", "joke"),
	"papers/a.txt": "done",
}

// itemsNamed returns a resource, a template and a prompt with these names.
func itemsNamed(resource, template, prompt string) string {
	return fmt.Sprintf(`
resource %[1]q {
  uri  = "x://%[1]s"
  text = "done"
}
resource_template %[2]q {
  uri_template = "x://%[2]s/{id}"
  param "id" { pattern = "^[0-9]+$" }
  complete "id" { values = ["done"] }
  text = "done"
}
prompt %[3]q {
  argument "day" {
    complete { values = ["done"] }
  }
  message "user" { text = "done" }
}
`, resource, template, prompt)
}

// readCalls returns calls of all items of [itemsNamed].
func readCalls(resource, template, prompt string) []call.Request {
	return []call.Request{
		{Kind: call.Resources, Name: "x://" + resource},
		{Kind: call.Resources, Name: "x://" + template + "/7"},
		{Kind: call.Templates, Name: "x://" + template + "/{id}", Argument: "id", Arguments: json.RawMessage(`{"value":"d"}`)},
		{Kind: call.Prompts, Name: prompt, Arguments: json.RawMessage(`{"day":"x"}`)},
		{Kind: call.Prompts, Name: prompt, Argument: "day", Arguments: json.RawMessage(`{"value":"d"}`)},
	}
}

type restrictedCall struct {
	request call.Request
	told    string
}

// restrictedCalls are calls that the operator's rules affect, with the messages for their callers. The
// last one is the second call of its limit.
var restrictedCalls = []restrictedCall{
	{call.Request{Name: "pay"}, "POLICY_DENIED: the operator says no"},
	{call.Request{Name: "calls"}, "EXECUTION_ERROR: the operator says no"},
	{call.Request{Name: "refund", Arguments: json.RawMessage(`{"amount":99}`)}, "POLICY_DENIED: the operator says less"},
	{call.Request{Name: "wipe"}, "POLICY_DENIED: the call needs the approval of a user, and the client does not support it: the operator asks"},
	{call.Request{Name: "tell"}, "POLICY_DENIED: the operator keeps it"},
	{call.Request{Kind: call.Resources, Name: "x://ledger"}, "POLICY_DENIED: the operator says no"},
	{call.Request{Kind: call.Resources, Name: "x://rows/7"}, "POLICY_DENIED: the operator says no"},
	{call.Request{Kind: call.Resources, Name: "x://papers/a.txt"}, "POLICY_DENIED: the operator says no"},
	{call.Request{Kind: call.Prompts, Name: "draft", Arguments: json.RawMessage(`{"day":"x","hour":"x"}`)}, "POLICY_DENIED: the operator says no"},
	{call.Request{Kind: call.Prompts, Name: "draft", Argument: "day", Arguments: json.RawMessage(`{"value":"d"}`)}, "POLICY_DENIED: the operator says no"},
	{call.Request{Kind: call.Prompts, Name: "draft", Argument: "hour", Arguments: json.RawMessage(`{"value":"d"}`)}, "POLICY_DENIED: the operator says no"},
	{call.Request{Kind: call.Prompts, Name: "draft", Argument: "nothing", Arguments: json.RawMessage(`{"value":"d"}`)}, "POLICY_DENIED: the operator says no"},
	{call.Request{Kind: call.Templates, Name: "x://rows/{id}", Argument: "id", Arguments: json.RawMessage(`{"value":"d"}`)}, "POLICY_DENIED: the operator says no"},
	{call.Request{Name: "echo"}, "ok"},
	{call.Request{Name: "echo"}, "POLICY_DENIED: over the limit"},
}

// allRestrictedCalls returns heldCalls and calls of other kinds: some need an approval, some have stored
// results, and some are the first and second of their limits.
func allRestrictedCalls() []restrictedCall {
	all := slices.Clone(restrictedCalls)
	add := func(told string, requests ...call.Request) {
		for _, r := range requests {
			all = append(all, restrictedCall{r, told})
		}
	}
	add("POLICY_DENIED: the call needs the approval of a user, and the client does not support it: the operator asks", readCalls("vault", "cell", "letter")...)
	add("POLICY_DENIED: the operator keeps it", readCalls("diary", "page", "poem")...)
	scarce := readCalls("news", "story", "joke")
	add("ok", scarce[0], scarce[1], scarce[3]) // completions count with their items
	add("POLICY_DENIED: over the limit", scarce...)
	return all
}

// maskedMessage is the message for a failure if there are result policies.
const maskedMessage = "EXECUTION_ERROR: the tool failed; its message is hidden"

// bypasses are edits of tool files that might bypass the operator: the files ("" removes one), the
// error, if any, and the changed messages for callers, who get no result either.
var bypasses = map[string]struct {
	files   map[string]string
	mistake string
	told    map[string]string
}{
	"none": {},
	"a policy of the same name": {files: map[string]string{"a.hcl": `policy "closed" {
  allow  = "true"
  reason = "open"
}`}, mistake: `policy "closed" is defined twice`},
	"a policy of the same name in JSON":      {files: map[string]string{"a.hcl.json": `{"policy": {"closed": {"allow": "true", "reason": "open"}}}`}, mistake: `policy "closed" is defined twice`},
	"a policy over results of the same name": {files: map[string]string{"a.hcl": "policy \"kept\" {\n  on = \"result\"\n  deny = \"false\"\n  reason = \"open\"\n}"}, mistake: `policy "kept" is defined twice`},
	"a limit of the same name":               {files: map[string]string{"a.hcl": `limit "few" { rate = "1000/s" }`}, mistake: `limit "few" is defined twice`},
	"a hook of the same name":                {files: map[string]string{"a.hcl": "hook \"told\" {\n  on = [\"start\"]\n  run = \"1\"\n}"}, mistake: `hook "told" is defined twice`},
	"a policy that allows all":               {files: map[string]string{"0.hcl": "policy \"a\" {\n  allow = \"true\"\n  reason = \"open\"\n}"}},
	"a policy over results that denies none": {files: map[string]string{"0.hcl": "policy \"a\" {\n  on = \"result\"\n  deny = \"false\"\n  reason = \"open\"\n}"}, told: map[string]string{"calls": maskedMessage}},
	"a generous limit":                       {files: map[string]string{"0.hcl": "limit \"a\" {\n  rate = \"1000/s\"\n  burst = 1000\n}"}},
	"generous bounds of a tool":              {files: map[string]string{"tools.hcl": strings.Replace(authorFiles["tools.hcl"], `tool "echo" { run = "return 'done'" }`, "tool \"echo\" {\n  limits { concurrency = 1000 }\n  run = \"return 'done'\"\n}", 1)}},
	"a cache":                                {files: map[string]string{"tools.hcl": strings.Replace(authorFiles["tools.hcl"], `tool "echo" { run = "return 'done'" }`, "tool \"echo\" {\n  read_only = true\n  cache {\n    ttl = \"1h\"\n    scope = \"server\"\n  }\n  run = \"return 'done'\"\n}", 1)}},
	"a hook that throws":                     {files: map[string]string{"0.hcl": "hook \"a\" {\n  on = [\"start\"]\n  run = \"event.kind = 'x'; throw new Error('no')\"\n}"}},
	"default_decision":                       {files: map[string]string{"a.hcl": "server {\n  default_decision = \"allow\"\n}"}, mistake: "server"},
	"a ceiling":                              {files: map[string]string{"a.hcl": "ceiling {\n  env = [\"*\"]\n}"}, mistake: "ceiling"},
	"a variable":                             {files: map[string]string{"a.hcl": "variable \"x\" {\n  type = string\n}"}, mistake: "variable"},
	"an operator's file among the tools":     {files: map[string]string{"mcpd.hcl": "policy \"closed\" {\n  allow = \"true\"\n  reason = \"open\"\n}"}, mistake: `policy "closed" is defined twice`},
	"locals of the names of globals":         {files: map[string]string{"a.hcl": "locals {\n  principal = { id = \"root\" }\n}"}},
	"the tool is gone":                       {files: map[string]string{"tools.hcl": ""}, mistake: `there is no tool named "pay"`},
	"the others are gone":                    {files: map[string]string{"others.hcl": ""}, mistake: `there is no prompt named "draft"`},
	"a tool of another name":                 {files: map[string]string{"tools.hcl": strings.ReplaceAll(authorFiles["tools.hcl"], `tool "pay"`, `tool "pays"`)}, mistake: `there is no tool named "pay"`},
	"a second tool of the name":              {files: map[string]string{"a.hcl": `tool "pay" { run = "return 'done'" }`}, mistake: `tool "pay" is defined twice`},
	"a second prompt of the name":            {files: map[string]string{"a.hcl": "prompt \"draft\" {\n  message \"user\" { text = \"done\" }\n}"}, mistake: `prompt "draft" is defined twice`},
	"a second resource of the address":       {files: map[string]string{"a.hcl": "resource \"other\" {\n  uri = \"x://ledger\"\n  text = \"done\"\n}"}, mistake: "x://ledger"},
	"a resource in the place of one of a template": {files: map[string]string{"a.hcl": "resource \"other\" {\n  uri = \"x://rows/7\"\n  text = \"mine\"\n}"},
		mistake: `resource "other" is read instead of resource "row", which the operator's policy "closed" covers`},
	"a template before the one that is meant": {files: map[string]string{"0.hcl": "resource_template \"other\" {\n  uri_template = \"x://rows/{x}\"\n  text = \"mine\"\n}"},
		mistake: `resource "other" is read instead of resource "row", which the operator's policy "closed" covers`},
	"a template of everything": {files: map[string]string{"0.hcl": "resource_template \"other\" {\n  uri_template = \"x://{+x}\"\n  text = \"mine\"\n}"},
		mistake: `resource "other" is read instead of resource "row", which the operator's policy "closed" covers`},
	"a template before one that is limited": {files: map[string]string{"0.hcl": "resource_template \"other\" {\n  uri_template = \"x://story/{x}\"\n  text = \"mine\"\n}"},
		mistake: `which the operator's limit "scarce" covers`},
	"a resource in the place of a file": {files: map[string]string{"a.hcl": "resource \"other\" {\n  uri = \"x://papers/a.txt\"\n  text = \"mine\"\n}"},
		mistake: `resource "other" is read instead of resource "papers", which the operator's policy "closed" covers`},
	"a folder in the place of another": {files: map[string]string{"0.hcl": "resource_folder \"other\" {\n  root = \"papers\"\n  uri_prefix = \"x://pap\"\n}", "papers/ers/a.txt": "mine"},
		mistake: `is read instead of resource "papers"`},
	"a template behind the one that is meant": {files: map[string]string{"z.hcl": "resource_template \"other\" {\n  uri_template = \"x://rows/{x}\"\n  text = \"mine\"\n}"}},
	"an argument of another name":             {files: map[string]string{"tools.hcl": strings.ReplaceAll(authorFiles["tools.hcl"], `"amount"`, `"money"`)}, mistake: `has no argument "amount"`},
	"an argument of another type":             {files: map[string]string{"tools.hcl": strings.ReplaceAll(authorFiles["tools.hcl"], `type = number`, `type = string`)}, mistake: "cannot compare"},
	"an argument that the tool makes":         {files: map[string]string{"tools.hcl": strings.Replace(authorFiles["tools.hcl"], `{ type = number }`, "{\n    type = number\n    from = \"1.0\"\n  }", 1)}, told: map[string]string{"refund": "INVALID_INPUT: "}},
	"an output of another name":               {files: map[string]string{"tools.hcl": strings.ReplaceAll(authorFiles["tools.hcl"], `output "secret"`, `output "hidden"`)}, mistake: "secret"},
	"no output":                               {files: map[string]string{"tools.hcl": strings.Replace(authorFiles["tools.hcl"], `output "secret" { type = bool }`, "", 1)}},
	"content beside the output":               {files: map[string]string{"tools.hcl": strings.Replace(authorFiles["tools.hcl"], "return { secret: true }", "return content.structured({ secret: false }, [content.text('done')])", 1)}, told: map[string]string{"tell": "POLICY_DENIED: denied by policy"}},
	"what is told by an error":                {files: map[string]string{"tools.hcl": strings.Replace(authorFiles["tools.hcl"], "return { secret: true }", "throw new ToolError('done', { details: { secret: true } })", 1)}, told: map[string]string{"tell": maskedMessage}},
	"a broken file":                           {files: map[string]string{"a.hcl": "policy \"a\" {"}, mistake: "a.hcl"},
	"a broken file that names what is wanted": {files: map[string]string{"tools.hcl": "tool \"pay\" {\n", "others.hcl": "# \"ledger\" \"row\" \"papers\" \"draft\""}, mistake: "tools.hcl"},
	"an empty file":                           {files: map[string]string{"tools.hcl": " "}, mistake: `there is no tool named "pay"`},
}

// Each edit is tried by a reload of valid files, and as the first load.
func TestOperator_cannotBypass(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED with -short: one goroutine works here alone")
	}
	for name, way := range bypasses {
		t.Run(name, func(t *testing.T) {
			for _, reload := range []bool{true, false} {
				folder, log := fstest.MapFS{}, &logBuffer{}
				write(folder, authorFiles)
				s := unloaded(t, engine.Options{Files: engine.Files{Config: files("mcpd.hcl", operatorRules), Tools: folder}, Logger: log.logger()})
				if reload {
					if _, err := s.Load(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				write(folder, way.files)
				_, err := s.Load(t.Context())
				if (err != nil) != (way.mistake != "") || err != nil && !strings.Contains(err.Error(), way.mistake) {
					t.Errorf("the load returns %v, want %q", err, way.mistake)
				}
				if reload || err == nil {
					wantRestricted(t, s, log, way.told)
				} else if got := s.Execute(t.Context(), call.Request{Name: "pay"}); got.Err == nil {
					t.Error("files with an error are served")
				}
			}
		})
	}
}

// write changes files of a directory.
func write(folder fstest.MapFS, changes map[string]string) {
	for name, text := range changes {
		folder[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
		if text == "" {
			delete(folder, name)
		}
	}
}

// wantRestricted makes calls that the operator's rules affect. otherwise has changed messages.
func wantRestricted(t *testing.T, s *engine.Server, log *logBuffer, otherwise map[string]string) {
	t.Helper()
	told := map[string]int{"told of tool pay": 1} // for the nested call
	for _, held := range allRestrictedCalls() {
		held.request.Caller = anonymous()
		got := "ok"
		if result := s.Execute(t.Context(), held.request); result.Err != nil {
			got = result.Err.Error()
		}
		want := held.told
		if other, is := otherwise[held.request.Name]; is {
			want = other
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s %s %s: %s, want %s", held.request.Kind, held.request.Name, held.request.Argument, got, want)
		}
	}
	if err := s.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"tool pay", "tool calls", "tool refund", "tool wipe", "tool tell", "resource ledger", "resource row", "resource papers", "prompt draft", "completion draft", "completion row", "tool echo"} {
		told["told of "+name]++
	}
	for _, name := range []string{"resource vault", "resource cell", "completion cell", "prompt letter", "completion letter", "resource diary", "resource page", "completion page", "prompt poem", "completion poem"} {
		told["told of "+name]++
	}
	for name, times := range map[string]int{"resource news": 2, "resource story": 2, "completion story": 1, "prompt joke": 2, "completion joke": 1} {
		told["told of "+name] += times
	}
	told["told of completion draft"] += 2
	told["told of tool echo"]++
	got := map[string]int{}
	for line := range strings.Lines(log.String()) {
		for name := range maps.Keys(told) {
			if strings.Contains(line, fmt.Sprintf("msg=%q", name)) {
				got[name]++
			}
		}
	}
	if diff := cmp.Diff(told, got); diff != "" {
		t.Errorf("the operator's hook (-want +got)\n%s", diff)
	}
}

// The message for the user is bounded.
func TestOperator_approvalReasons(t *testing.T) {
	const reason = "All that is on the disk is lost, of this team and of all others that share it, and nobody can bring it back"
	asked := func(policies int) call.Result {
		var more strings.Builder
		for i := range policies {
			fmt.Fprintf(&more, "policy \"p%d\" {\n  requires_approval = \"true\"\n  reason = \"%s\"\n}\n", i, strings.Repeat(`Nothing to see\u0007 here. `, 20))
		}
		s := server(t, engine.Options{
			Files: engine.Files{
				Config: files("mcpd.hcl", "policy \"asks\" {\n  requires_approval = \"tool.name == 'wipe'\"\n  reason = \""+reason+"\"\n}\n"),
				Tools:  files("t.hcl", "tool \"wipe\" { run = \"return 1\" }\n"+more.String()),
			},
		})
		return s.Execute(t.Context(), toolCall("wipe", `{}`))
	}
	ask := mustAsk(t, asked(5))
	var params struct{ Message string }
	if err := json.Unmarshal(ask.Requests[0].Params, &params); err != nil {
		t.Fatal(err)
	}
	if shown := params.Message; !strings.HasPrefix(shown, reason+"\n") || strings.Count(shown, "Nothing to see") != 100 {
		t.Errorf("the user is shown %d bytes: %.300s", len(shown), shown)
	}
	wantOutcome(t, asked(300), "POLICY_DENIED: the call needs the approval of a user, but the question is too long to show; shorten the arguments")
}

// The completion does not reveal the arguments.
func TestOperator_hiddenCompletion(t *testing.T) {
	s := server(t, engine.Options{
		Files: engine.Files{
			Config: files("mcpd.hcl", "policy \"hides\" {\n  prompts = [\"draft\"]\n  deny = \"principal.id != 'root'\"\n  reason = \"no\"\n  disclose = \"hide\"\n}\n"),
			Tools:  files("others.hcl", authorFiles["others.hcl"], "papers/a.txt", "x"),
		},
	})
	for _, argument := range []string{"day", "hour", "nothing"} {
		r := call.Request{Kind: call.Prompts, Name: "draft", Argument: argument, Caller: anonymous()}
		if got := outcomeText(s.Execute(t.Context(), r)); got != `TOOL_NOT_FOUND: no prompt named "draft"` {
			t.Errorf("%s: %s", argument, got)
		}
	}
}
