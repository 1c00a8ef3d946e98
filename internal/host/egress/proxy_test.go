package egress

import (
	"io"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/internal/language/grant"
)

// proxied is the variable that marks a process with proxies in its environment.
const proxied = "MCPD_TEST_PROXIED"

// No request goes to a proxy of the environment: the proxy would dial without our checks.
// net/http reads the variables once per process and uses no proxy for localhost, so a child
// process requests a name.
func TestDo_ignoresProxyEnvironment(t *testing.T) {
	if os.Getenv(proxied) != "" {
		askPastProxies(t)
		return
	}
	port, connected := victim(t)
	again := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	again.Env = append(os.Environ(), proxied+"=1", "NO_PROXY=", "no_proxy=", "REQUEST_METHOD=")
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
		at := name + "=http://127.0.0.1:" + port
		again.Env = append(again.Env, at, strings.ToLower(name)+at[len(name):])
	}
	out, err := again.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("%v\n%s", err, out)
	}
	if n := connected.Load(); n != 0 {
		t.Errorf("%d connections were made to the proxy", n)
	}
}

// askPastProxies sends requests to a granted name, as scripts and as the server for tokens.
func askPastProxies(t *testing.T) {
	for _, secure := range []bool{false, true} {
		s := newSite(t, secure, echo)
		s.pool.resolver = (&names{answers: map[string][][]netip.Addr{"api.example.com": {{netip.MustParseAddr("127.0.0.1")}}}}).resolver(t)
		_, port, _ := strings.Cut(s.host(), ":")
		s.grant.Hosts = []string{"api.example.com:" + port}
		url := strings.Replace(s.URL, "127.0.0.1", "api.example.com", 1) + "/"
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if proxy, err := http.ProxyFromEnvironment(request); proxy == nil || err != nil {
			t.Fatalf("the environment has no proxy for %s: %v", url, err)
		}
		if got, fault := s.do(fields{"url": url}); fault != "" || got["status"] != 418.0 {
			t.Errorf("a script is answered %v %s", got, fault)
		}
		answer, err := s.pool.Transport(s.grant).RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, answer.Body); err != nil || answer.StatusCode != http.StatusTeapot {
			t.Errorf("the server's own request gets %s, %v", answer.Status, err)
		}
	}
}

func TestNewClient_noProxy(t *testing.T) {
	p := New(Options{})
	defer p.Close()
	for _, g := range []grant.HTTP{{}, {PrivateNetworks: true, Redirects: 1}} {
		c, release, _ := p.lease(g)
		release()
		if c.transport.Proxy != nil || c.transport.OnProxyConnectResponse != nil || c.transport.GetProxyConnectHeader != nil {
			t.Errorf("%+v has a proxy", g)
		}
	}
}
