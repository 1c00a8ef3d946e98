package workqueue_test

import (
	"context"
	"errors"
	"hash/maphash"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/base/workqueue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestQueue_orderPerKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type job struct{ key, number int }
		var mu sync.Mutex
		ran := map[int][]int{}
		q := workqueue.New(3, 8, func(j job) {
			mu.Lock()
			defer mu.Unlock()
			ran[j.key] = append(ran[j.key], j.number)
		})
		const keys, each = 10, 100
		for number := range each {
			for key := range keys {
				q.Add(uint64(key), 1, job{key, number})
			}
		}
		synctest.Wait()
		for key := range keys {
			if len(ran[key]) != each || !slices.IsSorted(ran[key]) {
				t.Errorf("key %d ran %v", key, ran[key])
			}
		}
	})
}

func TestQueue_blockedKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var mu sync.Mutex
		ran := 0
		q := workqueue.New(2, 1000, func(job int) {
			if job == 0 {
				<-release
			}
			mu.Lock()
			defer mu.Unlock()
			ran++
		})
		q.Add(0, 1, 0)
		q.Add(0, 1, 1)
		for job := 1; job <= 100; job++ {
			q.Add(uint64(job), 1, job)
		}
		synctest.Wait()
		if ran != 100 {
			t.Errorf("%d other jobs ran, want 100", ran)
		}
		close(release)
		synctest.Wait()
		if ran != 102 {
			t.Errorf("%d jobs ran, want 102", ran)
		}
	})
}

func TestQueue_width(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var mu sync.Mutex
		begun := 0
		q := workqueue.New(3, 1000, func(int) {
			mu.Lock()
			begun++
			mu.Unlock()
			<-release
		})
		for job := range 100 {
			q.Add(uint64(job), 1, job)
		}
		synctest.Wait()
		if begun != 3 {
			t.Errorf("%d jobs run at once, want 3", begun)
		}
		close(release)
		synctest.Wait()
		if begun != 100 {
			t.Errorf("%d jobs ran, want 100", begun)
		}
	})
}

func TestQueue_backpressure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		step := make(chan struct{})
		var admitted, ran []int
		q := workqueue.New(1, 2, func(job int) {
			<-step
			ran = append(ran, job)
		})
		for job := range 2 {
			if q.Add(uint64(job), 1, job) {
				t.Errorf("job %d waited despite free capacity", job)
			}
		}
		for job := 2; job < 5; job++ {
			go func() {
				if !q.Add(uint64(job), 1, job) {
					t.Errorf("job %d did not wait without capacity", job)
				}
				admitted = append(admitted, job)
			}()
			synctest.Wait()
		}
		for n := range 3 {
			if len(admitted) != n {
				t.Errorf("%d admitted after %d jobs", len(admitted), n)
			}
			step <- struct{}{}
			synctest.Wait()
		}
		close(step)
		synctest.Wait()
		if want := []int{2, 3, 4}; !slices.Equal(admitted, want) {
			t.Errorf("admitted %v, want %v", admitted, want)
		}
		if want := []int{0, 1, 2, 3, 4}; !slices.Equal(ran, want) {
			t.Errorf("ran %v, want %v", ran, want)
		}
	})
}

func TestQueue_congestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		step := make(chan struct{})
		q := workqueue.New(1, 4, func(int) { <-step })
		fill := func(jobs int) {
			for range jobs {
				q.Add(0, 1, 0)
			}
		}
		want := func(when string, crowded bool, number uint64) {
			t.Helper()
			synctest.Wait()
			begun, n := q.Crowding()
			got := false
			select {
			case <-begun:
				got = true
			default:
			}
			if got != crowded || n != number {
				t.Errorf("%s: congested %v, number %d, want %v, %d", when, got, n, crowded, number)
			}
		}
		fill(4)
		want("a full queue without waiters", false, 1)
		go fill(1)
		want("a full queue with a waiter", true, 1)
		step <- struct{}{}
		want("full again", true, 1)
		step <- struct{}{}
		want("three of four", true, 1)
		step <- struct{}{}
		want("half empty", false, 2)
		fill(2)
		go fill(1)
		want("the next time", true, 2)
		close(step)
		want("empty", false, 3)
	})
}

// take takes up to limit slots for an owner.
func take(s *workqueue.Shares, owner uint64, limit, want int) (got int) {
	for got < want && s.Begin(owner, limit) {
		got++
	}
	return got
}

func TestShares_reserve(t *testing.T) {
	var s workqueue.Shares
	if got := take(&s, 1, 1024, 2000); got != 896 {
		t.Errorf("first owner has %d slots, want seven eighths", got)
	}
	if got := take(&s, 2, 1024, 100); got != 100 {
		t.Errorf("second owner has %d slots, want all requested", got)
	}
	if got := take(&s, 1, 1024, 1); got != 0 {
		t.Error("first owner got a reserved slot")
	}
	if got := take(&s, 3, 1024, 2000); got != 28 {
		t.Errorf("third owner has %d slots, want the remaining ones", got)
	}
	if s.Begin(4, 1024) {
		t.Error("more slots than the limit")
	}
	for range 896 {
		s.End(1)
	}
	if got := take(&s, 4, 1024, 2000); got != 1024-128-128 {
		t.Errorf("next owner has %d slots", got)
	}
}

// With fewer than eight slots there is no reserve.
func TestShares_smallQueue(t *testing.T) {
	for limit := 1; limit < 8; limit++ {
		var s workqueue.Shares
		if got := take(&s, 1, limit, 100); got != limit {
			t.Errorf("of %d slots one owner has %d", limit, got)
		}
	}
}

// Nested calls count against their owner, and cannot take the reserve of others.
func TestShares_joined(t *testing.T) {
	var s workqueue.Shares
	if got := take(&s, 1, 1024, 16); got != 16 {
		t.Fatalf("first owner has %d slots", got)
	}
	for range 16 * 63 {
		s.Join(1)
	}
	if s.Begin(1, 1024) {
		t.Error("an owner with all slots joined started another call")
	}
	if got := take(&s, 2, 1024, 100); got != 100 {
		t.Errorf("second owner has %d slots beside nested calls of the first", got)
	}
	for range 16 * 63 {
		s.Leave(1)
	}
	if !s.Begin(1, 1024) {
		t.Error("no slot after the nested calls have ended")
	}
}

func TestShares_concurrentUse(t *testing.T) {
	var s workqueue.Shares
	var all sync.WaitGroup
	for owner := range uint64(8) {
		all.Go(func() {
			for range 1000 {
				if s.Begin(owner, 16) {
					s.End(owner)
				}
			}
		})
	}
	all.Wait()
	if got := take(&s, 1, 16, 100); got != 14 {
		t.Errorf("%d of 14 slots remain", got)
	}
}

func TestDrain(t *testing.T) {
	var c workqueue.Calls
	if c.Begin() != 1 || c.Begin() != 2 {
		t.Fatal("wrong count")
	}
	if !c.StartDrain() || c.StartDrain() || !c.Draining() {
		t.Error("draining starts once")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Drain(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("drain with running calls: %v", err)
	}
	drained := make(chan error)
	go func() { drained <- c.Drain(context.Background()) }()
	c.End()
	c.End()
	if err := <-drained; err != nil || c.Running() != 0 {
		t.Errorf("drained with %v, %d running", err, c.Running())
	}
}

func TestClientOf_same(t *testing.T) {
	anonymous := identity.Anonymous()
	key := &identity.Principal{Kind: identity.KindKey, ID: "ann"}
	token := &identity.Principal{Kind: identity.KindToken, Issuer: "https://a", ID: "ann"}
	other := &identity.Principal{Kind: identity.KindToken, Issuer: "https://b", ID: "ann"}
	seed := maphash.MakeSeed()
	of := func(p *identity.Principal, address, listener string) workqueue.Client {
		ip, _ := netip.ParseAddr(address)
		return workqueue.ClientOf(p, ip, listener)
	}
	for name, row := range map[string]struct {
		a, b workqueue.Client
		same bool
	}{
		"one address":              {of(nil, "10.0.0.1", "x"), of(&anonymous, "10.0.0.1", "y"), true},
		"mapped to IPv6":           {of(nil, "10.0.0.1", ""), of(nil, "::ffff:10.0.0.1", ""), true},
		"two addresses":            {of(nil, "10.0.0.1", ""), of(nil, "10.0.0.2", ""), false},
		"one network":              {of(nil, "2a00::1", ""), of(nil, "2a00::ffff:1%eth0", ""), true},
		"two networks":             {of(nil, "2a00::1", ""), of(nil, "2a00:0:0:1::1", ""), false},
		"one listener":             {of(nil, "", "stdio"), of(&anonymous, "?", "stdio"), true},
		"two listeners":            {of(nil, "", "stdio"), of(nil, "", "local"), false},
		"a principal anywhere":     {of(key, "10.0.0.1", "x"), of(key, "10.0.0.2", "y"), true},
		"a principal of two kinds": {of(key, "", ""), of(token, "", ""), false},
		"one id of two issuers":    {of(token, "", ""), of(other, "", ""), false},
		"a principal without id":   {of(&identity.Principal{Kind: identity.KindKey}, "10.0.0.1", ""), of(nil, "10.0.0.1", ""), true},
	} {
		if (row.a == row.b) != row.same || (row.a.Number(seed) == row.b.Number(seed)) != row.same {
			t.Errorf("%s: same client %v, want %v", name, row.a == row.b, row.same)
		}
	}
	if !of(key, "", "").Proved() || of(&anonymous, "10.0.0.1", "").Proved() || (workqueue.Client{}).Proved() {
		t.Error("the zero client is authenticated")
	}
}

func TestClient_Number_allocatesNothing(t *testing.T) {
	seed, ip := maphash.MakeSeed(), netip.MustParseAddr("2a00::1")
	anonymous := identity.Anonymous()
	if n := testing.AllocsPerRun(100, func() { workqueue.ClientOf(&anonymous, ip, "http").Number(seed) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
