package httpguard

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/base/workqueue"
)

const mib = 1 << 20

// at returns the client with an address.
func at(address string) workqueue.Client {
	return workqueue.ClientOf(nil, netip.MustParseAddr(address), "")
}

// principal returns the authenticated holder of a key.
func principal(id string) workqueue.Client {
	return workqueue.ClientOf(&identity.Principal{Kind: identity.KindKey, ID: id}, netip.Addr{}, "")
}

// owner counts how often its hold is revoked.
type owner struct {
	hold   *Hold
	aborts int
}

func (o *owner) Abort() { o.aborts++ }

// holdOf returns a revocable hold of n bytes; nil if there is no room.
func holdOf(b *Budget, c workqueue.Client, n int) *owner {
	o := &owner{}
	o.hold = b.Hold(c, o)
	if !o.hold.Take(n) {
		return nil
	}
	return o
}

// fill takes holds of n bytes for a client until there is no room, and returns
// them.
func fill(b *Budget, c workqueue.Client, n int) (holds []*owner) {
	for o := holdOf(b, c, n); o != nil; o = holdOf(b, c, n) {
		holds = append(holds, o)
	}
	return holds
}

// pin makes holds irrevocable.
func pin(holds []*owner) {
	for _, o := range holds {
		o.hold.Pin()
	}
}

func TestBudget_oneClient(t *testing.T) {
	for name, c := range map[string]workqueue.Client{"address": at("10.0.0.1"), "principal": principal("ann")} {
		b := NewBudget(0)
		n := len(fill(b, c, 4*mib)) * 4
		if left := 256 - n; n < 64 || left < n+64 {
			t.Errorf("%s: it holds %d MiB, %d remain", name, n, left)
		}
	}
}

// TestBudget_newClient has other clients take all that they get, in irrevocable
// holds.
func TestBudget_newClient(t *testing.T) {
	for _, row := range []struct {
		name    string
		clients int
		first   int // possible size of the next client's first hold
		proved  bool
	}{
		{"one", 1, 4 * mib, false},
		{"three", 3, 4 * mib, false},
		{"eight", 8, 4 * mib, false},
		{"1000 clients", 1000, 0, false},
		{"1000 clients and a principal", 1000, 64 << 10, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := NewBudget(0)
			for i := range row.clients {
				c := workqueue.ClientOf(nil, netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), "")
				pin(fill(b, c, 4*mib))
			}
			next := at("192.168.0.1")
			if row.proved {
				next = principal("ann")
			}
			if row.first > 0 && holdOf(b, next, row.first) == nil {
				t.Errorf("no room for %d bytes beside %d", row.first, b.used)
			}
			next = principal("bob")
			for i := range 16 {
				if holdOf(b, next, 4<<10) == nil {
					t.Errorf("no room for small hold %d beside %d bytes", i, b.used)
				}
			}
		})
	}
}

// TestBudget_revokesSlowestOfLargest has clients fill the budget with revocable
// holds, one client most of it.
func TestBudget_revokesSlowestOfLargest(t *testing.T) {
	b := NewBudget(0)
	var all []*owner
	for i := range 8 {
		all = append(all, fill(b, at(fmt.Sprintf("10.0.0.%d", i)), 4*mib)...)
	}
	var largest *account
	for _, a := range b.accounts {
		if largest == nil || a.held > largest.held {
			largest = a
		}
	}
	slow := largest.holds.next
	for h := largest.holds; h != nil; h = h.next {
		h.lastProgress.Store(2)
	}
	slow.lastProgress.Store(1)
	for !slow.Lost() {
		for _, o := range all {
			if o.hold.Lost() && o.hold != slow {
				o.hold.ReleaseAll()
			}
		}
		ann := holdOf(b, principal("ann"), 4*mib)
		if ann == nil {
			t.Fatalf("no room for 4 MiB beside %d, and the slowest hold of the largest holder was not revoked", b.used)
		}
		all = append(all, ann)
	}
	if slow.Take(1) || slow.Pin() {
		t.Error("a revoked hold took more")
	}
	cuts := 0
	for _, o := range all {
		cuts += o.aborts
		o.hold.ReleaseAll()
	}
	if cuts == 0 || b.revoked != 0 || b.used != 0 {
		t.Errorf("%d holds revoked, %d bytes held, %d revoked", cuts, b.used, b.revoked)
	}
}

// TestBudget_keepsEqualHolders: a client gets no more than others hold by
// revoking.
func TestBudget_keepsEqualHolders(t *testing.T) {
	b := NewBudget(0)
	ann := fill(b, principal("ann"), mib)
	for range 10 {
		fill(b, principal("bob"), mib)
	}
	bob := b.accounts[principal("bob")].held
	if held := b.accounts[principal("ann")].held; held < bob {
		t.Errorf("ann holds %d bytes, bob %d", held, bob)
	}
	for _, o := range ann {
		if o.aborts > 1 {
			t.Errorf("a hold was revoked %d times", o.aborts)
		}
	}
}

// TestBudget_limits has clients take and release at random.
func TestBudget_limits(t *testing.T) {
	b := NewBudget(16 * mib)
	random := rand.New(rand.NewPCG(1, 2))
	var holds []*owner
	for range 100_000 {
		if len(holds) > 0 && random.IntN(3) == 0 {
			i := random.IntN(len(holds))
			if random.IntN(4) == 0 {
				holds[i].hold.Release(random.IntN(64 << 10))
				continue
			}
			holds[i].hold.ReleaseAll()
			holds[i] = holds[len(holds)-1]
			holds = holds[:len(holds)-1]
			continue
		}
		c := workqueue.ClientOf(nil, netip.AddrFrom4([4]byte{10, 0, 0, byte(random.IntN(50))}), "")
		if random.IntN(2) == 0 {
			c = principal(fmt.Sprint(random.IntN(50)))
		}
		if o := holdOf(b, c, 1+random.IntN(mib)); o != nil {
			holds = append(holds, o)
		}
		if b.used > b.size || b.revoked > b.size/8+mib || b.used < 0 || b.revoked < 0 {
			t.Fatalf("%d bytes held, %d revoked", b.used, b.revoked)
		}
	}
	for _, o := range holds {
		o.hold.ReleaseAll()
	}
	if b.used != 0 || b.revoked != 0 || len(b.accounts) != 0 {
		t.Errorf("at the end %d bytes held, %d revoked, by %d clients", b.used, b.revoked, len(b.accounts))
	}
}

func TestBudget_allocations(t *testing.T) {
	b := NewBudget(0)
	h := b.Hold(principal("ann"), nil)
	if n := testing.AllocsPerRun(100, func() {
		h.Take(100)
		h.ReleaseAll()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestClientOf(t *testing.T) {
	for _, row := range []struct {
		a, b string
		same bool
	}{
		{"10.0.0.1:1", "10.0.0.1:2", true},
		{"10.0.0.1:1", "10.0.0.2:1", false},
		{"10.0.0.1:1", "[::ffff:10.0.0.1]:1", true},
		{"[2a00::1]:1", "[2a00::ffff:1]:1", true},
		{"[2a00::1]:1", "[2a00:0:0:1::1]:1", false},
		{"[fe80::1%eth0]:1", "[fe80::2]:1", true},
		{"10.0.0.1:1", "@", false},
	} {
		nobody := identity.Anonymous()
		a, b := &http.Request{RemoteAddr: row.a}, &http.Request{RemoteAddr: row.b}
		if got := ClientOf(a, &nobody) == ClientOf(b, &nobody); got != row.same {
			t.Errorf("%s and %s are the same client: %v", row.a, row.b, got)
		}
		if row.b != "@" && clientOfConn(from(t, row.a)) != ClientOf(a, &nobody) {
			t.Errorf("%s is a different client as a connection", row.a)
		}
	}
	key, token := identity.Principal{ID: "ann", Kind: identity.KindKey}, identity.Principal{ID: "ann", Kind: identity.KindToken, Issuer: "https://a"}
	r := &http.Request{RemoteAddr: "10.0.0.1:1"}
	if ClientOf(r, &key) == ClientOf(r, &token) || ClientOf(r, &key) != ClientOf(&http.Request{RemoteAddr: "10.0.0.2:1"}, &key) {
		t.Error("a principal is not a separate client")
	}
}

// TestBodies_budget keeps one body open while others arrive: a body over the
// budget gets no room until the first is done.
func TestBodies_budget(t *testing.T) {
	h := newGate(t, Options{Bodies: 16}).Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); errors.Is(err, ErrOverBudget) {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(passed)
	}))
	send := func(address string, body io.Reader) int {
		r := httptest.NewRequest(http.MethodPost, "http://localhost/", body)
		r.RemoteAddr = address
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	body, slow := io.Pipe()
	first := make(chan int)
	go func() { first <- send("10.0.0.1:1", body) }()
	for _, piece := range []string{"1234567", "8"} { // when the second piece is read, the first has its room
		if _, err := io.WriteString(slow, piece); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		address, body string
		want          int
	}{{"10.0.0.1:2", "1234567", 503}, {"10.0.0.2:1", "1234", passed}, {"10.0.0.1:2", "1234567", 503}} {
		if got := send(step.address, strings.NewReader(step.body)); got != step.want {
			t.Errorf("%q beside another body: status %d, want %d", step.body, got, step.want)
		}
	}
	slow.Close()
	if got := <-first; got != passed {
		t.Errorf("first body: status %d", got)
	}
	if got := send("10.0.0.1:2", strings.NewReader("1234567890")); got != passed {
		t.Errorf("the room was not released: status %d", got)
	}
}

// TestBudget_returnsMemory holds 128 MiB, and later checks the memory of the
// process.
func TestBudget_returnsMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(0)
		var holds []*Hold
		var flood [][]byte
		for i := range 32 {
			h := b.Hold(principal(fmt.Sprint(i)), nil)
			if !h.Take(4 * mib) {
				t.Fatal("there is no room")
			}
			holds, flood = append(holds, h), append(flood, bytes.Repeat([]byte("x"), 4*mib))
		}
		runtime.KeepAlive(flood)
		for _, h := range holds {
			h.ReleaseAll()
		}
		holds, flood = nil, nil
		time.Sleep(2 * trimDelay)
		synctest.Wait()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		if stored := m.HeapIdle - m.HeapReleased; stored > 32*mib || m.HeapInuse > 64*mib {
			t.Errorf("%d MiB retained, %d in use", stored/mib, m.HeapInuse/mib)
		}
	})
}
