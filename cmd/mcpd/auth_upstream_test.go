package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpd/mcpd/internal/auth/apikey"
	"github.com/mcpd/mcpd/internal/auth/authn/idptest"
)

// recordingUpstream is an upstream server that records all requests.
type recordingUpstream struct {
	*mcp.Server
	name, url string

	mu   sync.Mutex
	sent []string
	news chan struct{} // receives after each request
}

// newRecordingUpstream starts a recordingUpstream that stops with the test.
func newRecordingUpstream(t *testing.T, name string, o *mcp.StreamableHTTPOptions) *recordingUpstream {
	l := &recordingUpstream{name: name, news: make(chan struct{}, 1), Server: mcp.NewServer(&mcp.Implementation{Name: name, Version: "1"}, &mcp.ServerOptions{
		CompletionHandler: func(context.Context, *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
			return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{"friday"}}}, nil
		},
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
	})}
	l.AddTool(&mcp.Tool{Name: "echo", InputSchema: map[string]any{"type": "object"}}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "said"}}}, nil
	})
	l.AddTool(&mcp.Tool{Name: "asks", InputSchema: map[string]any{"type": "object"}}, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if r.Params.InputResponses["sure"] != nil {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "sure"}}}, nil
		}
		question := &mcp.ElicitParams{Message: "Sure?", RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{}}}
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"sure": question}}, nil
	})
	l.AddPrompt(&mcp.Prompt{Name: "plan", Arguments: []*mcp.PromptArgument{{Name: "day"}}}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: "plan"}}}}, nil
	})
	l.AddResource(&mcp.Resource{URI: name + "://note", Name: "note"}, func(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: r.Params.URI, Text: "noted"}}}, nil
	})
	s := httptest.NewServer(l.record(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return l.Server }, o)))
	t.Cleanup(s.Close)
	l.url = s.URL
	return l
}

// record records a request, headers and body, before it is handled.
func (l *recordingUpstream) record(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		l.mu.Lock()
		l.sent = append(l.sent, fmt.Sprintf("%s %s %q %s", r.Method, r.URL, r.Header, body))
		l.mu.Unlock()
		select {
		case l.news <- struct{}{}:
		default:
		}
		next.ServeHTTP(w, r)
	})
}

// count returns the number of requests of a method.
func (l *recordingUpstream) count(method string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, text := range l.sent {
		if strings.Contains(text, `"method":"`+method+`"`) {
			n++
		}
	}
	return n
}

// changeTools changes the tool list of the server and waits for mcpd to read it.
func (l *recordingUpstream) changeTools(t *testing.T) {
	t.Helper()
	before := l.count("tools/list")
	l.AddTool(&mcp.Tool{Name: "late", InputSchema: map[string]any{"type": "object"}}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{}}, nil
	})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for l.count("tools/list") == before {
		select {
		case <-l.news:
		case <-ctx.Done():
			t.Fatalf("the tools of %s were not listed again", l.name)
		}
	}
}

// block returns the upstream block of the server, with its own credential.
func (l *recordingUpstream) block() string {
	return fmt.Sprintf("upstream %q {\n  url = %q\n  pin = \"off\"\n  ask = [\"elicit\"]\n  header \"Authorization\" { value = \"Bearer ${secret.own}\" }\n}\n", l.name, l.url)
}

// credentialTransport adds the headers of a credential to all requests.
type credentialTransport struct{ http.Header }

// RoundTrip sends a request with the credential.
func (p credentialTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	maps.Copy(r.Header, p.Header)
	return http.DefaultTransport.RoundTrip(r)
}

// The credential of a client must not reach an upstream server of either protocol era:
// neither in a header nor in a URL nor in a body.
func TestCredentials_notSentToUpstreams(t *testing.T) {
	t.Parallel()
	scribes := []*recordingUpstream{newRecordingUpstream(t, "sessions", nil), newRecordingUpstream(t, "stateless", &mcp.StreamableHTTPOptions{Stateless: true})}
	signer := idptest.NewKey("k1", "ES256")
	more := "secret \"own\" {\n  env = \"MCPD_TEST_SECRET\"\n}\ncodeact {}\n"
	for _, l := range scribes {
		more += l.block()
	}
	g := serveAuthWith(t, more, signer)
	key := g.add(apikey.Record{Name: "good", Principal: "ci"})
	token := idptest.Sign(signer, map[string]any{"typ": "at+jwt"}, g.claims(map[string]any{"scope": "proof"}))
	g.until(http.StatusOK, bearer(key))
	callers := 0
	for _, header := range []http.Header{bearer(key), {"X-Api-Key": {key}}, bearer(token)} {
		header.Set("Cookie", "session=oatmeal-crumbs; proof="+key+token)
		for _, revision := range []string{"2025-11-25", "2026-07-28"} {
			g.callUpstreams(credentialTransport{header}, revision, scribes)
			callers++
		}
	}
	credentials := map[string]string{
		"the key": key[strings.LastIndex(key, "_")+1:], "the cookie": "oatmeal-crumbs", "what a client has put into _meta": "mustard-seed",
		"the claims of the token": strings.Split(token, ".")[1], "the signature of the token": token[strings.LastIndex(token, ".")+1:],
	}
	for i, revision := range []string{"2025-11-25", "2026-07-28"} {
		scribes[i].changeTools(t)
		scribes[i].checkRequests(t, revision, callers, credentials)
	}
}

// callUpstreams makes a client of a revision call everything on each server.
func (g *authServer) callUpstreams(p credentialTransport, revision string, scribes []*recordingUpstream) {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(g.t.Context(), patience)
	defer cancel()
	client := mcp.NewClient(&mcp.Implementation{Name: "t", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{}}, nil
		},
	})
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: g.url + "/mcp", HTTPClient: &http.Client{Transport: p}}, &mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		g.t.Fatal(err)
	}
	defer func() { _ = session.Close() }()
	want := func(what string, err error) {
		g.t.Helper()
		if err != nil {
			g.t.Fatalf("%s, %s: %v", revision, what, err)
		}
	}
	_, err = session.ListTools(ctx, nil)
	want("a list", err)
	for _, l := range scribes {
		meta := mcp.Meta{"example.com/token": "mustard-seed"}
		for _, tool := range []string{"echo", "asks"} {
			result, err := session.CallTool(ctx, &mcp.CallToolParams{Meta: meta, Name: l.name + "_" + tool})
			want("a call", err)
			if result.IsError {
				g.t.Errorf("%s of %s failed: %v", tool, l.name, result.Content[0])
			}
		}
		_, err := session.GetPrompt(ctx, &mcp.GetPromptParams{Meta: meta, Name: l.name + "_plan"})
		want("a prompt", err)
		_, err = session.ReadResource(ctx, &mcp.ReadResourceParams{Meta: meta, URI: l.name + "://note"})
		want("a resource", err)
		_, err = session.Complete(ctx, &mcp.CompleteParams{Meta: meta, Ref: &mcp.CompleteReference{Type: "ref/prompt", Name: l.name + "_plan"}, Argument: mcp.CompleteParamsArgument{Name: "day", Value: "f"}})
		want("a completion", err)
		want("a subscription", session.Subscribe(ctx, &mcp.SubscribeParams{Meta: meta, URI: l.name + "://note"}))
		for _, body := range []string{
			`{"tool":"` + l.name + `_echo","arguments":{}}`,
			`{"tool":"run_code","arguments":{"code":"await ` + l.name + `.echo({})"}}`,
		} {
			status, answer, err := g.exchange(http.MethodPost, "/mcp/execute", []byte(body), p.Header)
			want("a call over REST", err)
			if status != http.StatusOK {
				g.t.Errorf("%s: %d %s", body, status, answer)
			}
		}
	}
}

// checkRequests checks that the server got the requests of all callers, in its own
// revision, with the credential of the block and no credential of a caller.
func (l *recordingUpstream) checkRequests(t *testing.T, revision string, callers int, credentials map[string]string) {
	t.Helper()
	for method, each := range map[string]int{"tools/call": 4, "prompts/get": 1, "resources/read": 1, "completion/complete": 1} {
		if n := l.count(method); n < each*callers {
			t.Errorf("%s: %s was received %d times from %d callers", l.name, method, n, callers)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if all := strings.Join(l.sent, "\n"); !strings.Contains(all, `"Mcp-Protocol-Version":["`+revision+`"]`) || !strings.Contains(all, `"action":"accept"`) {
		t.Errorf("%s does not use revision %s, or got no response: %s", l.name, revision, all)
	}
	for _, text := range l.sent {
		if !strings.Contains(text, `"Authorization":["Bearer of-the-block"]`) || strings.Contains(text, `"Cookie":`) || strings.Contains(text, `"X-Api-Key":`) {
			t.Errorf("%s got a credential other than that of its block: %s", l.name, text)
		}
		for what, part := range credentials {
			if strings.Contains(text, part) {
				t.Errorf("%s was sent to %s: %s", what, l.name, text)
			}
		}
	}
}
