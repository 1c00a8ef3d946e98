package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/ops/control"
)

const leadsOnly = `!('leads' in principal.groups)`

// policyText returns the revision and the text of a file with policies.
func (a *controlledServer) policyText(t *testing.T, file string) control.PolicyFilesResult {
	t.Helper()
	var got control.PolicyFilesResult
	a.must(t, control.PolicyFiles, control.PolicyFile{File: file}, &got)
	return got
}

// edited replays an edit of the tool file.
func (a *controlledServer) edited(t *testing.T, before, after string) (got control.ReplayResult) {
	t.Helper()
	file := a.policyText(t, "tools.d/tools.hcl")
	if !strings.Contains(file.Text, before) {
		t.Fatalf("no %q in the text", before)
	}
	a.must(t, control.Replay, control.PolicyEdit{
		PolicyFile: control.PolicyFile{File: "tools.d/tools.hcl"}, Text: strings.Replace(file.Text, before, after, 1), Revision: file.Revision,
	}, &got)
	return got
}

func changeLines(r control.ReplayResult) (lines []string) {
	for _, c := range r.Changes {
		line := fmt.Sprintf("%s %s %s/%s: %s %s, %s %s", c.Kind, c.Name, c.AuthKind, c.Principal, c.Before.Verdict, c.Before.Policy, c.After.Verdict, c.After.Policy)
		if c.After.Place != nil {
			line += fmt.Sprintf(" %s:%d", c.After.Place.File, c.After.Place.Line)
		}
		lines = append(lines, line)
	}
	return lines
}

func TestReplay_changedDecisions(t *testing.T) {
	t.Parallel()
	a := startControlled(t, controlAudit)
	lead := toolCall("pay", `{}`)
	lead.Principal = &identity.Principal{ID: "ada", Kind: identity.KindToken, Issuer: "https://idp.example.com", Groups: []string{"leads"}}
	paid, _ := a.result(t, lead)
	guest := toolCall("pay", `{}`)
	guest.Principal = &identity.Principal{ID: "bob", Kind: identity.KindToken, Issuer: "https://idp.example.com"}
	_, _ = a.result(t, guest)
	_, _ = a.result(t, toolCall("add", `{"a":1,"b":2}`)) // a policy reads its arguments, which the log lacks
	_, _ = a.result(t, control.TryCall{ItemName: control.ItemName{Kind: "prompt", Address: "greet"}, Arguments: json.RawMessage(`{"name":"Ada"}`)})
	path := filepath.Join(a.dir, "tools.d", "tools.hcl")
	disk, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var before control.AuditResult
	a.must(t, control.Audit, nil, &before)
	revision := a.policyText(t, "").Revision

	same := a.edited(t, "reason = \"only leads pay\"", "reason = \"ask a lead\"")
	if c := same.Counts; c == nil || c.Calls != 4 || c.Judged != 3 || c.Same != 3 || c.Unknown != 1 || len(c.Reasons) != 1 || len(same.Changes) != 0 || same.Truncated {
		t.Errorf("an edit of a reason: %+v, %+v", same, same.Counts)
	}
	denied := a.edited(t, leadsOnly, "true")
	if diff := cmp.Diff([]string{"tool pay jwt/ada: allowed , denied leads_pay tools.d/tools.hcl:58"}, changeLines(denied)); diff != "" {
		t.Errorf("an edit that denies (-want +got)\n%s", diff)
	}
	if c := denied.Counts; c.AllowedToDenied != 1 || c.DeniedToAllowed+c.OtherChanges != 0 || c.Same != 2 || denied.Changes[0].CallID != paid.CallID || denied.Changes[0].Time.IsZero() {
		t.Errorf("an edit that denies: %+v", c)
	}
	allowed := a.edited(t, leadsOnly, "false")
	if diff := cmp.Diff([]string{"tool pay jwt/bob: denied leads_pay, allowed "}, changeLines(allowed)); diff != "" || allowed.Counts.DeniedToAllowed != 1 {
		t.Errorf("an edit that allows (-want +got)\n%s", diff)
	}
	held := a.edited(t, `deny   = "`+leadsOnly, `requires_approval = "true`)
	if held.Counts == nil || held.Counts.OtherChanges == 0 {
		t.Errorf("an edit that requires approval: %+v, %+v", held, held.Counts)
	}
	removed := a.edited(t, `tool "pay" {`, `tool "gone" {`)
	if removed.Counts != nil || !strings.Contains(removed.Diagnostics, "pay") { // a policy refers to it
		t.Errorf("an edit that renames the tool: %+v", removed)
	}

	now, err := os.ReadFile(path)
	if err != nil || string(now) != string(disk) || a.policyText(t, "").Revision != revision {
		t.Errorf("a replay has changed the file or the revision: %v", err)
	}
	var after control.AuditResult
	a.must(t, control.Audit, nil, &after)
	if len(after.Calls) != len(before.Calls) {
		t.Errorf("%d calls after the replays, %d before", len(after.Calls), len(before.Calls))
	}

	// The decision at the time of the call does not matter, but those of the serving policies and the edit.
	save(t, path, strings.Replace(string(disk), leadsOnly, "false", 1))
	a.must(t, control.Reload, nil, &struct{}{})
	again := a.edited(t, `deny   = "false`, `deny   = "`+leadsOnly)
	if diff := cmp.Diff([]string{"tool pay jwt/bob: allowed , denied leads_pay tools.d/tools.hcl:58"}, changeLines(again)); diff != "" {
		t.Errorf("an edit that denies again (-want +got)\n%s", diff)
	}
}

// logOf returns the only file of the audit log, its text, and the last record of a call of the tool.
func (a *controlledServer) logOf(t *testing.T, tool string) (path, text, line string) {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(a.dir, "audit", "*.jsonl"))
	if err != nil || len(logs) != 1 {
		t.Fatal(logs, err)
	}
	content, err := os.ReadFile(logs[0])
	if err != nil {
		t.Fatal(err)
	}
	for l := range strings.Lines(string(content)) {
		if strings.Contains(l, `"`+tool+`"`) && strings.Contains(l, `"outcome"`) {
			line = l
		}
	}
	if line == "" {
		t.Fatalf("no record of %s in %s", tool, content)
	}
	return logs[0], string(content), line
}

// A replay reads at most 1,000 calls and shows at most 100 changes.
func TestReplay_bounds(t *testing.T) {
	t.Parallel()
	a := startControlled(t, controlAudit)
	_, _ = a.result(t, toolCall("twice", `{"n":2}`))
	_, _ = a.result(t, toolCall("greet", `{}`))
	var last control.AuditResult
	a.must(t, control.Audit, control.CallQuery{Limit: 1}, &last)
	path, _, line := a.logOf(t, "twice")
	// A replay does not verify the log, which is the one that the server has just written.
	log, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	if _, err := log.WriteString(strings.Repeat(line, maxReplayed+10)); err != nil {
		t.Fatal(err)
	}
	got := a.edited(t, `policy "small" {`, "policy \"none\" {\n  tools = [\"twice\"]\n  deny = \"true\"\n  reason = \"none\"\n}\npolicy \"small\" {")
	if got.Counts == nil || got.Counts.Calls != maxReplayed || got.Counts.AllowedToDenied != maxReplayed || len(got.Changes) != maxChanges {
		t.Errorf("%+v, %+v, %d changes", got.Counts, got.Problem, len(got.Changes))
	}
}

// A replay reads at most the last 64 MiB of the log.
func TestReplay_maxBytes(t *testing.T) {
	t.Parallel()
	a := startControlled(t, controlAudit)
	_, _ = a.result(t, toolCall("twice", `{"n":2}`))
	var all control.AuditResult
	a.must(t, control.Audit, nil, &all)
	path, text, line := a.logOf(t, "twice")
	log, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	// The hole is one invalid line, and takes no space on the disk.
	if _, err := log.WriteAt([]byte("\n"+line), int64(len(text))+auditBytes+1<<20); err != nil {
		t.Fatal(err)
	}
	got := a.edited(t, "reason = \"only leads pay\"", "reason = \"ask a lead\"")
	if got.Counts == nil || got.Counts.Calls != 1 || !got.Truncated || len(all.Calls) == 0 {
		t.Errorf("%+v, %+v, %s", got, got.Counts, got.Problem)
	}
}

// slowContext uses up the time to read the log, on a fake clock, before a replay reads a record.
type slowContext struct{ context.Context }

func (c slowContext) Done() <-chan struct{} {
	time.Sleep(auditTime)
	return c.Context.Done()
}

// deniedCalls returns a server whose audit log has n calls.
func deniedCalls(t *testing.T, n int) *engine.Server {
	t.Helper()
	dir := t.TempDir()
	save(t, filepath.Join(dir, "t.hcl"), "tool \"t\" {\n  run = \"return 1;\"\n}\npolicy \"p\" {\n  deny   = \"principal.id != 'x'\"\n  reason = \"r\"\n}\n")
	config := fmt.Sprintf("audit {\n  path = %q\n  mode = \"strict\"\n}\n", filepath.ToSlash(filepath.Join(t.TempDir(), "log.jsonl")))
	s, err := engine.New(engine.Options{Name: "r", Logger: slog.New(slog.DiscardHandler), Files: engine.Files{
		Tools: engine.Dir(dir), Config: fstest.MapFS{"mcpd.hcl": {Data: []byte(config), Mode: 0o644}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(context.Background()) })
	if _, err := s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range n {
		if r := s.Execute(t.Context(), call.Request{Name: "t", Caller: plainCaller()}); r.Err == nil || r.Err.Code != call.PolicyDenied {
			t.Fatalf("got %+v", r)
		}
	}
	return s
}

// A replay compares no further call when its time is used up, and says so.
func TestReplay_maxTime(t *testing.T) {
	const calls = 3
	s := deniedCalls(t, calls)
	o := &runningServer{server: s}
	replayed := func(ctx context.Context) (got control.ReplayResult) {
		if err := o.replayCalls(ctx, s, &got); err != nil || got.Counts == nil {
			t.Fatal(got.Problem, err)
		}
		return got
	}
	if got := replayed(t.Context()); got.Counts.Calls != calls || got.Truncated {
		t.Errorf("%d calls, truncated %t", got.Counts.Calls, got.Truncated)
	}
	synctest.Test(t, func(*testing.T) {
		if got := replayed(slowContext{context.Background()}); got.Counts.Calls != 0 || !got.Truncated {
			t.Errorf("%d calls after %s, truncated %t", got.Counts.Calls, auditTime, got.Truncated)
		}
	})
}

func TestReplay_diagnostics(t *testing.T) {
	t.Parallel()
	a := startControlled(t, "")
	got := a.edited(t, leadsOnly, "nobody(principal)")
	if got.Counts != nil || !strings.Contains(string(got.Problems), `"error"`) || !strings.Contains(got.Diagnostics, "tools.d/tools.hcl:60") || !strings.Contains(got.Diagnostics, "nobody(principal)") {
		t.Errorf("%s\n%s", got.Problems, got.Diagnostics)
	}
	// A masked literal stays masked, wherever the edit moves it.
	file := a.policyText(t, "tools.d/tools.hcl")
	if strings.Contains(file.Text, "hunter2") || !strings.Contains(file.Text, `"**************"`) {
		t.Fatalf("the text is not masked:\n%s", file.Text)
	}
	moved := a.edited(t, `header "Authorization" { value`, `header "Accept" { unknown`)
	if moved.Diagnostics == "" || strings.Contains(moved.Diagnostics, "hunter2") || !strings.Contains(moved.Diagnostics, "unknown = ") {
		t.Errorf("got\n%s", moved.Diagnostics)
	}
	valid := a.edited(t, leadsOnly, "true")
	if !strings.Contains(valid.Diagnostics, "warning: this is always true") || strings.Contains(string(valid.Problems), `"error"`) || valid.Problem != noAuditLog || valid.Counts != nil {
		t.Errorf("a server without a log: %s\n%s", valid.Problem, valid.Diagnostics)
	}
}

// A problem quotes no masked literal, of the edited file or of another one.
func TestReplay_literalsInProblems(t *testing.T) {
	t.Parallel()
	a := startControlled(t, "", func(dir string) {
		save(t, filepath.Join(dir, "tools.d", "tools.hcl"), controlTools+"locals {\n  api_password = \"hunter2secret\"\n}\n")
		save(t, filepath.Join(dir, "tools.d", "other.hcl"), "locals {\n  db_password = \"correct-horse\"\n}\n")
	})
	const policy = "policy \"q\" {\n  reason = \"r\"\n  tools  = [\"add\"]\n  deny   = "
	for name, row := range map[string]struct{ before, after, private string }{
		"moved":      {"locals {\n  api_password = ", policy, "hunter2secret"},
		"used":       {`tools  = ["pay"]`, `tools  = [local.api_password]`, "hunter2secret"},
		"other file": {`tools  = ["pay"]`, `tools  = [local.db_password]`, "correct-horse"},
	} {
		got := a.edited(t, row.before, row.after)
		for _, text := range []string{string(got.Problems), got.Diagnostics} {
			if strings.Contains(text, row.private) || !strings.Contains(text, "[sensitive]") || got.Counts != nil {
				t.Errorf("%s: %s", name, text)
			}
		}
	}
}

// Errors that other files on disk have without the edit are not blamed on the edit.
func TestReplay_errorsOnDisk(t *testing.T) {
	t.Parallel()
	const other = "policy \"other\" {\n  tools  = [\"pay\"]\n  deny   = \"false\"\n  reason = \"r\"\n}\n"
	var path string
	a := startControlled(t, "", func(dir string) {
		path = filepath.Join(dir, "tools.d", "other.hcl")
		save(t, path, other)
	})
	problems := func(before, after string) (files []string, problem string) {
		t.Helper()
		got := a.edited(t, before, after)
		var rows []struct{ Severity, File string }
		if err := json.Unmarshal(got.Problems, &rows); err != nil || got.Counts != nil {
			t.Fatalf("%v, %+v", err, got)
		}
		for _, row := range rows {
			if row.Severity == "error" && !slices.Contains(files, row.File) {
				files = append(files, row.File)
			}
		}
		slices.Sort(files)
		return files, got.Problem
	}
	const own, disk = "tools.d/tools.hcl", "tools.d/other.hcl"
	if files, problem := problems(`tool "pay" {`, `tool "gone" {`); problem != "" || !slices.Contains(files, disk) {
		t.Errorf("the edit breaks a file on disk: %q, errors in %q", problem, files)
	}
	save(t, path, strings.Replace(other, "deny ", "dany ", 1))
	const want = "the errors in tools.d/other.hcl are not part of the edit: the files on disk have them without it"
	if files, problem := problems("only leads pay", "ask a lead"); problem != want || !slices.Equal(files, []string{disk}) {
		t.Errorf("an error on disk: %q, errors in %q", problem, files)
	}
	if files, problem := problems(leadsOnly, "nobody("); problem != want || !slices.Equal(files, []string{disk, own}) {
		t.Errorf("an error on disk and one of the edit: %q, errors in %q", problem, files)
	}
	save(t, path, other)
	if files, problem := problems(leadsOnly, "nobody("); problem != "" || !slices.Equal(files, []string{own}) {
		t.Errorf("an error of the edit: %q, errors in %q", problem, files)
	}
}

func TestReplay_rejectedEdits(t *testing.T) {
	t.Parallel()
	a := startControlled(t, "server { name = \"x\" }\n", func(dir string) {
		save(t, filepath.Join(dir, "tools.d", "other.hcl"), "tool \"other\" {\n  run = \"return 1;\"\n}\n")
	})
	file := a.policyText(t, "tools.d/tools.hcl")
	if diff := cmp.Diff([]string{"mcpd.hcl", "tools.d/tools.hcl"}, file.Files); diff != "" {
		t.Errorf("files (-want +got)\n%s", diff)
	}
	edit := func(name, text, revision string) control.PolicyEdit {
		return control.PolicyEdit{PolicyFile: control.PolicyFile{File: name}, Text: text, Revision: revision}
	}
	for want, params := range map[string]any{
		`no policies in a file "tools.d/other.hcl"`: edit("tools.d/other.hcl", "", ""),
		`no policies in a file "../secret"`:         edit("../secret", "", ""),
		`no policies in a file ""`:                  edit("", "", ""),
		"now serves another revision":               edit("tools.d/tools.hcl", file.Text, "0123"),
		"has masked literals; send the revision":    edit("tools.d/tools.hcl", file.Text, ""),
		"spans a masked literal":                    edit("tools.d/tools.hcl", strings.Replace(strings.Replace(file.Text, "Adds two", "Adds 2", 1), leadsOnly, "true", 1), file.Revision),
		"text has the wrong type":                   map[string]any{"file": "mcpd.hcl", "text": 1},
		`unknown field "save"`:                      map[string]any{"file": "mcpd.hcl", "text": "", "save": true},
	} {
		if err := a.ask(t, control.Replay, params, &control.ReplayResult{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want %s", err, want)
		}
	}
	if err := a.ask(t, control.PolicyFiles, control.PolicyFile{File: "/etc/passwd"}, &control.PolicyFilesResult{}); err == nil || !strings.Contains(err.Error(), "no policies in a file") {
		t.Errorf("got error %v", err)
	}
	var got control.ReplayResult
	a.must(t, control.Replay, edit("mcpd.hcl", "policy \"p\" {\n  deny = \"1\"\n  reason = \"r\"\n}\n", ""), &got)
	if !strings.Contains(got.Diagnostics, "mcpd.hcl:2") {
		t.Errorf("an edit of the configuration: %s", got.Diagnostics)
	}
	// The server makes the checks of its front, too.
	a.must(t, control.Replay, edit("mcpd.hcl", "auth \"api_key\" \"k\" { file = \"missing.json\" }\n", ""), &got)
	if !strings.Contains(got.Diagnostics, "missing.json") || !strings.Contains(string(got.Problems), `"error"`) {
		t.Errorf("an edit with a missing file of keys: %s", got.Diagnostics)
	}
}

// Hostile texts get diagnostics, and the server serves on.
func TestReplay_hostileTexts(t *testing.T) {
	t.Parallel()
	a := startControlled(t, "server { name = \"x\" }\n")
	for name, text := range map[string]string{
		"brackets": "x = " + strings.Repeat("[", 500_000), "braces": strings.Repeat("a {\n", 200_000), "expression": "policy \"p\" {\n  deny = \"" + strings.Repeat("(", 100_000) + "\"\n}\n",
		"NUL": "\x00", "no file": strings.Repeat("\u202e<b>\x1b[2J", 10_000), "loop": "policy \"p\" {\n  deny   = \"" + strings.Repeat("[1,2,3].all(x, ", 40) + "true" + strings.Repeat(")", 40) + "\"\n  reason = \"r\"\n}\n",
	} {
		var got control.ReplayResult
		err := a.ask(t, control.Replay, control.PolicyEdit{PolicyFile: control.PolicyFile{File: "mcpd.hcl"}, Text: text}, &got)
		if err != nil || !strings.Contains(string(got.Problems), `"error"`) || got.Counts != nil || strings.Contains(string(got.Problems)+got.Diagnostics, "\x1b") {
			t.Errorf("%s: %v, %.300s", name, err, got.Diagnostics)
		}
	}
	var status map[string]any
	a.must(t, control.Status, nil, &status)
	if err := a.ask(t, control.Replay, control.PolicyEdit{Text: strings.Repeat("x", 2<<20)}, &control.ReplayResult{}); err == nil {
		t.Error("a text of 2 MiB is accepted")
	}
}

func TestReplay_oneAtATime(t *testing.T) {
	o := &runningServer{}
	o.replaying.Lock()
	if _, err := o.replay(context.Background(), control.PolicyEdit{}); err == nil || !strings.Contains(err.Error(), "replaying another edit") {
		t.Errorf("got error %v", err)
	}
}

func TestUnmask(t *testing.T) {
	const content, shown = "a = 'key'\nb = 1\nc = 'pin'\n", "a = '***'\nb = 1\nc = '***'\n"
	for name, row := range map[string]struct{ text, want string }{
		"unchanged":      {shown, content},
		"between":        {"a = '***'\nb = 22\nc = '***'\n", "a = 'key'\nb = 22\nc = 'pin'\n"},
		"before":         {"x\n" + shown, "x\n" + content},
		"after":          {shown + "x\n", content + "x\n"},
		"around":         {"x\n" + shown + "x\n", ""},
		"longer mask":    {"a = '****'\nb = 1\nc = '***'\n", "a = 'key*'\nb = 1\nc = 'pin'\n"},
		"another value":  {"a = 'new'\nb = 1\nc = '***'\n", ""},
		"removed":        {"a = '***'\nb = 1\n", ""},
		"all is removed": {"", ""},
	} {
		got, ok := unmask([]byte(content), []byte(shown), []byte(row.text))
		if string(got) != row.want || ok != (row.want != "") {
			t.Errorf("%s: got %q, %t, want %q", name, got, ok, row.want)
		}
	}
}
