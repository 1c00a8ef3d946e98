package main

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestUserToken_perCallerOverHTTP(t *testing.T) {
	t.Parallel()
	for _, scene := range []struct{ version, executor string }{{revisions[0], "worker"}, {revisions[1], "worker"}, {revisions[0], "inline"}} {
		t.Run(scene.version+" "+scene.executor, func(t *testing.T) {
			h, version := newOAuthSetup(t, "", "--executor", scene.executor), scene.version
			for _, name := range []string{"ada", "bob"} {
				h.wantCall(t, name, version, `you are "`+name+`"`, h.honest(t, name))
			}
			h.stop(t)
			h.start(t) // a new process still has them
			for _, name := range []string{"bob", "ada"} {
				h.wantCall(t, name, version, `you are "`+name+`"`, expectNoInput(t))
			}
			h.stop(t)
			h.wantHidden(t)
			if len(h.pages) != 2 || h.renewed.Load() != 0 {
				t.Errorf("%d pages opened, %d tokens renewed", len(h.pages), h.renewed.Load())
			}
		})
	}
}

func TestUserToken_renewedOverHTTP(t *testing.T) {
	t.Parallel()
	h := newOAuthSetup(t, "")
	h.life.Store(1)
	h.wantCall(t, "ada", revisions[0], `you are "ada"`, h.honest(t, "ada"))
	for deadline := time.Now().Add(patience); h.renewed.Load() == 0 && time.Now().Before(deadline); {
		h.wantCall(t, "ada", revisions[0], `you are "ada"`, expectNoInput(t))
	}
	if h.renewed.Load() == 0 {
		t.Error("not renewed")
	}
	h.stop(t)
	h.wantHidden(t)
}

// bob gets the link of ada and allows it as if it were his own.
func TestUserToken_linkOfAnotherUser(t *testing.T) {
	t.Parallel()
	for _, version := range revisions {
		t.Run(version, func(t *testing.T) {
			h := newOAuthSetup(t, "")
			asked, fromBob := 0, ""
			h.wantCall(t, "bob", version, "declined", func(asked *mcp.ElicitParams) (string, string) {
				if asked.Mode != "url" {
					return "decline", ""
				}
				fromBob = codeOn(h.open(t, asked.URL, "bob"))
				return "accept", ""
			})
			h.wantCall(t, "ada", version, "the code was wrong three times", func(p *mcp.ElicitParams) (string, string) {
				if asked++; p.Mode == "url" {
					if shown := h.open(t, p.URL, "bob"); !strings.Contains(shown, `the holder of a key of "ada"`) || !strings.Contains(shown, "If another person sent you the link") {
						t.Errorf("bob sees\n%s", shown)
					}
				}
				return "accept", []string{"", "", "AAAA-AAAA", fromBob, "no code"}[asked]
			})
			if asked != 4 {
				t.Errorf("ada got %d input requests", asked)
			}
			// Nothing remains: both start again with their own authorization.
			for _, name := range []string{"ada", "bob"} {
				h.wantCall(t, name, version, `you are "`+name+`"`, h.honest(t, name))
			}
			h.stop(t)
			h.wantHidden(t)
		})
	}
}

func TestUserToken_refused(t *testing.T) {
	t.Parallel()
	h := newOAuthSetup(t, "")
	for _, refusal := range []struct{ mode, action, want string }{{"url", "decline", "declined"}, {"url", "cancel", "cancelled"}, {"", "decline", "declined"}, {"", "cancel", "cancelled"}} {
		link := ""
		h.wantCall(t, "ada", revisions[1], refusal.want, func(asked *mcp.ElicitParams) (string, string) {
			if asked.Mode == "url" {
				link = asked.URL
			}
			if (asked.Mode == "url") == (refusal.mode == "url") {
				return refusal.action, ""
			}
			h.open(t, asked.URL, "ada")
			return "accept", ""
		})
		if shown := h.open(t, link, "ada"); !strings.HasPrefix(shown, "This link is not valid any more") {
			t.Errorf("after %+v the link shows\n%s", refusal, shown)
		}
	}
	h.wantCall(t, "ada", revisions[1], `you are "ada"`, h.honest(t, "ada"))
}

func TestUserToken_errors(t *testing.T) {
	t.Parallel()
	h := newOAuthSetup(t, "auth \"anonymous\" \"all\" {}\n")
	for _, version := range revisions {
		h.wantCall(t, "", version, "the caller is not authenticated", expectNoInput(t))
		if got := h.call(t, "ada", version, &mcp.ElicitationCapabilities{URL: everyForm.URL}, expectNoInput(t)); !strings.Contains(got, "elicitation.form") {
			t.Errorf("a client without forms gets %s", got)
		}
	}
	if len(h.pages) != 0 {
		t.Error("unexpected redirect")
	}
	// With a loopback redirect URL, a caller over HTTP gets an error that helps.
	config := filepath.Join(h.dir, "mcpd.hcl")
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	here := strings.Replace(string(text), "https://"+frontName+"/oauth/mine", "http://127.0.0.1:8976/back", 1)
	save(t, config, here)
	if _, err := h.waitFor(regexp.MustCompile("reloaded")); err != nil {
		t.Fatal(err)
	}
	h.wantCall(t, "ada", revisions[0], `redirect_url = "https://HOST/oauth/NAME"`, expectNoInput(t))
}

// The redirect route accepts only the host and the path in the files, and only while
// the files name them.
func TestRedirectRoute_hostAndPath(t *testing.T) {
	t.Parallel()
	h := newOAuthSetup(t, "")
	for _, test := range []struct {
		target, host, want string
		status             int
	}{
		{"/oauth/mine", frontName, "This link is not valid", 400},
		{"/oauth/mine?state=x&code=y", frontName, "This link is not valid", 400},
		{"/oauth/other", frontName, "the Host header", 403}, {"/oauth/mine", "evil.example.com", "the Host header", 403},
		{"/healthz", frontName, "the Host header", 403},
	} {
		if status, body := h.visit(t, test.target, test.host); status != test.status || !strings.Contains(body, test.want) {
			t.Errorf("%s of %s: %d %s", test.target, test.host, status, body)
		}
	}
	config := filepath.Join(h.dir, "mcpd.hcl")
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	without := strings.Replace(string(text), h.secret(), "secret \"mine\" {\n  env = \"HOME\"\n}\n", 1)
	save(t, config, without)
	if _, err := h.waitFor(regexp.MustCompile("reloaded")); err != nil {
		t.Fatal(err)
	}
	if status, body := h.visit(t, "/oauth/mine", frontName); status != http.StatusForbidden {
		t.Errorf("without the block: %d %s", status, body)
	}
	status, body, err := h.exchange(http.MethodGet, "/oauth/mine", nil, nil)
	if err != nil || status != http.StatusNotFound || !strings.Contains(string(body), "no such route") {
		t.Errorf("without the block: %d %s, %v", status, body, err)
	}
}
