package replica

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/identity"
)

const secret, other = "a secret of the fleet", "a secret of another fleet"

func keys(t testing.TB, secrets ...string) *Keys {
	t.Helper()
	k, err := NewKeys(secrets...)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func sealed(t testing.TB, k *Keys, owner string, p identity.Principal) string {
	t.Helper()
	id, ok := k.SealSessionID(owner, p)
	if !ok {
		t.Fatalf("no id for the owner %q", owner)
	}
	return id
}

func TestNewKeys_withoutSecret(t *testing.T) {
	if _, err := NewKeys("", ""); err != ErrNoSecret {
		t.Errorf("error %v, want %v", err, ErrNoSecret)
	}
}

func TestKeys_printNothing(t *testing.T) {
	k := keys(t, secret)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x"} {
		if got := fmt.Sprintf(verb, k); got != "[replica keys]" {
			t.Errorf("%s: %s", verb, got)
		}
	}
}

// get sends one request to a server with the keys, over real TLS.
func get(t *testing.T, server *Keys, client *tls.Config) error {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.Listener.Close()
	s.Listener = tls.NewListener(listener, server.ServerTLS())
	s.Start()
	defer s.Close()
	transport := &http.Transport{TLSClientConfig: client}
	defer transport.CloseIdleConnections()
	answer, err := (&http.Client{Transport: transport}).Get("https://" + listener.Addr().String())
	if err == nil {
		answer.Body.Close()
	}
	return err
}

func TestTLS(t *testing.T) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := selfSigned(private)
	if err != nil {
		t.Fatal(err)
	}
	// A stranger that shows the certificate of the fleet without its private key.
	stolen := tls.Certificate{Certificate: keys(t, secret).certificates[0].Certificate, PrivateKey: private}
	with := func(change func(c *tls.Config)) *tls.Config {
		c := keys(t, secret).ClientTLS()
		c.Certificates, c.GetClientCertificate = keys(t, secret).certificates, nil
		change(c)
		return c
	}
	for name, row := range map[string]struct {
		server *Keys
		client *tls.Config
		ok     bool
	}{
		"same secret":                {keys(t, secret), keys(t, secret).ClientTLS(), true},
		"client has rotated":         {keys(t, secret), keys(t, other, secret).ClientTLS(), true},
		"server has rotated":         {keys(t, other, secret), keys(t, secret).ClientTLS(), false},
		"both have rotated":          {keys(t, other, secret), keys(t, other, secret).ClientTLS(), true},
		"other secret at the client": {keys(t, secret), with(func(c *tls.Config) { c.Certificates = []tls.Certificate{keys(t, other).certificates[0]} }), false},
		"other secret at the server": {keys(t, other), with(func(c *tls.Config) { c.Certificates = []tls.Certificate{keys(t, other).certificates[0]} }), false},
		"no certificate":             {keys(t, secret), with(func(c *tls.Config) { c.Certificates = nil }), false},
		"certificate of a stranger":  {keys(t, secret), with(func(c *tls.Config) { c.Certificates = []tls.Certificate{stranger} }), false},
		"stolen certificate":         {keys(t, secret), with(func(c *tls.Config) { c.Certificates = []tls.Certificate{stolen} }), false},
		"old TLS": {keys(t, secret), with(func(c *tls.Config) {
			c.MinVersion, c.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
		}), false},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			if err := get(t, row.server, row.client); (err == nil) != row.ok {
				t.Errorf("error %v, want success %v", err, row.ok)
			}
		})
	}
}

func TestOpenSessionID_ownSeal(t *testing.T) {
	ann := identity.Principal{ID: "ann", Kind: "key", Agent: "a"}
	for _, owner := range []string{"x", "8f14e45fceea167a", strings.Repeat("é", MaxOwner/2)} {
		id := sealed(t, keys(t, secret), owner, ann)
		for _, r := range id {
			if r != '.' && r != '-' && r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') {
				t.Errorf("the id %q has %q", id, r)
			}
		}
		for name, k := range map[string]*Keys{"same": keys(t, secret), "rotated": keys(t, other, secret)} {
			if got, ok := k.OpenSessionID(id); !ok || got.Owner != owner || !got.BelongsTo(ann) {
				t.Errorf("%s: %v, owner %q", name, ok, got.Owner)
			}
		}
		if id == sealed(t, keys(t, secret), owner, ann) {
			t.Error("two sessions have one id")
		}
	}
}

func TestSealSessionID_ownerOfWrongLength(t *testing.T) {
	for _, owner := range []string{"", strings.Repeat("x", MaxOwner+1)} {
		if id, ok := keys(t, secret).SealSessionID(owner, identity.Anonymous()); ok {
			t.Errorf("owner of %d bytes: %q", len(owner), id)
		}
	}
}

func TestSessionID_otherPrincipal(t *testing.T) {
	ann := identity.Principal{ID: "ann", Kind: "key", Issuer: "i", Agent: "a"}
	opened, _ := keys(t, secret).OpenSessionID(sealed(t, keys(t, secret), "one", ann))
	for _, p := range []identity.Principal{
		{ID: "bob", Kind: "key", Issuer: "i", Agent: "a"}, {ID: "ann", Kind: "token", Issuer: "i", Agent: "a"}, {ID: "ann", Kind: "key", Issuer: "j", Agent: "a"},
		{ID: "ann", Kind: "key", Issuer: "i", Agent: "b"}, {ID: "ann", Kind: "key", Issuer: "i"}, {ID: "nna", Kind: "key", Issuer: "i", Agent: "a"},
		{ID: "iann", Kind: "key", Agent: "a"}, {ID: "anna", Kind: "key", Issuer: "i"}, identity.Anonymous(), {},
	} {
		if opened.BelongsTo(p) {
			t.Errorf("the session of %+v belongs to %+v", ann, p)
		}
	}
	if (SessionID{}).BelongsTo(identity.Principal{}) {
		t.Error("no session belongs to no principal")
	}
}

func TestOpenSessionID_forged(t *testing.T) {
	k := keys(t, secret)
	id := sealed(t, k, "one", identity.Anonymous())
	forged := []string{
		"", "r1", "r1.", idPrefix + strings.Repeat("A", 104), "r2." + id[3:], id[3:], id + "=", id + "A", id + "AA", id + "\n", id[:20] + "\r\n" + id[20:], " " + id, id + " ",
		rand.Text(), strings.Repeat(id, 1000), idPrefix + strings.Repeat("A", 1<<20), sealed(t, keys(t, other), "one", identity.Anonymous()), strings.ToLower(id), "R1." + id[3:],
	}
	for i := range id {
		forged = append(forged, id[:i], id[i:], id[:i]+string(id[i]^1)+id[i+1:], id[:i]+"\x00"+id[i+1:], id[:i]+id[i+1:])
	}
	for _, text := range forged {
		if got, ok := k.OpenSessionID(text); ok && text != id {
			t.Errorf("%.200q names a session of %q", text, got.Owner)
		}
	}
}

func FuzzOpenSessionID(f *testing.F) {
	k := keys(f, secret)
	f.Add(sealed(f, k, "one", identity.Anonymous()))
	f.Add("r1.AAAA")
	f.Fuzz(func(t *testing.T, id string) {
		if got, ok := k.OpenSessionID(id); ok && got.Owner != "one" {
			t.Errorf("%q names a session of %q", id, got.Owner)
		}
	})
}
