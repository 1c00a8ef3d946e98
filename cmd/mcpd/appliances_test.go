package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/internal/ops/bundle"
	"github.com/mcpd/mcpd/internal/process/osproc"
	"github.com/mcpd/mcpd/scripting"
)

// appliance is a server of bundles without its own process: a real engine and a real follower.
type appliance struct {
	files    bundle.Files
	server   *engine.Server
	follower *bundle.Follower
	all      *appliances
}

// appliances is many appliances and the web server that hands out one file to all of them.
type appliances struct {
	release release
	list    []*appliance
	loads   chan struct{} // bounds how many load at once: they share one machine
	loaded  atomic.Int64  // activations

	mu      sync.Mutex
	data    []byte
	tag     string
	judged  map[string]bool // appliances that asked again after they got the file
	left    int             // activations or judgements until done is closed
	done    chan struct{}
	served  int64 // bytes
	request int64
}

// ServeHTTP answers like a static file server. Each appliance has its own path, so that the test
// knows which of them has seen the file.
func (all *appliances) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	all.mu.Lock()
	data, tag := all.data, all.tag
	all.request++
	if r.Header.Get("If-None-Match") == tag {
		if !all.judged[r.URL.Path] && all.judged != nil {
			all.judged[r.URL.Path] = true
			all.countDown()
		}
	} else {
		all.served += int64(len(data))
	}
	all.mu.Unlock()
	w.Header().Set("ETag", tag)
	http.ServeContent(w, r, "shop.bundle", time.Time{}, bytes.NewReader(data))
}

// countDown is called with mu held.
func (all *appliances) countDown() {
	if all.left--; all.left == 0 {
		close(all.done)
	}
}

// offer replaces the file. The channel is closed when all appliances have activated it; or, for a
// bad file, when all have refused it and asked again.
func (all *appliances) offer(data []byte, bad bool) <-chan struct{} {
	all.mu.Lock()
	defer all.mu.Unlock()
	sum := sha256.Sum256(data)
	all.data, all.tag, all.left, all.done, all.judged = data, fmt.Sprintf(`"%x"`, sum[:8]), len(all.list), make(chan struct{}), nil
	if bad {
		all.judged = map[string]bool{}
	}
	return all.done
}

// activate is what a server of bundles does (see runningServer.activate).
func (a *appliance) activate(ctx context.Context, files fs.FS) error {
	a.all.loads <- struct{}{}
	defer func() { <-a.all.loads }()
	before := a.files.Use(files)
	if _, err := a.server.Reload(ctx, engine.Change{All: true}); err != nil {
		a.files.Use(before)
		_, _ = a.server.Reload(ctx, engine.Change{All: true})
		return err
	}
	a.all.loaded.Add(1)
	a.all.mu.Lock()
	defer a.all.mu.Unlock()
	a.all.countDown()
	return nil
}

// serial returns the serial number that a tool of the appliance returns.
func (a *appliance) serial(ctx context.Context) (int, error) {
	result, err := a.server.Call(ctx, "tool_7", map[string]string{"name": "Ada"})
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.Trim(string(result.Value), `"`))
}

// twentyTools returns a bundle with 20 tools and a test of each.
func (all *appliances) twentyTools(t *testing.T, about bundle.Manifest) []byte {
	t.Helper()
	files := fstest.MapFS{"mcpd.hcl": {Data: []byte("server { name = \"shop\" }\n")}}
	for i := range 20 {
		text := fmt.Sprintf(`tool "tool_%[1]d" {
  description = "Returns the serial number of its bundle."
  read_only   = true
  timeout     = "1m"
  input "name" {
    type       = string
    max_length = 20
  }
  run = <<JS
    const words = input.name.split(" ").map((w) => w.toUpperCase());
    return words.length > 0 ? "%[2]d" : "";
  JS
}

test "tool_%[1]d returns %[2]d" {
  tool  = "tool_%[1]d"
  input = { name = "Ada Lovelace" }
  expect { text = "%[2]d" }
}
`, i, about.Serial)
		files[fmt.Sprintf("tools.d/tool_%02d.hcl", i)] = &fstest.MapFile{Data: []byte(text)}
	}
	about.Name = "shop"
	if about.Created.IsZero() {
		about.Created = time.Now()
	}
	data, err := bundle.Pack(files, about)
	if err != nil {
		t.Fatal(err)
	}
	if data, err = bundle.Sign(data, all.release.private); err != nil {
		t.Fatal(err)
	}
	return data
}

// newAppliance returns an appliance that asks a site every poll.
func (all *appliances) newAppliance(t *testing.T, site string, dir string, poll time.Duration) *appliance {
	t.Helper()
	a := &appliance{all: all}
	o := engine.Options{Name: "mcpd", Scripts: engine.Scripts{Executor: scripting.Inline()}}
	if err := setBundle(&o, &a.files); err != nil {
		t.Fatal(err)
	}
	var err error
	if a.server, err = engine.New(o); err != nil {
		t.Fatal(err)
	}
	a.follower, err = bundle.New(bundle.Options{
		Source: site, Trust: func() ([]byte, error) { return all.release.public, nil }, Dir: dir, Poll: poll, Wait: time.Second,
		Version: "1.0.0", Now: time.Now, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// badForms returns files that no appliance may activate: tampered, truncated, wrongly signed,
// expired and replayed bundles.
func (all *appliances) badForms(t *testing.T, replayed []byte) map[string][]byte {
	t.Helper()
	good := all.twentyTools(t, bundle.Manifest{Serial: 3, Expires: time.Now().Add(time.Hour)})
	forms := map[string][]byte{"replayed": replayed}
	for i := range 20 {
		at := len(good) * i / 20
		tampered := bytes.Clone(good)
		tampered[at] ^= 1
		forms[fmt.Sprintf("tampered at byte %d", at)] = tampered
		forms[fmt.Sprintf("truncated to %d bytes", at)] = good[:at]
	}
	another := newRelease(t)
	theirs := &appliances{release: another}
	for i := range 5 {
		serial := int64(3 + i)
		forms[fmt.Sprintf("signed by a stranger, serial %d", serial)] = theirs.twentyTools(t, bundle.Manifest{Serial: serial})
		forms[fmt.Sprintf("expired, serial %d", serial)] = all.twentyTools(t, bundle.Manifest{Serial: serial, Created: time.Now().Add(-time.Hour), Expires: time.Now().Add(-time.Minute)})
	}
	forms["same serial with other content"] = all.twentyTools(t, bundle.Manifest{Serial: 2, MinVersion: "0.1.0"})
	return forms
}

// TestBundle_appliances moves 20 appliances to a new bundle, or 1,000 with MCPD_LONG, and offers all of
// them bundles that they must refuse while they serve.
func TestBundle_appliances(t *testing.T) {
	n, poll := 20, 20*time.Millisecond
	switch {
	case os.Getenv("MCPD_LONG") != "":
		n, poll = 1000, time.Second
	case testing.Short():
		n = 5
	}
	all := &appliances{release: newRelease(t), loads: make(chan struct{}, runtime.GOMAXPROCS(0))}
	site := httptest.NewServer(all)
	t.Cleanup(site.Close)
	dir := t.TempDir()
	all.list = make([]*appliance, n)
	first := all.twentyTools(t, bundle.Manifest{Serial: 1})
	empty := heap()
	clock := startClock()
	done := all.offer(first, false)
	var starts sync.WaitGroup
	turns := make(chan struct{}, 8)
	for i := range all.list {
		all.list[i] = all.newAppliance(t, fmt.Sprintf("%s/%d/shop.bundle", site.URL, i), filepath.Join(dir, strconv.Itoa(i)), poll)
		turns <- struct{}{}
		starts.Go(func() {
			defer func() { <-turns }()
			if err := all.list[i].follower.Start(t.Context(), all.list[i].activate); err != nil {
				t.Error(err)
			}
		})
	}
	starts.Wait()
	t.Cleanup(func() {
		for _, a := range all.list {
			if err := a.server.Close(context.Background()); err != nil {
				t.Error(err)
			}
		}
	})
	if t.Failed() {
		return
	}
	<-done
	t.Logf("start of %d appliances with a bundle of %d bytes: %s; %d KiB of heap each", n, len(first), clock, (heap()-empty)/int64(n)>>10)

	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	for _, a := range all.list {
		running.Go(func() { a.follower.Run(ctx, a.activate) })
	}
	two := all.twentyTools(t, bundle.Manifest{Serial: 2})
	all.mu.Lock()
	served, requests := all.served, all.request
	all.mu.Unlock()
	clock = startClock()
	all.wait(t, "the new bundle", all.offer(two, false))
	all.mu.Lock()
	t.Logf("all %d serve the new bundle: %s, with a check each %s; %d requests, %d KiB sent", n, clock, poll, all.request-requests, (all.served-served)>>10)
	all.mu.Unlock()
	t.Logf("%d KiB of heap each", (heap()-empty)/int64(n)>>10)
	all.requireSerial(t, 2)

	stopClients := all.callOften(t, 2)
	before, forms := all.loaded.Load(), all.badForms(t, first)
	if len(forms) < 50 {
		t.Fatalf("only %d forms", len(forms))
	}
	clock = startClock()
	for name, data := range forms {
		all.wait(t, name, all.offer(data, true))
	}
	t.Logf("%d forms of bad bundles at %d appliances: %s; %d calls meanwhile", len(forms), n, clock, stopClients())
	if now := all.loaded.Load(); now != before {
		t.Errorf("%d activations of bad bundles", now-before)
	}
	all.requireSerial(t, 2)
	for i, a := range all.list {
		if s := a.follower.Status(); s.Serial != 2 || s.Code == "" {
			t.Errorf("appliance %d: %+v", i, s)
		}
	}
	all.wait(t, "a good bundle after bad ones", all.offer(all.twentyTools(t, bundle.Manifest{Serial: 9}), false))
	stop()
}

// callOften calls appliances at random until stop is called, which returns the number of calls.
func (all *appliances) callOften(t *testing.T, want int) (stop func() int) {
	ctx, cancel := context.WithCancel(t.Context())
	ended, calls := make(chan struct{}), 0
	go func() {
		defer close(ended)
		pace := time.NewTicker(2 * time.Millisecond)
		defer pace.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-pace.C:
			}
			if serial, err := all.list[rand.N(len(all.list))].serial(context.Background()); err != nil || serial != want {
				t.Errorf("a call during bad bundles: serial %d, %v", serial, err)
				return
			}
			calls++
		}
	}()
	stop = func() int {
		cancel()
		<-ended
		return calls
	}
	t.Cleanup(func() { stop() })
	return stop
}

// wait waits until all appliances have seen a file.
func (all *appliances) wait(t *testing.T, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(10 * patience):
		t.Fatalf("%s: some appliances have not seen it", what)
	}
}

func (all *appliances) requireSerial(t *testing.T, want int) {
	t.Helper()
	for i, a := range all.list {
		if serial, err := a.serial(t.Context()); err != nil || serial != want {
			t.Errorf("appliance %d serves %d, %v", i, serial, err)
		}
	}
}

// heap returns the bytes of live objects.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// clock measures time and processor time.
type clock struct {
	at  time.Time
	cpu time.Duration
}

func startClock() clock { return clock{time.Now(), osproc.CPUTime()} }

func (c clock) String() string {
	return fmt.Sprintf("%s, %s of processor time", time.Since(c.at).Round(time.Millisecond), (osproc.CPUTime() - c.cpu).Round(time.Millisecond))
}
