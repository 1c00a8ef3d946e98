package authn

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// wrapped is a connection inside another.
type wrapped struct{ net.Conn }

func (w wrapped) NetConn() net.Conn { return w.Conn }

type wrapping struct{ net.Listener }

func (w wrapping) Accept() (net.Conn, error) {
	c, err := w.Listener.Accept()
	return wrapped{c}, err
}

// socket serves a registry on a socket, and returns a client of it.
func socket(t *testing.T, r *Registry) *http.Client {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	site := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		p, err := r.Authenticate(req)
		if err != nil {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = io.WriteString(w, string(p.Kind)+" "+p.ID+" "+p.Claims["pid"].(string))
	}))
	_ = site.Listener.Close()
	site.Listener, site.Config.ConnContext = wrapping{l}, ConnContext
	site.Start()
	t.Cleanup(site.Close)
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func TestPeers_socketUser(t *testing.T) {
	uid, gid := uint32(os.Getuid()), uint32(os.Getgid())
	r := NewRegistry(RegistryOptions{})
	t.Cleanup(r.Close)
	client := socket(t, r)
	let := "local " + strconv.Itoa(os.Getuid()) + " " + strconv.Itoa(os.Getpid())
	for name, row := range map[string]struct {
		peers []PeerOptions
		want  string
	}{
		"uid":           {[]PeerOptions{{UIDs: []uint32{uid}}}, let},
		"gid":           {[]PeerOptions{{UIDs: []uint32{uid + 1}, GIDs: []uint32{gid}}}, let},
		"second method": {[]PeerOptions{{UIDs: []uint32{uid + 1}}, {UIDs: []uint32{uid}}}, let},
		"other user":    {[]PeerOptions{{UIDs: []uint32{uid + 1}, GIDs: []uint32{gid + 1}}}, ""},
		"nobody":        {[]PeerOptions{{}}, ""},
	} {
		if err := r.Apply(Options{Peers: row.peers}); err != nil {
			t.Fatal(err)
		}
		resp, err := client.Get("http://socket/")
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if diff := cmp.Diff(row.want, string(text)); diff != "" {
			t.Errorf("%s: status %d (-want +got)\n%s", name, resp.StatusCode, diff)
		}
	}
}
