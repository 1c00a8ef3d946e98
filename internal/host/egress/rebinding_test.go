package egress

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
)

// open and shut are addresses of this machine. A rebinding lab treats open as public, in place
// of a server on the internet.
const (
	open = "127.0.0.1"
	shut = "127.0.0.2"
)

// rebinding is a site at the open address, and victims at the shut one and at [::1], on one
// port.
type rebinding struct {
	*site
	names   *names
	port    string
	reached atomic.Int64
}

func newRebinding(t *testing.T, handler http.HandlerFunc) *rebinding {
	t.Helper()
	r := &rebinding{site: newSite(t, false, func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Connection", "close") // so that each request resolves the name again
		handler(w, req)
	})}
	_, port, err := net.SplitHostPort(r.host())
	if err != nil {
		t.Fatal(err)
	}
	r.port = port
	for _, address := range []string{shut, "::1"} {
		r.victim(net.JoinHostPort(address, port))
	}
	r.names = &names{answers: map[string][][]netip.Addr{}}
	r.pool.resolver = r.names.resolver(t)
	r.pool.network.ranges = append([]addressRange{{netip.PrefixFrom(netip.MustParseAddr(open), 32), classPublic}}, r.pool.network.ranges...)
	r.grant.PrivateNetworks = false
	r.grant.Hosts = []string{"rebind.example:" + port, "stays.example:" + port}
	return r
}

// victim counts connections to a forbidden address.
func (r *rebinding) victim(address string) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		r.Logf("NOBODY LISTENS at %s, so that only the answers are looked at: %v", address, err)
		return
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			r.reached.Add(1)
			_ = c.Close()
		}
	}()
	r.Cleanup(func() { _ = l.Close(); <-ended })
}

// lead sets the addresses of a name, query by query.
func (r *rebinding) lead(name string, answers ...[]string) {
	var all [][]netip.Addr
	for _, answer := range answers {
		var list []netip.Addr
		for _, a := range answer {
			list = append(list, netip.MustParseAddr(a))
		}
		all = append(all, list)
	}
	r.names.mu.Lock()
	defer r.names.mu.Unlock()
	r.names.answers[name], r.names.asked = all, nil
}

const (
	reached = ""
	denied  = "DENIED: rebind.example is in a network that the grant does not reach (private_networks)"
)

// A granted name that changes to a private address is refused: each dialed address is checked.
func TestDNSRebinding(t *testing.T) {
	r := newRebinding(t, echo)
	for name, row := range map[string]struct {
		answers [][]string
		want    []string
	}{
		"public and stays so":                    {[][]string{{open}}, []string{reached, reached}},
		"public first, then private":             {[][]string{{open}, {shut}}, []string{reached, denied, denied}},
		"private first, then public":             {[][]string{{shut}, {open}}, []string{denied, reached}},
		"there and back":                         {[][]string{{open}, {shut}, {open}, {"::1"}}, []string{reached, denied, reached, denied}},
		"an IPv6 address":                        {[][]string{{"::1"}}, []string{denied}},
		"public, then an IPv6 address":           {[][]string{{open}, {"::1"}}, []string{reached, denied}},
		"an IPv4 address within an IPv6 one":     {[][]string{{"::ffff:127.0.0.2"}, {"64:ff9b::7f00:2"}, {"2002:7f00:2::"}}, []string{denied, denied, denied}},
		"a private one behind a public one":      {[][]string{{open, shut}}, []string{reached, reached}},
		"a public one behind a private one":      {[][]string{{shut, open}}, []string{reached, reached}},
		"both kinds, the IPv6 one private":       {[][]string{{open, "::1"}}, []string{reached, reached}},
		"private of both kinds":                  {[][]string{{shut, "::1"}}, []string{denied, denied}},
		"many private ones":                      {[][]string{{shut, "10.0.0.1", "169.254.169.254", "::1", "fd00:ec2::254"}}, []string{denied}},
		"public, then many of which all are not": {[][]string{{open}, {shut, "::1", "0.0.0.0", "::"}}, []string{reached, denied}},
	} {
		t.Run(name, func(t *testing.T) {
			r.lead("rebind.example", row.answers...)
			for i, want := range row.want {
				if _, fault := r.do(fields{"url": "http://rebind.example:" + r.port + "/"}); strings.ReplaceAll(fault, ":"+r.port, "") != want {
					t.Errorf("request %d: %q, want %q", i, fault, want)
				}
			}
		})
	}
	if n := r.reached.Load(); n != 0 {
		t.Errorf("%d connections reached a private address", n)
	}
}

func TestDNSRebinding_redirect(t *testing.T) {
	const deniedAfter = "DENIED: the host of the redirect is in a network that the grant does not reach (private_networks)"
	r := newRebinding(t, redirects)
	r.grant.Redirects = 3
	there, away := "http://rebind.example:"+r.port, "http://stays.example:"+r.port
	for name, row := range map[string]struct {
		url     string
		answers [][]string
		want    string
	}{
		"to itself":                      {there + "/?to=/end", [][]string{{open}, {shut}}, deniedAfter},
		"to itself, over IPv6":           {there + "/?to=/end", [][]string{{open}, {"::1"}}, deniedAfter},
		"to itself, twice":               {there + "/?to=%2F%3Fto%3D%2Fend", [][]string{{open}, {open}, {shut}}, deniedAfter},
		"through a name that stays":      {there + "/?to=" + away + "%2F%3Fto%3D" + there + "%2Fend", [][]string{{open}, {shut}}, deniedAfter},
		"from a name that stays":         {away + "/?to=" + there + "/end", [][]string{{shut}}, deniedAfter},
		"to the metadata of the machine": {there + "/?to=/end", [][]string{{open}, {"169.254.169.254"}}, deniedAfter},
		"to a name that does not change": {there + "/?to=/end", [][]string{{open}}, reached},
	} {
		t.Run(name, func(t *testing.T) {
			r.lead("stays.example", []string{open})
			r.lead("rebind.example", row.answers...)
			if _, fault := r.do(fields{"url": row.url}); fault != row.want {
				t.Errorf("got %q, want %q", fault, row.want)
			}
		})
	}
	if n := r.reached.Load(); n != 0 {
		t.Errorf("%d connections reached a private address", n)
	}
}
