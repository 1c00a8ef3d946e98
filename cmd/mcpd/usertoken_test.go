package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
)

// userScene is a server over stdio with a tool that needs a token of its user, an
// authorization server that allows everything, and an API.
type userScene struct {
	canaryCheck
	dir, state string
	login, api *httptest.Server
	tokens     atomic.Int64
}

func newUserScene(t *testing.T) *userScene {
	t.Helper()
	s := &userScene{dir: t.TempDir(), state: t.TempDir()}
	access, refresh := s.newSecret("access").core, s.newSecret("refresh").core
	s.login = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			back, err := url.Parse(r.URL.Query().Get("redirect_uri"))
			if err != nil {
				t.Error(err)
			}
			back.RawQuery = url.Values{"code": {"c"}, "state": {r.URL.Query().Get("state")}}.Encode()
			http.Redirect(w, r, back.String(), http.StatusFound)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		s.tokens.Add(1)
		_, _ = fmt.Fprintf(w, `{"access_token":%q,"refresh_token":%q,"token_type":"bearer","expires_in":3600}`, access, refresh)
	}))
	s.api = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		said := r.Header.Get("Authorization")
		_, _ = fmt.Fprintf(w, "known: %v; you said %s %x %X %s %s", said == "Bearer "+access, said, said, said, base64.StdEncoding.EncodeToString([]byte(said)), url.QueryEscape(said))
	}))
	t.Cleanup(func() { s.login.Close(); s.api.Close() })
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	back := free.Addr().String()
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"mcpd.hcl": fmt.Sprintf("secret \"mine\" {\n  oauth {\n    authorize_url = %q\n    redirect_url = \"http://%s/back\"\n    token_url = %q\n    client_id = \"mcpd\"\n    private_networks = true\n  }\n}\n",
			s.login.URL+"/authorize", back, s.login.URL+"/token"),
		"tools.d/mine.hcl": fmt.Sprintf("tool \"mine\" {\n  timeout = \"30s\"\n  allow {\n    http \"api\" {\n      hosts = [%q]\n      private_networks = true\n      header \"Authorization\" { value = \"Bearer ${secret.mine}\" }\n    }\n  }\n  run = \"return (await http.api.get('%s')).text();\"\n}\n",
			strings.TrimPrefix(s.api.URL, "http://"), s.api.URL+"/"),
	} {
		path := filepath.Join(s.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// talk runs a conversation with a server over stdio, and checks that no token leaks
// into its output or log in any form.
func (s *userScene) talk(t *testing.T, conversation func(send func(line string), hear func() (line string, ok bool))) {
	t.Helper()
	program, err := exec.LookPath("mcpd")
	if err != nil {
		t.Fatal(err)
	}
	server, heard := serveStdio(t, program, s.dir, append(os.Environ(), "XDG_STATE_HOME="+s.state)), ""
	conversation(func(line string) { _, _ = fmt.Fprintln(server.in, line) }, func() (string, bool) {
		ok := server.lines.Scan()
		heard += server.lines.Text() + "\n"
		return server.lines.Text(), ok
	})
	s.addOutput("standard output", heard+server.end(t))
	s.addOutput("the log", server.log.String())
	if found := s.leaks(); len(found) > 0 {
		t.Errorf("tokens leaked:\n%s", strings.Join(found, "\n"))
	}
}

// open opens a page as a user who allows everything.
func (s *userScene) open(t *testing.T, page string) {
	t.Helper()
	if got := browse(t, page); got != "Done. You can close this window." {
		t.Errorf("the browser shows %q", got)
	}
}

// converse calls the tool as a client of 2025-11-25 with these capabilities. It opens
// each page that it is asked to open, and returns the response and the number of pages.
func (s *userScene) converse(t *testing.T, capabilities string) (answer string, pages int) {
	t.Helper()
	s.talk(t, func(send func(string), hear func() (string, bool)) {
		s.greet(send, capabilities)
		answer, pages = s.call(t, send, hear, 2)
	})
	return answer, pages
}

// greet starts a session of 2025-11-25.
func (s *userScene) greet(send func(string), capabilities string) {
	send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","clientInfo":{"name":"c","version":"1"},"capabilities":` + capabilities + `}}`)
	send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

// call calls the tool in a session, like converse.
func (s *userScene) call(t *testing.T, send func(string), hear func() (string, bool), id int) (answer string, pages int) {
	t.Helper()
	send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"mine","arguments":{}}}`, id))
	for answer == "" {
		line, ok := hear()
		if !ok {
			return
		}
		var message struct {
			ID     json.RawMessage
			Method string
			Params struct{ Mode, URL string }
		}
		if err := json.Unmarshal([]byte(line), &message); err != nil {
			t.Fatal(err)
		}
		switch {
		case message.Method == "elicitation/create" && message.Params.Mode == "url":
			pages++
			s.open(t, message.Params.URL)
			send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"action":"accept"}}`, message.ID))
		case string(message.ID) == strconv.Itoa(id) && message.Method == "":
			answer = line
		}
	}
	return answer, pages
}

// stateless calls the tool as a client of 2026-07-28, which repeats the call with the
// input responses. It returns the last response.
func (s *userScene) stateless(t *testing.T) (answer string) {
	t.Helper()
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"url":{}}}}`
	s.talk(t, func(send func(string), hear func() (string, bool)) {
		send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"mine",` + meta + `}}`)
		first, _ := hear()
		var asked struct {
			Result struct {
				InputRequests map[string]struct{ Params struct{ Mode, URL string } }
				RequestState  string
			}
		}
		if err := json.Unmarshal([]byte(first), &asked); err != nil || asked.Result.InputRequests["consent"].Params.Mode != "url" {
			t.Fatalf("got %s, %v", first, err)
		}
		s.open(t, asked.Result.InputRequests["consent"].Params.URL)
		send(fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"mine","inputResponses":{"consent":{"action":"accept"}},"requestState":%q,%s}}`, asked.Result.RequestState, meta))
		answer, _ = hear()
	})
	return answer
}

func browse(t *testing.T, page string) string {
	t.Helper()
	response, err := http.Get(page)
	if err != nil {
		t.Error(err)
		return ""
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Error(err)
	}
	return string(body)
}

func TestUserToken_askedOnce(t *testing.T) {
	t.Parallel()
	s := newUserScene(t)
	if answer, pages := s.converse(t, `{}`); pages != 0 || !strings.Contains(answer, `"isError":true`) || !strings.Contains(answer, "elicitation.url") {
		t.Errorf("a client that cannot open pages gets %s", answer)
	}
	const want = `known: true; you said Bearer [secret:mine]`
	for _, asked := range []int{1, 0} { // the second is another process
		if answer, pages := s.converse(t, `{"elicitation":{"url":{}}}`); pages != asked || !strings.Contains(answer, want) {
			t.Errorf("after %d pages the result is %s", pages, answer)
		}
	}
	if s.tokens.Load() != 1 {
		t.Errorf("%d tokens issued", s.tokens.Load())
	}
	s.addFiles(t, s.state)
	if found := s.leaks(); len(found) > 0 {
		t.Errorf("tokens leaked:\n%s", strings.Join(found, "\n"))
	}
}

func TestUserToken_stateless(t *testing.T) {
	t.Parallel()
	s := newUserScene(t)
	if answer := s.stateless(t); !strings.Contains(answer, `known: true; you said Bearer [secret:mine]`) {
		t.Errorf("got %s", answer)
	}
}

func TestUserToken_anonymous(t *testing.T) {
	t.Parallel()
	s := newUserScene(t)
	program, err := exec.LookPath("mcpd")
	if err != nil {
		t.Fatal(err)
	}
	d, err := startDaemon(program, s.dir, append(os.Environ(), "XDG_STATE_HOME="+s.state), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.kill)
	_, answer, err := d.exchange(http.MethodPost, "/mcp/execute", []byte(`{"tool":"mine"}`), nil)
	if err != nil || !strings.Contains(string(answer), "the caller is not authenticated") || s.tokens.Load() != 0 {
		t.Errorf("got %s, %v", answer, err)
	}
}
