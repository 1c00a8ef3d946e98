package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The span of a call belongs to the trace in _meta or in the header, and so do its
// child spans and outgoing requests. The log contains the trace id.
func TestTrace_propagatesThroughCall(t *testing.T) {
	t.Parallel()
	const trace, header = "0af7651916cd43dd8448eb211c80319c", "11111111111111111111111111111111"
	carried := make(chan string, 1)
	api := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { carried <- r.Header.Get("Traceparent") }))
	defer api.Close()
	dir := workplace(t, "server {}\n")
	tool := fmt.Sprintf("tool \"ask\" {\n  allow {\n    http \"api\" {\n      hosts = [%q]\n      private_networks = true\n    }\n  }\n"+
		"  run = \"log.warn('here'); return (await http.api.get('%s/')).status\"\n}\npolicy \"any\" {\n  tools = [\"ask\"]\n  deny   = \"agent.agent_id == 'nobody'\"\n  reason = \"no\"\n}\n", strings.TrimPrefix(api.URL, "http://"), api.URL)
	if err := os.WriteFile(filepath.Join(dir, "tools.d", "ask.hcl"), []byte(tool), 0o644); err != nil {
		t.Fatal(err)
	}
	d, err := startDaemon(buildDaemon(t), dir, append(os.Environ(), "OTEL_TRACES_EXPORTER=console", "OTEL_BSP_SCHEDULE_DELAY=10"), []string{"--state", "memory"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.kill)
	const params = `{"name":"ask","arguments":{}}`
	body := strings.Replace(string(modernBody("tools/call", params)), `"_meta":{`, `"_meta":{"traceparent":"00-`+trace+`-b7ad6b7169203331-01",`, 1)
	headers := modernHeader("tools/call", params)
	headers.Set("Traceparent", "00-"+header+"-b7ad6b7169203331-01")
	status, answer, err := d.exchange(http.MethodPost, "/mcp", []byte(body), headers)
	if err != nil || status != http.StatusOK || !strings.Contains(string(answer), `"text":"200"`) {
		t.Fatalf("%d %s, %v", status, answer, err)
	}
	if got := <-carried; !strings.HasPrefix(got, "00-"+trace+"-") {
		t.Errorf("the request carries %q", got)
	}
	for path, text := range map[string]string{"/mcp": string(modernBody("tools/call", params)), "/mcp/execute": `{"tool":"ask","arguments":{}}`} {
		if status, answer, err := d.exchange(http.MethodPost, path, []byte(text), headers); err != nil || status != http.StatusOK {
			t.Fatalf("%d %s, %v", status, answer, err)
		}
		if got := <-carried; !strings.HasPrefix(got, "00-"+header+"-") {
			t.Errorf("%s: with only a header, the request carries %q", path, got)
		}
	}
	spans, named := map[string]bool{}, regexp.MustCompile(`^\{"Name":"([^"]*)"|msg=(here) .*trace_id=`)
	for !spans["tools/call ask"] {
		line, err := d.waitFor(regexp.MustCompile(trace))
		if err != nil {
			t.Fatal(err)
		}
		if name := named.FindStringSubmatch(line); name != nil {
			spans[name[1]+name[2]] = true
		}
	}
	for _, want := range []string{"gate", "policy", "script", "http.request", "here"} {
		if !spans[want] {
			t.Errorf("no span of the trace is %s: %v", want, spans)
		}
	}
}
