package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpd/mcpd/internal/auth/apikey"
)

// oauthSetup is a server with TLS and API keys, with a tool that needs a token of its user;
// an authorization server where users log in by name and allow everything; and an API
// that returns the owner of the token.
type oauthSetup struct {
	canaryCheck
	*daemon
	program, dir string
	flags        []string
	client       *http.Client
	keys         map[string]string
	login, api   *httptest.Server
	life         atomic.Int64 // of a token, in seconds
	renewed      atomic.Int64

	books  sync.Mutex
	owners map[string]string // by token
	pages  []string          // pages that showed a code
}

// frontName is the host name that browsers use, behind any reverse proxy.
const frontName = "mcp.example.com"

func newOAuthSetup(t *testing.T, more string, flags ...string) *oauthSetup {
	t.Helper()
	h := &oauthSetup{program: buildDaemon(t), keys: map[string]string{}, owners: map[string]string{}}
	h.life.Store(3600)
	h.login = httptest.NewServer(http.HandlerFunc(h.authorize))
	h.api = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.books.Lock()
		defer h.books.Unlock()
		_, _ = fmt.Fprintf(w, "you are %q", h.owners[r.Header.Get("Authorization")])
	}))
	t.Cleanup(func() { h.login.Close(); h.api.Close() })
	h.dir = workplace(t, keysBlock+tlsBlock+"audit {\n  path = \"audit.jsonl\"\n}\n"+h.secret()+more)
	h.flags = append([]string{"--log-level", "debug", "--state", filepath.Join(h.dir, "state.db")}, flags...)
	tool := fmt.Sprintf("tool \"mine\" {\n  timeout = \"30s\"\n  allow {\n    ask {\n      roots = true\n      max_rounds = 1\n    }\n    http \"api\" {\n      hosts = [%q]\n      private_networks = true\n      header \"Authorization\" { value = \"Bearer ${secret.mine}\" }\n    }\n  }\n  run = \"return (await http.api.get('%s')).text();\"\n}\n",
		strings.TrimPrefix(h.api.URL, "http://"), h.api.URL+"/")
	if err := os.WriteFile(filepath.Join(h.dir, "tools.d/mine.hcl"), []byte(tool), 0o600); err != nil {
		t.Fatal(err)
	}
	trusted := writeCertificate(t, h.dir)
	h.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	t.Cleanup(h.client.CloseIdleConnections)
	for _, name := range []string{"ada", "bob"} {
		key, err := apikey.Add(filepath.Join(h.dir, "keys.json"), apikey.Record{Name: name, Principal: name, Created: time.Now()})
		if err != nil {
			t.Fatal(err)
		}
		h.keys[name] = key.Plaintext()
	}
	h.start(t)
	return h
}

func (h *oauthSetup) secret() string {
	return fmt.Sprintf("secret \"mine\" {\n  oauth {\n    authorize_url = %q\n    redirect_url = \"https://%s/oauth/mine\"\n    token_url = %q\n    client_id = \"mcpd\"\n    private_networks = true\n  }\n}\n",
		h.login.URL+"/authorize", frontName, h.login.URL+"/token")
}

func (h *oauthSetup) start(t *testing.T) {
	t.Helper()
	var err error
	if h.daemon, err = startDaemon(h.program, h.dir, os.Environ(), h.flags); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.daemon.kill)
	h.daemon.client = h.client
}

// stop stops the server and records its output and files.
func (h *oauthSetup) stop(t *testing.T) {
	t.Helper()
	if err := h.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = h.cmd.Wait()
	h.daemon.mu.Lock()
	h.addOutput("the log", strings.Join(h.lines, "\n"))
	h.daemon.mu.Unlock()
	h.addFiles(t, h.dir)
}

// wantHidden checks that no token and no code leaked.
func (h *oauthSetup) wantHidden(t *testing.T) {
	t.Helper()
	if found := h.leaks(); len(found) > 0 {
		t.Errorf("tokens leaked:\n%s", strings.Join(found, "\n"))
	}
	for where, texts := range h.seen {
		for _, page := range h.pages {
			if code := codeOn(page); code != "" && strings.Contains(strings.Join(texts, ""), code) {
				t.Errorf("code %s found in %s", code, where)
			}
		}
	}
}

// authorize is the authorization server. Tokens belong to the user who logged in.
func (h *oauthSetup) authorize(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		query := r.URL.Query()
		http.Redirect(w, r, query.Get("redirect_uri")+"?"+url.Values{"code": {"of-" + query.Get("login")}, "state": {query.Get("state")}}.Encode(), http.StatusFound)
		return
	}
	_ = r.ParseForm()
	h.books.Lock()
	defer h.books.Unlock()
	name := strings.TrimPrefix(r.PostForm.Get("code"), "of-")
	if r.PostForm.Get("grant_type") == "refresh_token" {
		h.renewed.Add(1)
		name = h.owners["Bearer "+r.PostForm.Get("refresh_token")]
	}
	access, refresh := h.newSecret("access of "+name).core, h.newSecret("refresh of "+name).core
	h.owners["Bearer "+access], h.owners["Bearer "+refresh] = name, name
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"access_token":%q,"refresh_token":%q,"token_type":"bearer","expires_in":%d}`, access, refresh, h.life.Load())
}

// open opens a page in the browser of a user with a login name. It returns the last
// page.
func (h *oauthSetup) open(t *testing.T, page, login string) string {
	t.Helper()
	response, err := h.client.Get(page + "&login=" + login)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	back := response.Header.Get("Location")
	target, ok := strings.CutPrefix(back, "https://"+frontName)
	if !ok {
		t.Fatalf("the browser is sent to %q", back)
	}
	_, shown := h.visit(t, target, frontName)
	if _, again := h.visit(t, target, frontName); !strings.HasPrefix(again, "This link is not valid any more") {
		t.Errorf("a reused state shows\n%s", again)
	}
	h.books.Lock()
	defer h.books.Unlock()
	h.pages = append(h.pages, shown)
	return shown
}

// visit sends the browser from another site to the server.
func (h *oauthSetup) visit(t *testing.T, target, host string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.url+target, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Host = host
	request.Header.Set("Sec-Fetch-Site", "cross-site")
	response, err := h.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

func codeOn(page string) string {
	return strings.TrimSpace(regexp.MustCompile(`(?m)^ {4}[A-Z2-7]{4}-[A-Z2-7]{4}$`).FindString(page))
}

// elicitUser is a user who responds to input requests.
type elicitUser func(*mcp.ElicitParams) (action, code string)

// honest opens each page, logs in with the name and types the code on the page.
func (h *oauthSetup) honest(t *testing.T, login string) elicitUser {
	code := ""
	return func(asked *mcp.ElicitParams) (string, string) {
		if asked.Mode == "url" {
			shown := h.open(t, asked.URL, login)
			if code = codeOn(shown); !strings.Contains(shown, `the holder of a key of "`+login+`"`) {
				t.Errorf("the page shows\n%s", shown)
			}
		}
		return "accept", code
	}
}

// expectNoInput is a user who must not be asked.
func expectNoInput(t *testing.T) elicitUser {
	return func(asked *mcp.ElicitParams) (string, string) {
		t.Errorf("unexpected input request: %s", asked.Message)
		return "cancel", ""
	}
}

// keyTransport sends a key with each request.
type keyTransport struct {
	http.RoundTripper
	key string
}

func (b keyTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if b.key != "" {
		r.Header.Set("Authorization", "Bearer "+b.key)
	}
	return b.RoundTripper.RoundTrip(r)
}

var everyForm = &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{}}

// call calls the tool with the key of a user, or anonymously for "", as a client of a
// protocol revision. It returns the text of the result.
func (h *oauthSetup) call(t *testing.T, name, version string, can *mcp.ElicitationCapabilities, who elicitUser) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	client := mcp.NewClient(&mcp.Implementation{Name: "t", Version: "1"}, &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{Elicitation: can},
		ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			action, code := who(r.Params)
			result := &mcp.ElicitResult{Action: action}
			if action == "accept" && r.Params.Mode != "url" {
				result.Content = map[string]any{"code": code}
			}
			return result, nil
		},
	})
	transport := &mcp.StreamableClientTransport{Endpoint: h.url + "/mcp", HTTPClient: &http.Client{Transport: keyTransport{h.client.Transport, h.keys[name]}}}
	session, err := client.Connect(ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "mine"})
	if err != nil {
		return err.Error()
	}
	text, ok := result.Content[0].(*mcp.TextContent)
	if !ok {
		t.Fatalf("got %+v", result.Content[0])
	}
	return text.Text
}

// revisions are the protocol eras: in the first, calls carry their state; in the
// second, the server asks clients over the connection.
var revisions = []string{"2026-07-28", "2025-11-25"}

func (h *oauthSetup) wantCall(t *testing.T, name, version, want string, who elicitUser) {
	t.Helper()
	if got := h.call(t, name, version, everyForm, who); !strings.Contains(got, want) {
		t.Errorf("%s, %s: %s, want %s", name, version, got, want)
	}
}
