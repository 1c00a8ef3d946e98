package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mcpd/mcpd/internal/ops/control"
)

// consoleConfig has a console for the callers with keys.
const consoleConfig = `auth "api_key" "staff" { file = "keys.json" }
console {
  allow       = "principal.id != 'eve'"
  operate     = "principal.id in ['ada', 'cy']"
  impersonate = "principal.id == 'ada' && other.id == 'lead'"
}
` + controlAudit

// signedIn is a browser of a caller who has signed in to the console of a listener.
type signedIn struct {
	t    *testing.T
	url  string
	http *http.Client
	base string // the path of the session on a listener, for which paths here have /console
}

// address returns the address of a path.
func (b *signedIn) address(path string) string {
	if page, ok := strings.CutPrefix(path, "/console/"); ok && b.base != "" {
		return b.url + b.base + "/" + page
	}
	return b.url + path
}

// newConsoleListener starts a server with keys of three principals, who have signed in.
func newConsoleListener(t *testing.T) (a *controlledServer, ada, cy, bob *signedIn) {
	t.Helper()
	keys := map[string]string{}
	folder := t.TempDir()
	for _, name := range []string{"ada", "cy", "bob"} {
		code, out, errs := inProcess(t, folder, os.Environ(), "key", "new", name)
		if code != 0 {
			t.Fatal(errs)
		}
		keys[name] = strings.TrimSpace(out)
	}
	config := strings.Replace(consoleConfig, `"keys.json"`, `"`+filepath.ToSlash(filepath.Join(folder, "keys.json"))+`"`, 1)
	a = startControlled(t, config, func(dir string) {
		save(t, filepath.Join(dir, "tools.d", "plan.hcl"), "prompt \"plan\" {\n  argument \"depth\" { values = [\"short\", \"thorough\"] }\n  message \"user\" { text = \"Plan\" }\n}\n")
	})
	browsers := map[string]*signedIn{}
	for name, key := range keys {
		jar, err := cookiejar.New(nil)
		if err != nil {
			t.Fatal(err)
		}
		b := &signedIn{t, a.url, &http.Client{Jar: jar}, ""}
		if status, text := b.post("/console/", url.Values{"credential": {key}}); status != http.StatusOK || !strings.Contains(text, "Sign out") {
			t.Fatalf("sign in as %s: %d %s", name, status, text)
		}
		browsers[name] = b
	}
	return a, browsers["ada"], browsers["cy"], browsers["bob"]
}

func (b *signedIn) send(r *http.Request) (int, string) {
	b.t.Helper()
	answer, err := b.http.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	if path := answer.Request.URL.Path; b.base == "" && strings.HasPrefix(path, "/console/s-") {
		b.base = strings.TrimSuffix(path, "/")
	}
	if b.base == "" {
		return answer.StatusCode, string(text)
	}
	return answer.StatusCode, strings.ReplaceAll(string(text), `"`+b.base+"/", `"/console/`)
}

func (b *signedIn) get(path string) (int, string) {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, b.address(path), nil)
	if err != nil {
		b.t.Fatal(err)
	}
	return b.send(r)
}

func (b *signedIn) post(path string, form url.Values) (int, string) {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, b.address(path), strings.NewReader(form.Encode()))
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", r.URL.Scheme+"://"+r.URL.Host)
	return b.send(r)
}

var csrfField = regexp.MustCompile(`name="csrf" value="([^"]+)"`)

// submit posts a form with the token of a page.
func (b *signedIn) submit(path string, form url.Values) (int, string) {
	b.t.Helper()
	_, page := b.get("/console/")
	token := csrfField.FindStringSubmatch(page)
	if token == nil {
		b.t.Fatalf("no token in %s", page)
	}
	form.Set("csrf", token[1])
	return b.post(path, form)
}

// TestConsoleListener_rights: who may look changes nothing, and calls nothing.
func TestConsoleListener_rights(t *testing.T) {
	t.Parallel()
	a, ada, cy, bob := newConsoleListener(t)
	for _, path := range []string{"/console/items", "/console/item?kind=tool&address=pay", "/console/calls", "/console/policies", "/console/upstreams", "/console/access"} {
		if status, text := bob.get(path); status != http.StatusOK || !strings.Contains(text, `href="/console/items"`) {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	const pay = "/console/item/try?kind=tool&address=pay"
	for path, form := range map[string]url.Values{
		pay:               {"as": {"self"}},
		"/console/reload": {},
		"/console/confirm/revoke_key?auth=staff&id=x":                    {},
		"/console/confirm/accept?upstream=u&tool=t&digest=d":             {},
		"/console/confirm/cancel?principal=p&auth_kind=key&issuer=&id=x": {},
		"/console/confirm/drop_token?secret=s&principal=p&kind=k&issuer": {},
	} {
		if status, text := bob.submit(path, form); status != http.StatusForbidden || !strings.Contains(text, "may look, but not operate") {
			t.Errorf("POST %s: %d %s", path, status, text)
		}
	}
	for name, b := range map[string]*signedIn{"ada": ada, "cy": cy, "bob": bob} { // an edit may read files
		if status, text := b.submit("/console/policies/replay", url.Values{"file": {"mcpd.hcl"}, "text": {""}}); !strings.Contains(text, "on the machine of the server") || strings.Contains(text, "edit-text") {
			t.Errorf("%s replays an edit: %d %s", name, status, text)
		}
	}
	for _, action := range []control.Action{control.Replay, control.PolicyFiles} {
		if err := (pageBackend{}).authorize(t.Context(), control.Request{Action: action}); err == nil || !strings.Contains(err.Error(), "only for the user of the server") {
			t.Errorf("%s for a caller of the listener: %v", action, err)
		}
	}
	if calls := a.records(t, `"pay"`); len(calls) != 0 {
		t.Errorf("calls: %v", calls)
	}
	lead := url.Values{"as": {"other"}, "as_id": {"lead"}, "as_kind": {"jwt"}, "as_groups": {"leads"}}
	if status, text := cy.submit(pay, lead); status != http.StatusForbidden || !strings.Contains(text, "may not act as this principal") {
		t.Errorf("impersonation by an operator: %d %s", status, text)
	}
	if status, text := ada.submit(pay, url.Values{"as": {"self"}, "record": {"yes"}}); status != http.StatusForbidden || !strings.Contains(text, "recorded only in the console of the user who runs the server") {
		t.Errorf("a record for an operator of the listener: %d %s", status, text)
	}
	if status, text := cy.submit(pay, url.Values{"as": {"self"}}); status != http.StatusOK {
		t.Errorf("a call of an operator: %d %s", status, text)
	}
	if status, text := ada.submit(pay, lead); status != http.StatusOK {
		t.Errorf("impersonation: %d %s", status, text)
	}
	other := url.Values{"as": {"other"}, "as_id": {"root"}, "as_kind": {"local"}}
	if status, text := ada.submit(pay, other); status != http.StatusForbidden || !strings.Contains(text, "may not act as this principal") {
		t.Errorf("impersonation of another: %d %s", status, text)
	}
	for deadline := time.Now().Add(patience); len(a.records(t, `"pay"`, `"outcome"`)) < 2; time.Sleep(pollPause) {
		if time.Now().After(deadline) {
			t.Fatal("the calls do not end")
		}
	}
	if events := a.records(t, "console.impersonated"); len(events) != 1 || events[0]["attributes"].(map[string]any)["operator"] != "ada" {
		t.Errorf("events: %v", events)
	}
}

// TestConsoleListener_completion: a completion is a call, which the caller makes as itself.
func TestConsoleListener_completion(t *testing.T) {
	t.Parallel()
	a, _, cy, bob := newConsoleListener(t)
	const path = "/console/item/complete?kind=prompt&address=plan&argument=depth"
	if _, options := bob.submit(path, url.Values{"arg/depth": {"s"}}); options != "" {
		t.Errorf("who may only look gets %s", options)
	}
	if status, options := cy.submit(path, url.Values{"arg/depth": {"s"}}); status != http.StatusOK || options != `<option value="short"></option>` {
		t.Errorf("an operator gets %d %s", status, options)
	}
	calls := a.records(t, `"plan"`)
	if len(calls) == 0 {
		t.Error("no record of the completion")
	}
	for _, r := range calls {
		if text, _ := json.Marshal(r); !strings.Contains(string(text), `"cy"`) || strings.Contains(string(text), `"bob"`) {
			t.Errorf("a completion of another caller: %s", text)
		}
	}
}

// TestConsoleListener_crossOrigin: a form of another site is refused, even with the token of the session.
func TestConsoleListener_crossOrigin(t *testing.T) {
	t.Parallel()
	a, ada, _, _ := newConsoleListener(t)
	_, page := ada.get("/console/")
	token := csrfField.FindStringSubmatch(page)
	if token == nil {
		t.Fatalf("no token in %s", page)
	}
	const pay = "/console/item/try?kind=tool&address=pay"
	for name, header := range map[string]http.Header{
		"other site": {"Origin": {"https://attacker.example"}}, "other port": {"Origin": {"http://127.0.0.1:1"}}, "opaque origin": {"Origin": {"null"}}, "no origin": {},
		"cross-site fetch": {"Origin": {a.url}, "Sec-Fetch-Site": {"cross-site"}},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, ada.address(pay), strings.NewReader(url.Values{"csrf": {token[1]}, "as": {"self"}}.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = header
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if status, text := ada.send(r); status != http.StatusForbidden {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
	if calls := a.records(t, `"pay"`); len(calls) != 0 {
		t.Errorf("calls: %v", calls)
	}
}

// TestConsoleListener_separateCallers: a caller does not reach the call of another one.
func TestConsoleListener_separateCallers(t *testing.T) {
	t.Parallel()
	_, ada, cy, _ := newConsoleListener(t)
	_, page := ada.submit("/console/item/try?kind=tool&address=ask", url.Values{"as": {"self"}})
	run := regexp.MustCompile(`"/console(/runs/[^/"]+)/`).FindStringSubmatch(page)
	if run == nil {
		t.Fatalf("no run in %s", page)
	}
	if status, _ := ada.get("/console" + run[1]); status != http.StatusOK {
		t.Errorf("its own call: %d", status)
	}
	for _, path := range []string{run[1], run[1] + "/events"} {
		if status, _ := cy.get("/console" + path); status != http.StatusNotFound {
			t.Errorf("GET %s of another caller: %d", path, status)
		}
	}
	for _, path := range []string{run[1] + "/answer", run[1] + "/cancel"} {
		if status, _ := cy.submit("/console"+path, url.Values{}); status != http.StatusNotFound {
			t.Errorf("POST %s of another caller: %d", path, status)
		}
	}
}

// TestConsoleListener_withdrawnRight: who may operate no more approves nothing, and may still look.
func TestConsoleListener_withdrawnRight(t *testing.T) {
	t.Parallel()
	a, _, cy, _ := newConsoleListener(t)
	_, page := cy.submit("/console/item/try?kind=tool&address=ask", url.Values{"as": {"self"}})
	run := regexp.MustCompile(`"/console(/runs/[^/"]+)/`).FindStringSubmatch(page)
	if run == nil {
		t.Fatalf("no run in %s", page)
	}
	for deadline := time.Now().Add(patience); !strings.Contains(page, "The call asks"); time.Sleep(pollPause) {
		if _, page = cy.get("/console" + run[1]); time.Now().After(deadline) {
			t.Fatalf("the call does not ask: %s", page)
		}
	}
	config, err := os.ReadFile(filepath.Join(a.dir, "mcpd.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	save(t, filepath.Join(a.dir, "mcpd.hcl"), strings.Replace(string(config), "['ada', 'cy']", "['ada']", 1))
	a.must(t, control.Reload, nil, new(any))
	_, page = cy.submit("/console"+run[1]+"/answer", url.Values{"asked": {"1"}, "action": {"accept"}, "q/0/arg/name": {"Ada"}})
	if !strings.Contains(page, "may look, but not operate") || strings.Contains(page, "hello Ada") {
		t.Errorf("the answer: %s", page)
	}
}
