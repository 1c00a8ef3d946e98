package serve_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/extensions/postgres"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/auth/authn"
	"github.com/mcpd/mcpd/internal/auth/authn/certtest"
	"github.com/mcpd/mcpd/internal/protocol/replica"
	"github.com/mcpd/mcpd/serve"
)

const (
	fleetKey    = "a key of many random characters!"
	fleetConfig = `
state {
  url = secret.database
  key = secret.state_key
  replica { listen = "127.0.0.1:0" }
}
secret "database" { env = "DATABASE" }
secret "state_key" { env = "STATE_KEY" }
`
	fleetTools = `
tool "hello" {
  input "name" { type = string }
  run = "return 'hello ' + input.name;"
}
tool "steps" {
  run = "progress(1, 2, 'one'); progress(2, 2, 'two'); return 'done';"
}
tool "asks" {
  timeout = "5m"
  allow {
    ask { elicit = true }
  }
  run = <<JS
    const schema = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
    return "hello " + (await elicit({ message: "who?", schema })).content.name;
  JS
}
tool "waits" {
  timeout = "5m"
  run     = "await new Promise(done => setTimeout(done, 300_000));"
}
`
)

// fleetMember is a running server with a replica block.
type fleetMember struct {
	server *engine.Server
	url    string
	// internal is the address for other replicas.
	internal string
	// stop stops the server, and waits until it has stopped.
	stop func()
}

// newFleet returns servers that forward requests for legacy sessions to each other. config is added to
// their files.
func newFleet(t testing.TB, config string, hooks ...engine.Hook) (members [3]fleetMember) {
	t.Helper()
	database := shared.Database(t, os.Getenv("MCPD_NEED_POSTGRES"), "")
	for i := range members {
		members[i] = newMember(t, database, config, hooks...)
	}
	return members
}

func newMember(t testing.TB, database, config string, hooks ...engine.Hook) fleetMember {
	t.Helper()
	env := map[string]string{"DATABASE": database, "STATE_KEY": fleetKey}
	s, err := engine.New(engine.Options{
		Name: "test", Front: serve.Checks{}, Extensions: []engine.Extension{postgres.New()}, Hooks: hooks,
		Files: engine.Files{
			Tools:     fstest.MapFS{"t.hcl": {Data: []byte(fleetTools), Mode: 0o644}},
			Config:    fstest.MapFS{"mcpd.hcl": {Data: []byte(fleetConfig + config), Mode: 0o644}},
			LookupEnv: func(name string) (string, bool) { value, ok := env[name]; return value, ok },
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	at, ended := make(chan string, 1), make(chan error, 1)
	front := serve.New(s, serve.Options{Address: "127.0.0.1:0", Grace: time.Millisecond, OnListen: func(a net.Addr) { at <- a.String() }})
	go func() { ended <- front.Run(ctx) }()
	m := fleetMember{server: s, stop: func() {
		cancel()
		<-ended // calls may be cancelled
		ended <- nil
	}}
	t.Cleanup(m.stop)
	select {
	case address := <-at:
		m.url = "http://" + address
	case err := <-ended:
		ended <- err
		t.Fatal(err)
	}
	all, err := s.Inside().States().Replicas()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		if r.Self {
			m.internal = r.Info.Address
		}
	}
	if m.internal == "" {
		t.Fatalf("the replica has no address: %+v", all)
	}
	return m
}

func urlsOf(members [3]fleetMember) (urls []string) {
	for _, m := range members {
		urls = append(urls, m.url)
	}
	return urls
}

// legacyRequest is a request of a client of 2025-11-25.
type legacyRequest struct {
	method, url, session, body string
	header                     map[string]string
}

// open sends the request, and returns the response with its body open.
func (q legacyRequest) open(t testing.TB) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), q.method, q.url, strings.NewReader(q.body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Mcp-Protocol-Version", "2025-11-25")
	if q.body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if q.session != "" {
		r.Header.Set("Mcp-Session-Id", q.session)
	}
	for name, value := range q.header {
		r.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	return response
}

func (q legacyRequest) send(t testing.TB) (status int, body string) {
	t.Helper()
	response := q.open(t)
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// openSession returns the id of a new session.
func openSession(t testing.TB, url string, header map[string]string) string {
	t.Helper()
	response := legacyRequest{"POST", url + "/mcp", "", strings.Replace(initialize, `"capabilities":{}`, `"capabilities":{"elicitation":{}}`, 1), header}.open(t)
	id := response.Header.Get("Mcp-Session-Id")
	if _, err := io.Copy(io.Discard, response.Body); err != nil || response.StatusCode != 200 || id == "" {
		t.Fatalf("initialize: status %d, id %q, %v", response.StatusCode, id, err)
	}
	if status, body := (legacyRequest{"POST", url + "/mcp", id, ready, header}).send(t); status != 202 {
		t.Fatalf("initialized: %d %s", status, body)
	}
	return id
}

const callHello = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hello","arguments":{"name":"Ann"}}}`

// TestReplica_clients uses another server for each request of a client with a session.
func TestReplica_clients(t *testing.T) {
	t.Parallel()
	members := newFleet(t, "")
	for name, transport := range map[string]func(url string) mcp.Transport{
		"streamable": func(url string) mcp.Transport { return &mcp.StreamableClientTransport{Endpoint: url + "/mcp"} },
		"sse":        func(url string) mcp.Transport { return &mcp.SSEClientTransport{Endpoint: url + "/sse"} },
	} {
		t.Run(name, func(t *testing.T) {
			url := roundRobin(t, urlsOf(members))
			steps := make(chan string, 10)
			client := mcp.NewClient(&mcp.Implementation{Name: "sdk", Version: "1"}, &mcp.ClientOptions{
				ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ann"}}, nil
				},
				ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { steps <- r.Params.Message },
			})
			session, err := client.Connect(t.Context(), transport(url), &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
			if err != nil {
				t.Fatal(err)
			}
			defer session.Close()
			use := func(tool, want string) {
				t.Helper()
				params := &mcp.CallToolParams{Name: tool, Arguments: map[string]any{}}
				if tool == "hello" {
					params.Arguments = map[string]any{"name": "Ann"}
				}
				params.SetProgressToken(tool)
				result, err := session.CallTool(t.Context(), params)
				if err != nil {
					t.Fatal(err)
				}
				if text, ok := result.Content[0].(*mcp.TextContent); !ok || text.Text != want {
					t.Errorf("%s: got %+v, want %s", tool, result.Content[0], want)
				}
			}
			for range 6 {
				use("hello", "hello Ann")
				use("asks", "hello Ann")
			}
			for range 3 {
				use("steps", "done")
				if one, two := <-steps, <-steps; one != "one" || two != "two" {
					t.Errorf("progress %q, %q", one, two)
				}
			}
		})
	}
}

// events reads the events of a stream.
type events struct{ *bufio.Scanner }

func (e events) next(t testing.TB) (id, data string) {
	t.Helper()
	for e.Scan() {
		switch field, value, _ := strings.Cut(e.Text(), ": "); {
		case field == "id":
			id = value
		case field == "data":
			data = value
		case e.Text() == "" && id+data != "":
			return id, data
		}
	}
	t.Fatalf("the stream has ended: %v", e.Err())
	return "", ""
}

// message skips events without a message.
func (e events) message(t testing.TB) (id, data string) {
	t.Helper()
	for data == "" {
		id, data = e.next(t)
	}
	return id, data
}

// TestReplica_stream opens the streams of a session at another server than its own, resumes one at a
// third, and ends the session there.
func TestReplica_stream(t *testing.T) {
	t.Parallel()
	members := newFleet(t, "")
	session := openSession(t, members[0].url, nil)
	resumed := func(event string) events {
		return events{bufio.NewScanner(legacyRequest{"GET", members[2].url + "/mcp", session, "", map[string]string{"Last-Event-ID": event}}.open(t).Body)}
	}
	t.Run("call", func(t *testing.T) {
		asks := legacyRequest{"POST", members[1].url + "/mcp", session, `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"asks","arguments":{}}}`, nil}
		response := asks.open(t)
		if kind := response.Header.Get("Content-Type"); kind != "text/event-stream" {
			t.Fatalf("type %q", kind)
		}
		id, _ := events{bufio.NewScanner(response.Body)}.next(t)
		_ = response.Body.Close() // the client loses its connection
		stream := resumed(id)
		var asked struct{ ID any }
		_, data := stream.message(t)
		decode(t, []byte(data), &asked)
		answer := fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"result":{"action":"accept","content":{"name":"Ann"}}}`, asked.ID)
		if status, body := (legacyRequest{"POST", members[1].url + "/mcp", session, answer, nil}).send(t); status != 202 {
			t.Fatalf("answer: %d %s", status, body)
		}
		if _, data := stream.message(t); !strings.Contains(data, "hello Ann") {
			t.Errorf("result %s", data)
		}
	})
	t.Run("notifications", func(t *testing.T) {
		response := legacyRequest{"GET", members[1].url + "/mcp", session, "", nil}.open(t)
		if id, _ := (events{bufio.NewScanner(response.Body)}).next(t); !strings.HasPrefix(id, "g") {
			t.Errorf("first event %q", id)
		}
	})
	t.Run("end", func(t *testing.T) {
		if status, body := (legacyRequest{"DELETE", members[2].url + "/mcp", session, "", nil}).send(t); status != 204 {
			t.Fatalf("%d %s", status, body)
		}
		for i, m := range members {
			if status, body := (legacyRequest{"POST", m.url + "/mcp", session, callHello, nil}).send(t); status != 404 {
				t.Errorf("server %d: %d %s", i, status, body)
			}
		}
	})
}

// TestReplica_disconnect: a client that disconnects from another server cancels its call.
func TestReplica_disconnect(t *testing.T) {
	t.Parallel()
	hook, started, ended := running()
	members := newFleet(t, "", hook)
	session := openSession(t, members[0].url, nil)
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, "POST", members[1].url+"/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"waits"}}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{"Accept": {"application/json, text/event-stream"}, "Content-Type": {"application/json"}, "Mcp-Session-Id": {session}}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if response, err := http.DefaultClient.Do(r); err == nil {
			_ = response.Body.Close()
		}
	}()
	<-started
	cancel()
	if message := <-ended; !strings.Contains(message, "cancel") {
		t.Errorf("the call ended with %q", message)
	}
	<-gone
}

// TestReplica_sessionOfOther: every id that is not one of the caller's sessions has the same answer.
func TestReplica_sessionOfOther(t *testing.T) {
	t.Parallel()
	keys, path := validKeys(t, "ann", "bob")
	members := newFleet(t, fmt.Sprintf("auth \"api_key\" \"k\" { file = %q }\n", path))
	ann, bob := map[string]string{"X-Api-Key": keys["ann"]}, map[string]string{"X-Api-Key": keys["bob"]}
	session := openSession(t, members[0].url, ann)
	foreign, err := replica.NewKeys("the key of another fleet")
	if err != nil {
		t.Fatal(err)
	}
	stranger, _ := foreign.SealSessionID("process", identity.Principal{ID: "bob"})
	own, err := replica.NewKeys(fleetKey)
	if err != nil {
		t.Fatal(err)
	}
	gone, _ := own.SealSessionID("a process that has ended", identity.Principal{ID: "ann", Kind: "key"})
	ids := map[string]string{"unknown": "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "of another principal": session, "truncated": session[:len(session)-4], "changed": session[:8] + "AAAA" + session[12:], "of another fleet": stranger, "of an ended process": gone}
	for _, method := range []string{"POST", "GET", "DELETE"} {
		want := ""
		for _, m := range members {
			for name, id := range ids {
				q := legacyRequest{method, m.url + "/mcp", id, "", bob}
				if method == "POST" {
					q.body = callHello
				}
				status, body := q.send(t)
				if want == "" {
					want = body
				}
				if status != 404 || body != want {
					t.Errorf("%s with an id %s: %d %s, want 404 %s", method, name, status, body, want)
				}
			}
		}
	}
	if status, body := (legacyRequest{"POST", members[1].url + "/mcp", session, callHello, nil}).send(t); status != 401 {
		t.Errorf("without a credential: %d %s", status, body)
	}
	if status, body := (legacyRequest{"POST", members[1].url + "/mcp", session, callHello, ann}).send(t); status != 200 || !strings.Contains(body, "hello Ann") {
		t.Errorf("its own client: %d %s", status, body)
	}
}

// TestReplica_clientCertificate: the replica with the session verifies the client certificate that the other
// one received.
func TestReplica_clientCertificate(t *testing.T) {
	t.Parallel()
	folder, authority := t.TempDir(), certtest.New(t)
	at := func(name string) string { return filepath.ToSlash(filepath.Join(folder, name)) }
	certtest.WritePair(t, at("cert.pem"), at("key.pem"), authority.Issue(t, "127.0.0.1"))
	certtest.Write(t, at("ca.pem"), authority.Cert)
	principals := make(chan string, 100)
	members := newFleet(t, fmt.Sprintf("listen {\n  tls {\n    cert_file = %q\n    key_file = %q\n    client_ca_file = %q\n  }\n}\nauth \"mtls\" \"fleet\" {}\n", at("cert.pem"), at("key.pem"), at("ca.pem")),
		func(_ context.Context, e call.Event) {
			if e.Phase == call.Start {
				principals <- e.Principal.ID
			}
		})
	send := func(address, session, body string, config *tls.Config, header http.Header) (int, http.Header) {
		t.Helper()
		transport := &http.Transport{TLSClientConfig: config}
		defer transport.CloseIdleConnections()
		r, err := http.NewRequestWithContext(t.Context(), "POST", "https://"+address+"/mcp", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{"Accept": {"application/json, text/event-stream"}, "Content-Type": {"application/json"}}
		if session != "" {
			r.Header.Set("Mcp-Session-Id", session)
		}
		for name, values := range header {
			r.Header[name] = values
		}
		response, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, response.Body)
		return response.StatusCode, response.Header.Clone()
	}
	as := func(names ...string) *tls.Config {
		c := &tls.Config{InsecureSkipVerify: true} // the certificate has no IP address
		for _, name := range names {
			c.Certificates = append(c.Certificates, authority.Issue(t, name))
		}
		return c
	}
	hosts := [3]string{}
	for i, m := range members {
		hosts[i] = strings.TrimPrefix(m.url, "http://")
	}
	status, header := send(hosts[0], "", initialize, as("ann.fleet"), nil)
	session := header.Get("Mcp-Session-Id")
	if status != 200 || session == "" {
		t.Fatalf("initialize: %d %v", status, header)
	}
	if status, _ := send(hosts[0], session, ready, as("ann.fleet"), nil); status != 202 {
		t.Fatalf("initialized: %d", status)
	}
	for i := range hosts {
		if status, _ := send(hosts[i], session, callHello, as("ann.fleet"), nil); status != 200 {
			t.Errorf("server %d: %d", i, status)
		} else if got := <-principals; !strings.Contains(got, "ann.fleet") {
			t.Errorf("server %d: the call is by %q", i, got)
		}
		if status, _ := send(hosts[i], session, callHello, as("bob.fleet"), nil); status != 404 {
			t.Errorf("server %d, another client: %d", i, status)
		}
		if status, _ := send(hosts[i], session, callHello, as(), nil); status != 401 {
			t.Errorf("server %d, no certificate: %d", i, status)
		}
	}
	own, err := replica.NewKeys(fleetKey)
	if err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		chain  []byte
		status int
	}{"its certificate": {authority.Issue(t, "ann.fleet").Certificate[0], 200}, "one of another authority": {certtest.New(t).Issue(t, "ann.fleet").Certificate[0], 401}, "no certificate": {[]byte("x"), 400}} {
		text, err := json.Marshal(authn.Evidence{Remote: "192.0.2.1:1", Chain: [][]byte{row.chain}})
		if err != nil {
			t.Fatal(err)
		}
		if status, _ := send(members[0].internal, session, callHello, own.ClientTLS(), http.Header{replica.HeaderEvidence: {string(text)}}); status != row.status {
			t.Errorf("%s: %d, want %d", name, status, row.status)
		}
	}
}

// TestReplica_forgedEvidence: clients cannot say what only a replica may say.
func TestReplica_forgedEvidence(t *testing.T) {
	t.Parallel()
	hook, calls := sources()
	members := newFleet(t, "", hook)
	session := openSession(t, members[0].url, nil)
	for i, m := range members[:2] {
		forged := map[string]string{replica.HeaderEvidence: `{"remote":"192.0.2.1:1","peer":{"UID":0}}`}
		if status, body := (legacyRequest{"POST", m.url + "/mcp", session, callHello, forged}).send(t); status != 200 {
			t.Fatalf("server %d: %d %s", i, status, body)
		}
		if got := <-calls; got.IP != "127.0.0.1" {
			t.Errorf("server %d: the call came from %+v", i, got)
		}
	}
}

// TestReplica_internalListener tries what a machine in the network of the replicas may try.
func TestReplica_internalListener(t *testing.T) {
	t.Parallel()
	hook, calls := sources()
	members := newFleet(t, "", hook)
	session := openSession(t, members[0].url, nil)
	own, err := replica.NewKeys(fleetKey)
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := replica.NewKeys("the key of another fleet")
	if err != nil {
		t.Fatal(err)
	}
	trusting := foreign.ClientTLS()
	trusting.VerifyConnection = nil
	do := func(config *tls.Config, path string, header http.Header) (status int, err error) {
		transport := &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}
		r, err := http.NewRequestWithContext(t.Context(), "POST", "https://"+members[0].internal+path, bytes.NewReader([]byte(callHello)))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{"Accept": {"application/json, text/event-stream"}, "Content-Type": {"application/json"}, "Mcp-Session-Id": {session}}
		for name, values := range header {
			r.Header[name] = values
		}
		response, err := transport.RoundTrip(r)
		if err != nil {
			return 0, err
		}
		return response.StatusCode, response.Body.Close()
	}
	evidence := http.Header{replica.HeaderEvidence: {`{"remote":"192.0.2.1:1"}`}}
	for name, config := range map[string]*tls.Config{"no certificate": {InsecureSkipVerify: true}, "another fleet": foreign.ClientTLS(), "a certificate of another fleet": trusting} {
		if status, err := do(config, "/mcp", evidence); err == nil {
			t.Errorf("%s: status %d", name, status)
		}
	}
	if status, err := do(own.ClientTLS(), "/mcp", evidence); err != nil || status != 200 {
		t.Errorf("a replica: %d, %v", status, err)
	}
	if got := <-calls; got.IP != "192.0.2.1" {
		t.Errorf("the call came from %+v", got)
	}
	for name, header := range map[string]http.Header{
		"no evidence": {}, "repeated evidence": {replica.HeaderEvidence: {"{}", "{}"}}, "malformed evidence": {replica.HeaderEvidence: {"["}},
	} {
		if status, err := do(own.ClientTLS(), "/mcp", header); err != nil || status != 400 {
			t.Errorf("%s: %d, %v", name, status, err)
		}
	}
	for _, path := range []string{"/", "/sse", "/ws", "/mcp/execute", "/mcp/capabilities", "/metrics", "/healthz", "/oauth/x"} {
		if status, err := do(own.ClientTLS(), path, evidence); err != nil || status != 404 {
			t.Errorf("%s: %d, %v", path, status, err)
		}
	}
	// A request that names a session of another replica is not forwarded again.
	evidence["Mcp-Session-Id"] = []string{openSession(t, members[1].url, nil)}
	if status, err := do(own.ClientTLS(), "/mcp", evidence); err != nil || status != 404 {
		t.Errorf("a session of another replica: %d, %v", status, err)
	}
}

// sources returns a hook that sends the source of each call.
func sources() (engine.Hook, chan identity.Source) {
	all := make(chan identity.Source, 100)
	return func(_ context.Context, e call.Event) {
		if e.Phase == call.Start {
			all <- e.Source
		}
	}, all
}

// TestReplica_ownerStopped: clients of a server that stopped learn that they must initialize anew.
func TestReplica_ownerStopped(t *testing.T) {
	t.Parallel()
	members := newFleet(t, "")
	session := openSession(t, members[0].url, nil)
	if status, body := (legacyRequest{"POST", members[1].url + "/mcp", session, callHello, nil}).send(t); status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	members[0].stop()
	for i, m := range members[1:] {
		if status, body := (legacyRequest{"POST", m.url + "/mcp", session, callHello, nil}).send(t); status != 404 {
			t.Errorf("server %d: %d %s", i+1, status, body)
		}
	}
}

// TestReplica_withoutBlock: without the block, session ids are as before.
func TestReplica_withoutBlock(t *testing.T) {
	t.Parallel()
	database := shared.Database(t, os.Getenv("MCPD_NEED_POSTGRES"), "")
	url := newReplica(t, database, fleetTools, engine.Options{})
	if id := openSession(t, url, nil); len(id) != 26 {
		t.Errorf("id %q", id)
	}
}

// BenchmarkReplica compares a call in a session of the same server with one in a session of another.
func BenchmarkReplica(b *testing.B) {
	members := newFleet(b, "")
	session := openSession(b, members[0].url, nil)
	for i, name := range []string{"local", "forwarded"} {
		b.Run(name, func(b *testing.B) {
			q := legacyRequest{"POST", members[i].url + "/mcp", session, callHello, nil}
			for b.Loop() {
				if status, body := q.send(b); status != 200 {
					b.Fatalf("%d %s", status, body)
				}
			}
		})
	}
}
