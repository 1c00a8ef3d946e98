package egress

import (
	"bufio"
	"encoding/json"
	"errors"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/scripting"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// attempt is one line of testdata/ssrf.txt.
type attempt struct{ code, host, url string }

func attempts(t *testing.T, port string) []attempt {
	t.Helper()
	f, err := os.Open("testdata/ssrf.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []attempt
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line := strings.ReplaceAll(lines.Text(), "PORT", port)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Fields(line)
		if len(fields) != 3 {
			t.Fatalf("a line has %d fields: %s", len(fields), line)
		}
		if fields[1] == "-" {
			fields[1] = "api.example.com:443"
		}
		all = append(all, attempt{fields[0], fields[1], fields[2]})
	}
	if len(all) < 300 {
		t.Fatalf("only %d attempts are listed", len(all))
	}
	return all
}

// victim starts a server on 127.0.0.1 that counts connections.
func victim(t *testing.T) (port string, connected *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	connected = new(atomic.Int64)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			connected.Add(1)
			_ = c.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-ended })
	_, port, err = net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port, connected
}

func TestParseURL_hostile(t *testing.T) {
	port, connected := victim(t)
	p := New(Options{})
	defer p.Close()
	p.resolver = (&names{}).resolver(t)
	for _, a := range attempts(t, port) {
		_, err := p.Do(t.Context(), grant.HTTP{Hosts: []string{a.host}}, payload(t, a.url))
		if got := code(err); got != a.code {
			t.Errorf("%s under a grant of %s: %v, want %s", a.url, a.host, err, a.code)
		}
	}
	// The same with private networks allowed, but only one host granted.
	for _, a := range attempts(t, port) {
		g := grant.HTTP{Hosts: []string{"api.example.com:443"}, Paths: []string{"/public/*"}, PrivateNetworks: true}
		_, err := p.Do(t.Context(), g, payload(t, a.url))
		if got := code(err); got != scripting.Invalid && got != scripting.NotGranted {
			t.Errorf("%s with private networks: %v", a.url, err)
		}
	}
	if n := connected.Load(); n != 0 {
		t.Errorf("%d attempts reached the server", n)
	}
}

func TestParseURL_rawBytes(t *testing.T) {
	p := New(Options{})
	defer p.Close()
	for b := range 256 {
		if isURLByte(byte(b)) {
			continue
		}
		for _, url := range []string{"https://api.example.com/\x00x", "https://api\x00.example.com/", "https\x00://api.example.com/", "\x00https://api.example.com/", "https://api.example.com\x00@127.0.0.1/"} {
			url = strings.ReplaceAll(url, "\x00", string(rune(b)))
			_, err := p.Do(t.Context(), grant.HTTP{Hosts: []string{"api.example.com:443"}}, payload(t, url))
			if code(err) != scripting.Invalid {
				t.Errorf("%q: %v", url, err)
			}
		}
	}
}

// A granted name with a private address is refused.
func TestDo_privateName(t *testing.T) {
	port, connected := victim(t)
	n := &names{answers: map[string][][]netip.Addr{"rebind.example": {{netip.MustParseAddr("127.0.0.1")}}}}
	p := New(Options{})
	defer p.Close()
	p.resolver = n.resolver(t)
	g := grant.HTTP{Hosts: []string{"rebind.example:" + port}}
	for range 5 {
		_, err := p.Do(t.Context(), g, payload(t, "http://rebind.example:"+port+"/"))
		if code(err) != scripting.Denied {
			t.Errorf("got %v", err)
		}
	}
	if connected.Load() != 0 {
		t.Error("the server was reached")
	}
	g.PrivateNetworks = true
	_, err := p.Do(t.Context(), g, payload(t, "http://rebind.example:"+port+"/"))
	if code(err) != scripting.Unavailable || connected.Load() == 0 {
		t.Errorf("with private networks the name does not resolve: %v", err)
	}
}

func TestClassOf(t *testing.T) {
	rows := map[addressClass][]string{
		classPublic: {"1.1.1.1", "8.8.8.8", "93.184.216.34", "172.15.255.255", "172.32.0.1", "100.63.255.255", "100.128.0.1",
			"169.253.0.1", "198.17.0.1", "198.20.0.1", "223.255.255.255", "2606:4700::1111", "2a00:1450::1", "2003::1", "::ffff:8.8.8.8"},
		classPrivate: {"10.0.0.1", "127.0.0.1", "169.254.1.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1", "198.18.0.1",
			"::1", "fc00::1", "fd00::1", "fe80::1", "fe80::1%eth0", "fec0::1", "::ffff:10.0.0.1", "64:ff9b::8.8.8.8", "64:ff9b::10.0.0.1", "64:ff9b:1::8.8.8.8"},
		classMetadata: {"169.254.169.254", "169.254.170.2", "100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254",
			"::ffff:169.254.169.254", "64:ff9b::169.254.169.254", "64:ff9b:1::169.254.169.254"},
		classForbidden: {"0.0.0.0", "0.1.2.3", "192.0.0.1", "192.0.2.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "240.0.0.1", "255.255.255.255",
			"::", "::7f00:1", "::ffff:0:7f00:1", "2001::1", "2001:db8::1", "2001:20::1", "2002:7f00:1::", "ff02::1", "100::1", "4000::1", "64:ff9b::0.0.0.0", "64:ff9b:2::1"},
	}
	n := newAddressClassifier()
	for want, list := range rows {
		for _, ip := range list {
			if got := n.classOf(netip.MustParseAddr(ip)); got != want {
				t.Errorf("class of %s is %d, want %d", ip, got, want)
			}
		}
	}
}

func TestDialControl(t *testing.T) {
	rows := []struct {
		private bool
		named   string
		dialed  string
		want    bool
	}{
		{false, "", "8.8.8.8:443", true},
		{false, "", "10.0.0.1:443", false},
		{false, "10.0.0.1", "10.0.0.1:443", false},
		{true, "", "10.0.0.1:443", true},
		{true, "", "[::1]:443", true},
		{true, "", "[fe80::1%eth0]:443", true},
		{true, "", "169.254.169.254:80", false},
		{true, "10.0.0.1", "169.254.169.254:80", false},
		{true, "169.254.169.254", "169.254.169.254:80", true},
		{true, "169.254.169.254", "[::ffff:169.254.169.254]:80", true},
		{false, "169.254.169.254", "169.254.169.254:80", false},
		{true, "224.0.0.1", "224.0.0.1:80", false},
		{true, "0.0.0.0", "0.0.0.0:80", false},
		{true, "", "not an address", false},
	}
	n := newAddressClassifier()
	for _, r := range rows {
		var named netip.Addr
		if r.named != "" {
			named = netip.MustParseAddr(r.named)
		}
		err := n.dialControl(r.private, named)("tcp", r.dialed, nil)
		if (err == nil) != r.want {
			t.Errorf("private %v, named %q, dialed %s: %v", r.private, r.named, r.dialed, err)
		}
	}
}

func payload(t *testing.T, url string) []byte {
	t.Helper()
	b, err := json.Marshal(map[string]any{"url": url})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func code(err error) string {
	var h *scripting.HostError
	if errors.As(err, &h) {
		return h.Code
	}
	if err != nil {
		return "not a HostError: " + err.Error()
	}
	return "no error"
}
