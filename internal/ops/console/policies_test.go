package console

import (
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/ops/control"
)

func TestPolicies(t *testing.T) {
	t.Parallel()
	backend := newFake()
	backend.answers[control.Matrix] = control.MatrixResult{
		Principals: []identity.Principal{{ID: "ada", Kind: "key"}}, Items: []control.ItemName{{Kind: "tool", Address: "greet"}, {Kind: "tool", Address: "erase"}},
		Cells: [][]control.MatrixCell{{{Verdict: "allowed"}}, {{Verdict: "denied", Policy: "office_hours"}}}, Truncated: true,
	}
	backend.answers[control.Explain] = func(params json.RawMessage) any {
		if strings.Contains(string(params), "missing") {
			return errors.New("the server has no such tool")
		}
		return control.ExplainResult{Verdict: "denied", Message: "come back later", Rulings: []control.RulingLine{{Policy: control.Policy{Name: "office_hours"}, Decides: true, Says: "it is night"}}}
	}
	b := browse(t, backend).signIn()
	_, page := b.get("/policies")
	mustContain(t, page, "ada", "greet", "allowed", "denied", "office_hours", "left out some")
	if _, page := b.get("/policies?q=erase"); strings.Contains(pageText(t, page), "greet") {
		t.Error("the search does not hide other items")
	}
	_, page, _ = b.post("/policies/explain", url.Values{"kind": {"tool"}, "address": {"erase"}, "json": {`{"id":1}`}})
	mustContain(t, page, "come back later", "it is night", "decides")
	_, page, _ = b.post("/policies/explain", url.Values{"kind": {"tool"}, "address": {"missing"}})
	mustContain(t, page, "the server has no such tool")
}

func TestPolicies_edit(t *testing.T) {
	t.Parallel()
	backend := newFake()
	text := "policy \"p\" {\r\n  deny = \"a < b && '</textarea>'\"\r\n}\r\n"
	var failed error
	backend.answers[control.PolicyFiles] = func(params json.RawMessage) any {
		files := control.PolicyFilesResult{Revision: "r1", Files: []string{"mcpd.hcl", "tools.d/pay.hcl"}}
		switch {
		case failed != nil:
			return failed
		case strings.Contains(string(params), "pay.hcl"):
			files.Text = text
		case strings.Contains(string(params), "mcpd.hcl"):
			files.Text = "# \u202e \\\r\n"
		}
		return files
	}
	replayed := control.ReplayResult{
		Diagnostics: "tools.d/pay.hcl:1: warning: careful", Counts: &control.ReplayCounts{Calls: 9, Judged: 7, Same: 5, AllowedToDenied: 1, DeniedToAllowed: 1, Unknown: 2, Reasons: map[string]int{"the record lacks it": 2}},
		Changes: []control.ReplayedCall{{CallID: "c7", Name: "pay", Principal: "ada", Before: control.PolicyDecision{Verdict: "allowed"}, After: control.PolicyDecision{Verdict: "denied", Policy: "p", Place: &control.Place{File: "tools.d/pay.hcl", Line: 1}}}},
	}
	var edit control.PolicyEdit
	backend.answers[control.Replay] = func(params json.RawMessage) any {
		if err := json.Unmarshal(params, &edit); err != nil {
			t.Error(err)
		}
		if strings.Contains(edit.Text, "busy") {
			return errors.New("the server is replaying another edit")
		}
		return replayed
	}
	b := browse(t, backend).signIn()
	_, page := b.get("/policies")
	mustContain(t, page, "mcpd.hcl", "tools.d/pay.hcl")
	if strings.Contains(page, "Replay the last") {
		t.Error("a form without a file")
	}
	_, page = b.get("/policies?file=tools.d/pay.hcl")
	mustContain(t, page, "Text of tools.d/pay.hcl", "a < b && '</textarea>'")
	form := url.Values{"file": {"tools.d/pay.hcl"}, "revision": {"r1"}, "text": {strings.ReplaceAll(text, "a", "é")}}
	_, page, _ = b.post("/policies/replay", form)
	mustContain(t, page, "1 call denied, 1 call allowed", "9 calls replayed, 7 judged: 5 the same. 2 not judged.", "2 not judged: the record lacks it", "warning: careful", "denied by p", "tools.d/pay.hcl:1", "'</textéreé>'")
	if !strings.Contains(page, `href="/calls/c7"`) {
		t.Error("no link to the call")
	}
	if want := strings.ReplaceAll(strings.ReplaceAll(text, "a", "é"), "\r", ""); edit.Text != want || edit.File != "tools.d/pay.hcl" || edit.Revision != "r1" {
		t.Errorf("got %+v", edit)
	}
	replayed = control.ReplayResult{Diagnostics: "tools.d/pay.hcl:1: error: no"}
	_, page, _ = b.post("/policies/replay", form)
	mustContain(t, page, "The edit has errors", "error: no")
	replayed = control.ReplayResult{Problem: "the server writes no audit log"}
	_, page, _ = b.post("/policies/replay", form)
	mustContain(t, page, "No calls were replayed", "the server writes no audit log")
	form.Set("text", "busy")
	_, page, _ = b.post("/policies/replay", form)
	mustContain(t, page, "the server is replaying another edit", "busy")

	asked := len(backend.requests(control.Replay))
	for _, posted := range []string{"\xff", strings.Repeat("x", maxEdited+1)} {
		form.Set("text", posted)
		if _, page, _ = b.post("/policies/replay", form); !strings.Contains(pageText(t, page), "Use mcpd policy replay.") {
			t.Errorf("%.10q is replayed", posted)
		}
	}
	if n := len(backend.requests(control.Replay)); n != asked {
		t.Errorf("%d edits are replayed", n-asked)
	}
	// The page shows invisible characters as escapes, and the server gets them.
	_, page = b.get("/policies?file=mcpd.hcl")
	mustContain(t, page, `# \u{202E} \\`)
	if b.post("/policies/replay", postedBy(t, page, "/policies/replay")); edit.File != "mcpd.hcl" || edit.Text != "# \u202e \\\n" {
		t.Errorf("got %+v", edit)
	}
	// If the server lists no files, the page keeps the text, and shows why.
	failed = errors.New("the server stops")
	asked = len(backend.requests(control.Replay))
	_, page, _ = b.post("/policies/replay", url.Values{"file": {"tools.d/pay.hcl"}, "text": {"my edit"}})
	mustContain(t, page, "the server stops", "my edit")
	if strings.Contains(page, "The files have no policies.") || len(backend.requests(control.Replay)) != asked {
		t.Error("an edit is replayed without a list of files")
	}
}

// An unknown file in the address gets an error, and the list of files.
func TestPolicies_unknownFile(t *testing.T) {
	t.Parallel()
	backend := newFake()
	backend.answers[control.PolicyFiles] = func(params json.RawMessage) any {
		if strings.Contains(string(params), "other") {
			return errors.New("the server has no policies in a file")
		}
		return control.PolicyFilesResult{Files: []string{"tools.d/pay.hcl"}}
	}
	b := browse(t, backend).signIn()
	if _, page := b.get("/policies?file=other"); !strings.Contains(page, "no policies in a file") || !strings.Contains(page, "tools.d/pay.hcl") {
		t.Error("an unknown file")
	}
}

// Callers of a listener do not replay edits, which may read files of the server.
func TestPolicies_editOnListener(t *testing.T) {
	t.Parallel()
	backend := newFake()
	b := browse(t, backend, func(o *Options) { o.Base, o.Hosts, o.SignOut = "/console", nil, func() {} })
	b.csrf = b.console.session.csrf
	_, page := b.get("/console/policies?file=mcpd.hcl")
	mustContain(t, page, "mcpd policy replay AUDIT --with DIR")
	_, replayed, _ := b.post("/console/policies/replay", url.Values{"file": {"mcpd.hcl"}, "text": {"x"}})
	if strings.Contains(page+replayed, "edit-text") || len(backend.requests(control.PolicyFiles))+len(backend.requests(control.Replay)) > 0 {
		t.Error("a form on a listener")
	}
}
