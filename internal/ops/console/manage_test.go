package console

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/internal/ops/control"
)

func TestAccess(t *testing.T) {
	t.Parallel()
	backend := newFake()
	backend.answers[control.Keys] = []control.Key{{KeyName: control.KeyName{Auth: "keys", ID: "k1"}, Name: "ci", Principal: "ci", State: "active"}, {KeyName: control.KeyName{Auth: "keys", ID: "k2"}, Name: "old", State: "revoked"}}
	backend.answers[control.Tokens] = control.TokensResult{Tokens: []control.Token{{Secret: "crm", Principal: "ada", Kind: "jwt"}}}
	backend.answers[control.Tasks] = []control.Task{{TaskName: control.TaskName{Principal: "ada", AuthKind: "jwt", ID: "t1"}, Tool: "report", Status: "working"}}
	backend.answers[control.Pins] = []control.Pin{{PinName: control.PinName{Upstream: "docs", Tool: "search", Digest: "d1"}, Change: "- old\n+ new"}}
	for _, action := range []control.Action{control.RevokeKey, control.CancelTask, control.Accept} {
		backend.answers[action] = struct{}{}
	}
	backend.answers[control.DropTokens] = control.TokensResult{Tokens: []control.Token{{Secret: "crm", Principal: "ada"}}}
	b := browse(t, backend).signIn()
	_, page := b.get("/access")
	mustContain(t, page, "ci", "crm", "report")
	if strings.Contains(page, "id=k2") {
		t.Error("a revoked key can be revoked")
	}
	_, page = b.get("/upstreams")
	mustContain(t, page, "+ new")
	rows := []struct {
		path   string
		action control.Action
		params string
		at     string
		text   string
	}{
		{"/confirm/revoke_key?auth=keys&id=k1", control.RevokeKey, `{"auth":"keys","id":"k1"}`, "/access?done=revoke_key", "The key is revoked."},
		{"/confirm/cancel?auth_kind=jwt&id=t1&principal=ada", control.CancelTask, `{"principal":"ada","auth_kind":"jwt","id":"t1"}`, "/access?done=cancel", "The task is cancelled."},
		{"/confirm/accept?digest=d1&tool=search&upstream=docs", control.Accept, `{"upstream":"docs","tool":"search","digest":"d1"}`, "/upstreams?done=accept", "The tool is accepted."},
		{"/confirm/drop_token?kind=jwt&principal=ada&secret=crm", control.DropTokens, "", "/access?done=drop_token", "The token is dropped."},
	}
	for _, row := range rows {
		_, page := b.get(row.path)
		mustContain(t, page, "?", "Keep it as it is")
		if n := len(backend.requests(row.action)); n != 0 {
			t.Errorf("%s: a GET made %d requests", row.path, n)
		}
		_, page, at := b.post(row.path, nil)
		if mustContain(t, page, row.text); at != row.at {
			t.Errorf("%s: at %s, want %s", row.path, at, row.at)
		}
		made := backend.requests(row.action)
		if len(made) != 1 || string(made[0].Params) != row.params {
			t.Errorf("%s: requests %+v", row.path, made)
		}
		if row.action == control.DropTokens && (made[0].Secret != "crm" || made[0].Principal != "ada" || made[0].Kind != "jwt") {
			t.Errorf("tokens of %+v", made[0].TokenFilter)
		}
	}
	for text, result := range map[string]control.TokensResult{
		"no token matches": {}, "the database is gone": {Tokens: []control.Token{{Secret: "crm"}}, Failure: "the database is gone"},
	} {
		backend.answers[control.DropTokens] = result
		backend.encoded.Delete(control.DropTokens)
		if _, page, at := b.post("/confirm/drop_token?kind=jwt&principal=ada&secret=crm", nil); strings.Contains(at, "done=") {
			t.Errorf("%s: the console says that the token is dropped", text)
		} else {
			mustContain(t, page, text)
		}
	}
	if status, page := b.get("/confirm/accept?upstream=docs&tool=search&digest=other"); status != http.StatusNotFound {
		t.Errorf("a tool that has changed: status %d: %s", status, pageText(t, page))
	}
}

// The page that asks for a confirmation shows all of a change, since all of it is accepted.
func TestConfirm_longChange(t *testing.T) {
	t.Parallel()
	backend := newFake()
	pin := control.PinName{Upstream: "crm", Tool: "erase", Digest: "d"}
	const last = "+  \"the last line\"\n"
	change := "--- crm/erase\n+++ crm/erase\n" + strings.Repeat("+"+strings.Repeat("x", 398)+"\n", 1999) + last
	backend.answers[control.Pins] = []control.Pin{{PinName: pin, Change: change}, {PinName: control.PinName{Upstream: "crm", Tool: "other"}, Problem: "too long to show"}}
	b := browse(t, backend).signIn()
	_, page := b.get("/confirm/accept?upstream=crm&tool=erase&digest=d")
	if text := pageText(t, page); !strings.Contains(text, change) || strings.Count(page, "<ins>") != 2000 {
		t.Errorf("the page has %d lines of the change: %.300s", strings.Count(page, "<ins>"), text)
	}
	_, page = b.get("/upstreams")
	mustContain(t, page, "too long to show")
}

// A line of a definition has its sign, even if it looks like the heading of a diff.
func TestDiffLines(t *testing.T) {
	t.Parallel()
	const text = "--- crm/a sha256 1\n+++ crm/a sha256 2\n@@ -1,2 +1,3 @@\n same\n--- gone\n+++ new\n+ +\n"
	want := []diffLine{
		{"", "--- crm/a sha256 1\n"}, {"", "+++ crm/a sha256 2\n"}, {"", "@@ -1,2 +1,3 @@\n"}, {"", " same\n"}, {"-", "--- gone\n"}, {"+", "+++ new\n"}, {"+", "+ +\n"},
	}
	if diff := cmp.Diff(want, diffLines(text)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
