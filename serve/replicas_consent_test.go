package serve_test

import (
	"context"
	"encoding/json"
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
	"testing/fstest"
	"time"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/extensions/federation"
	"github.com/mcpd/mcpd/extensions/postgres"
	"github.com/mcpd/mcpd/internal/base/postgrestest"
	"github.com/mcpd/mcpd/serve"
)

// consentFleet is three servers that share a database, with a tool that needs a token of its user, an
// authorization server and an API that returns the owner of the token.
type consentFleet struct {
	*testing.T
	database *postgrestest.Server
	urls     [3]string
	servers  [3]*engine.Server
	keys     map[string]string
	redeemed atomic.Int64
}

func newConsentFleet(t *testing.T) *consentFleet {
	t.Helper()
	f := &consentFleet{T: t, database: postgrestest.Start(t, os.Getenv("MCPD_NEED_POSTGRES"))}
	login := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		f.redeemed.Add(1)
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"access_token":"token-%s","token_type":"bearer","expires_in":3600}`, r.PostForm.Get("code"))
	}))
	t.Cleanup(login.Close)
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "you are "+strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer token-"))
	}))
	t.Cleanup(api.Close)
	var path string
	f.keys, path = validKeys(t, "ada", "bob")
	config := fmt.Sprintf(`
auth "api_key" "people" { file = %q }
secret "mine" {
  oauth {
    authorize_url    = "%s/authorize"
    redirect_url     = "https://mcp.example.com/oauth/mine"
    token_url        = "%s/token"
    client_id        = "mcpd"
    private_networks = true
  }
}
`, filepath.ToSlash(path), login.URL, login.URL)
	tools := fmt.Sprintf(`
tool "mine" {
  timeout = "1m"
  allow {
    http "api" {
      hosts            = [%q]
      private_networks = true
      header "Authorization" { value = "Bearer ${secret.mine}" }
    }
  }
  run = "return (await http.api.get('%s/')).text();"
}
`, strings.TrimPrefix(api.URL, "http://"), api.URL)
	for i := range f.urls {
		s, err := engine.New(engine.Options{
			Name: "test", StateURL: f.database.URL("postgres", ""), Front: serve.Checks{}, Extensions: []engine.Extension{postgres.New(), federation.New()},
			Files: engine.Files{
				Tools:  fstest.MapFS{"t.hcl": {Data: []byte(tools), Mode: 0o644}},
				Config: fstest.MapFS{"mcpd.hcl": {Data: []byte(config), Mode: 0o644}},
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		front := serve.New(s, serve.Options{Grace: 1})
		t.Cleanup(func() { _ = front.Shutdown(context.Background()) }) // calls may be cancelled
		f.urls[i], f.servers[i] = listen(t, front), s
	}
	return f
}

// prompted is the answer to a call: the result, or a prompt.
type prompted struct {
	text, key, state string
	params           struct {
		Mode, URL, Message string
	}
}

// call calls the tool at a server; more are further parameters.
func (f *consentFleet) call(at int, who, more string) (p prompted) {
	f.Helper()
	meta := strings.Replace(metaModern, `Capabilities":{}`, `Capabilities":{"elicitation":{"form":{},"url":{}}}`, 1)
	_, answer := post(f.T, f.urls[at]+"/mcp", fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{%s,"name":"mine","arguments":{}%s}}`, meta, more),
		map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "mine", "Authorization": "Bearer " + f.keys[who]})
	var wire struct {
		Result struct {
			ResultType, RequestState string
			InputRequests            map[string]struct{ Params json.RawMessage }
		}
	}
	decode(f.T, answer, &wire)
	p.text, p.state = string(answer), wire.Result.RequestState
	for key, r := range wire.Result.InputRequests {
		p.key = key
		decode(f.T, r.Params, &p.params)
	}
	return p
}

// answer answers a prompt at a server.
func (f *consentFleet) answer(at int, who string, p prompted, code string) prompted {
	f.Helper()
	return f.call(at, who, fmt.Sprintf(`,"inputResponses":{%q:{"action":"accept","content":{"code":%q}}},"requestState":%q`, p.key, code, p.state))
}

// visit returns the browser of a user from the page of a prompt to a server.
func (f *consentFleet) visit(at int, who string, p prompted) (status int, page string) {
	f.Helper()
	link, err := url.Parse(p.params.URL)
	if err != nil || p.params.Mode != "url" {
		f.Fatalf("no page to open: %v, %s", err, p.text)
	}
	request, err := http.NewRequestWithContext(f.Context(), http.MethodGet, f.urls[at]+"/oauth/mine?code="+who+"&state="+link.Query().Get("state"), nil)
	if err != nil {
		f.Fatal(err)
	}
	request.Host = "mcp.example.com"
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		f.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		f.Fatal(err)
	}
	return response.StatusCode, string(body)
}

func codeIn(page string) string {
	return strings.TrimSpace(regexp.MustCompile(`(?m)^ {4}[A-Z2-7]{4}-[A-Z2-7]{4}$`).FindString(page))
}

func (f *consentFleet) want(p prompted, text string) {
	f.Helper()
	if !strings.Contains(p.text, text) {
		f.Errorf("got %s, want %s", p.text, text)
	}
}

// TestReplicas_consent uses another server for each step of an authorization.
func TestReplicas_consent(t *testing.T) {
	t.Parallel()
	f := newConsentFleet(t)
	t.Run("each step elsewhere", func(t *testing.T) {
		f := &consentFleet{T: t, database: f.database, urls: f.urls, servers: f.servers, keys: f.keys}
		page := f.call(0, "ada", "")
		if again := f.call(2, "ada", ""); again.params.URL != page.params.URL {
			t.Errorf("another server sends ada to another page: %s", again.text)
		}
		waiting := make(chan prompted, 1)
		go func() {
			defer close(waiting)                    // if the answer fails the test
			waiting <- f.answer(0, "ada", page, "") // waits for the browser
		}()
		_, shown := f.visit(1, "ada", page)
		form, ok := <-waiting
		if !ok {
			return
		}
		f.want(form, "Enter the code")
		wrong := f.answer(1, "ada", form, "AAAA-AAAA")
		f.want(wrong, "Attempts left: 2")
		wrong = f.answer(2, "ada", wrong, "AAAA-AAAA")
		f.want(wrong, "Attempts left: 1")
		f.want(f.answer(0, "ada", wrong, codeIn(shown)), "you are ada")
		for at := range f.urls {
			f.want(f.call(at, "ada", ""), "you are ada")
		}
		if other := f.call(1, "bob", ""); other.params.Mode != "url" {
			t.Errorf("bob is asked %s", other.text)
		}
	})
	t.Run("wrong codes", func(t *testing.T) {
		page := f.call(0, "bob", "")
		_, shown := f.visit(1, "bob", page)
		p := f.answer(2, "bob", page, "")
		for at := range 3 {
			p = f.answer(at, "bob", p, "AAAA-AAAA")
		}
		f.want(p, "the code was wrong three times")
		if next := f.call(1, "bob", ""); next.params.URL == page.params.URL || next.params.Mode != "url" || codeIn(shown) == "" {
			t.Errorf("bob is asked %s", next.text)
		}
	})
	t.Run("replayed callback", func(t *testing.T) {
		page, before := f.call(0, "bob", ""), f.redeemed.Load()
		var all sync.WaitGroup
		var accepted, refused atomic.Int64
		for i := range 12 {
			all.Go(func() {
				switch status, shown := f.visit(i%3, "bob", page); {
				case status == http.StatusOK && codeIn(shown) != "":
					accepted.Add(1)
				case status == http.StatusBadRequest && strings.Contains(shown, "not valid any more"):
					refused.Add(1)
				default:
					t.Errorf("%d %s", status, shown)
				}
			})
		}
		all.Wait()
		if accepted.Load() != 1 || refused.Load() != 11 || f.redeemed.Load() != before+1 {
			t.Errorf("accepted %d, refused %d, redeemed %d", accepted.Load(), refused.Load(), f.redeemed.Load()-before)
		}
	})
	t.Run("drop", func(t *testing.T) {
		shows := func(id string) bool { // whether bob is still asked for the code
			if _, err := f.servers[2].DropUserTokens(engine.UserToken{ID: id}); err != nil {
				t.Fatal(err)
			}
			return f.call(1, "bob", "").params.Mode != "url"
		}
		if !shows("ada") || shows("bob") {
			t.Error("a drop ended the wrong authorizations")
		}
	})
	t.Run("database away", func(t *testing.T) {
		page := f.call(0, "bob", "")
		if err := f.database.Stop(); err != nil {
			t.Fatal(err)
		}
		if status, shown := f.visit(1, "bob", page); status != http.StatusServiceUnavailable || !strings.Contains(shown, "cannot reach its database") {
			t.Errorf("%d %s", status, shown)
		}
		if err := f.database.Restart(); err != nil {
			t.Fatal(err)
		}
		status, shown := f.visit(1, "bob", page)
		for end := time.Now().Add(time.Minute); status == http.StatusServiceUnavailable && time.Now().Before(end); {
			time.Sleep(20 * time.Millisecond) // nothing signals that the server is connected again
			status, shown = f.visit(1, "bob", page)
		}
		if codeIn(shown) == "" {
			t.Fatalf("%d %s", status, shown)
		}
		f.want(f.answer(0, "bob", f.answer(2, "bob", page, ""), codeIn(shown)), "you are bob")
	})
}
