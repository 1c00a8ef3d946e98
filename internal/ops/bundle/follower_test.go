package bundle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// bundles returns the names of the stored bundles.
func bundles(t *testing.T, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*"+extension))
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range found {
		found[i] = filepath.Base(name)
	}
	return found
}

func TestFollower_keepsTwoBundlesAndStartsOffline(t *testing.T) {
	key, public := newKey(t)
	dir, web, engine := t.TempDir(), newSite(t), &server{}
	source := web.URL + "/shop.bundle?token=secret"
	web.offer(pack(t, Manifest{Serial: 1}, project("one"), key))
	f := follow(t, source, dir, public, nil)
	if err := f.Start(t.Context(), engine.activate); err != nil {
		t.Fatal(err)
	}
	for serial, text := range map[int64]string{2: "two"} {
		web.offer(pack(t, Manifest{Serial: serial}, project(text), key))
		if _, err := f.take(t.Context(), engine.activate); err != nil {
			t.Fatal(err)
		}
	}
	web.offer(pack(t, Manifest{Serial: 9, Expires: today.Add(time.Hour)}, project("nine"), key))
	if _, err := f.take(t.Context(), engine.activate); err != nil {
		t.Fatal(err)
	}
	if got := bundles(t, dir); !slices.Equal(got, []string{"2.bundle", "9.bundle"}) {
		t.Errorf("stored %v", got)
	}
	if _, err := f.take(t.Context(), engine.activate); err != nil || engine.activations != 3 {
		t.Errorf("an unchanged bundle: %v, %d activations", err, engine.activations)
	}
	last := web.requests[len(web.requests)-1]
	if last.Header.Get("If-None-Match") == "" || last.Header.Get("Prefer") != "wait=1" {
		t.Errorf("the request has the headers %v", last.Header)
	}
	web.Close()
	if _, err := f.take(t.Context(), engine.activate); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("without the site: %v", err)
	}

	// the source keeps its tag over a restart, and an expired bundle keeps serving
	engine = &server{}
	f = follow(t, source, dir, public, nil)
	f.options.Now = func() time.Time { return today.Add(48 * time.Hour) }
	if err := f.Start(t.Context(), engine.activate); err != nil || engine.text != "# nine\n" {
		t.Fatalf("started with %q, %v", engine.text, err)
	}
	if f.tag() == "" {
		t.Error("the tag is forgotten")
	}
	if s := f.Status(); !strings.Contains(s.Problem, "expired") || strings.Contains(s.Source, "secret") {
		t.Errorf("status is %+v", s)
	}
}

// TestFollower_check asks a follower for checks that would look only after an hour, or whose server holds
// each request that allows it.
func TestFollower_check(t *testing.T) {
	key, public := newKey(t)
	for name, poll := range map[string]time.Duration{"poll": time.Hour, "held": time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			web, engine := newSite(t), &server{}
			holding := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Prefer") != "" && poll < time.Second {
					<-r.Context().Done()
					return
				}
				web.ServeHTTP(w, r)
			}))
			t.Cleanup(holding.Close)
			f := follow(t, holding.URL, t.TempDir(), public, nil)
			f.options.Poll, f.source.client = poll, NewClient(time.Hour)
			web.offer(pack(t, Manifest{Serial: 2}, project("two"), key))
			if err := f.Start(t.Context(), engine.activate); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			var running sync.WaitGroup
			running.Go(func() { f.Run(ctx, engine.activate) })
			for _, row := range []struct {
				offered, active int64
				problem         string
			}{{2, 2, ""}, {3, 3, ""}, {1, 3, "lower than 3"}, {4, 4, ""}} {
				web.offer(pack(t, Manifest{Serial: row.offered}, project("two"), key))
				var all sync.WaitGroup
				for range 8 {
					all.Go(func() { <-f.Check() })
				}
				all.Wait()
				if s := f.Status(); s.Serial != row.active || !strings.Contains(s.Problem, row.problem) || row.problem == "" && s.Problem != "" {
					t.Errorf("bundle %d: serial %d is active, problem %q", row.offered, s.Serial, s.Problem)
				}
			}
			cancel()
			running.Wait()
		})
	}
}

func TestFollower_floorSurvivesDeletedBundles(t *testing.T) {
	key, public := newKey(t)
	dir, web, engine := t.TempDir(), newSite(t), &server{}
	seven := pack(t, Manifest{Serial: 7}, project("seven"), key)
	web.offer(seven)
	if err := follow(t, web.URL, dir, public, nil).Start(t.Context(), engine.activate); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "7.bundle")); err != nil {
		t.Fatal(err)
	}
	web.offer(pack(t, Manifest{Serial: 6}, project("six"), key))
	if err := follow(t, web.URL, dir, public, nil).Start(t.Context(), engine.activate); err == nil || !strings.Contains(err.Error(), "lower than 7") {
		t.Errorf("bundle 6 after 7: %v", err)
	}
	web.offer(seven)
	if err := follow(t, web.URL, dir, public, nil).Start(t.Context(), engine.activate); err != nil || engine.activations != 2 {
		t.Errorf("bundle 7 again: %v", err)
	}
}

func TestFollower_servesPredecessorOfDamagedBundle(t *testing.T) {
	key, public := newKey(t)
	dir, web, engine := t.TempDir(), newSite(t), &server{}
	f := follow(t, web.URL, dir, public, nil)
	web.offer(pack(t, Manifest{Serial: 1}, project("one"), key))
	if err := f.Start(t.Context(), engine.activate); err != nil {
		t.Fatal(err)
	}
	web.offer(pack(t, Manifest{Serial: 2}, project("two"), key))
	if _, err := f.take(t.Context(), engine.activate); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(dir, "2.bundle"), 3000); err != nil {
		t.Fatal(err)
	}
	f = follow(t, web.URL, dir, public, nil)
	if err := f.Start(t.Context(), engine.activate); err != nil || engine.text != "# one\n" {
		t.Fatalf("started with %q, %v", engine.text, err)
	}
	if s := f.Status(); s.Serial != 1 || s.Problem == "" {
		t.Errorf("status is %+v", s)
	}
	web.offer(pack(t, Manifest{Serial: 2}, project("other"), key))
	if _, err := f.take(t.Context(), engine.activate); err == nil {
		t.Error("other files with the serial of the damaged bundle are accepted")
	}
	web.offer(pack(t, Manifest{Serial: 2}, project("two"), key))
	if _, err := f.take(t.Context(), engine.activate); err != nil || engine.text != "# two\n" {
		t.Errorf("the bundle is not repaired: %v", err)
	}
}

func TestFollower_trustFileChanges(t *testing.T) {
	oldKey, oldPublic := newKey(t)
	replacement, newPublic := newKey(t)
	dir, web, engine := t.TempDir(), newSite(t), &server{}
	bundle := pack(t, Manifest{Serial: 1}, project("one"), oldKey)
	web.offer(bundle)
	trust := oldPublic
	f := follow(t, web.URL, dir, oldPublic, nil)
	f.options.Trust = func() ([]byte, error) { return trust, nil }
	if err := f.Start(t.Context(), engine.activate); err != nil {
		t.Fatal(err)
	}
	trust = newPublic
	if _, err := f.take(t.Context(), engine.activate); err == nil {
		t.Error("an active bundle that is no longer trusted is not reported")
	}
	if err := follow(t, web.URL, dir, newPublic, nil).Start(t.Context(), engine.activate); err == nil {
		t.Error("a bundle that is no longer trusted is served after a restart")
	}
	signed, err := Sign(bundle, replacement)
	if err != nil {
		t.Fatal(err)
	}
	web.offer(signed)
	if _, err := f.take(t.Context(), engine.activate); err != nil || engine.activations != 1 {
		t.Errorf("the same files with a new signature: %v, %d activations", err, engine.activations)
	}
	web.Close()
	if err := follow(t, web.URL, dir, newPublic, nil).Start(t.Context(), engine.activate); err != nil {
		t.Errorf("after a restart: %v", err)
	}
}

func TestFollower_failedLoadIsNotRepeated(t *testing.T) {
	key, public := newKey(t)
	dir, web, engine := t.TempDir(), newSite(t), &server{}
	web.offer(pack(t, Manifest{Serial: 1}, project("one"), key))
	f := follow(t, web.URL, dir, public, nil)
	if err := f.Start(t.Context(), engine.activate); err != nil {
		t.Fatal(err)
	}
	loads := 0
	activate := func(err error) Activate {
		return func(ctx context.Context, files fs.FS) error {
			loads++
			return errors.Join(err, engine.activate(ctx, files))
		}
	}
	web.offer(pack(t, Manifest{Serial: 2}, project("broken"), key))
	for range 3 {
		if _, err := f.take(t.Context(), activate(nil)); err == nil {
			t.Fatal("a bundle with a failing test is active")
		}
	}
	if loads != 1 {
		t.Errorf("a bundle with a failing test was loaded %d times", loads)
	}
	if got := bundles(t, dir); !slices.Equal(got, []string{"1.bundle"}) {
		t.Errorf("stored %v", got)
	}
	f.options.Now = func() time.Time { return today.Add(2 * refusalTime) }
	if _, _ = f.take(t.Context(), activate(nil)); loads != 2 {
		t.Errorf("after an hour it was loaded %d times", loads)
	}
	loads = 0
	web.offer(pack(t, Manifest{Serial: 3}, project("busy"), key))
	for range 2 {
		_, _ = f.take(t.Context(), activate(nil))
	}
	if loads != 2 {
		t.Errorf("a bundle that failed for a reason of the server was loaded %d times", loads)
	}
}

func TestFollower_resumesDownload(t *testing.T) {
	key, public := newKey(t)
	dir, web, engine := t.TempDir(), newSite(t), &server{}
	one := pack(t, Manifest{Serial: 1}, project(strings.Repeat("long ", 200_000)), key)
	web.offer(one)
	web.cut = 300_000
	f := follow(t, web.URL, dir, public, nil)
	tries := 0
	for err := errInterrupted; err != nil; tries++ {
		if !errors.Is(err, errInterrupted) || tries == 10 {
			t.Fatalf("try %d: %v", tries, err)
		}
		err = f.Start(t.Context(), engine.activate)
		f = follow(t, web.URL, dir, public, nil) // in another process
	}
	if tries != 4 {
		t.Errorf("%d bytes in parts of %d took %d requests", len(one), web.cut, tries)
	}
	ranges := 0
	for _, r := range web.requests {
		if r.Header.Get("Range") != "" && r.Header.Get("If-Range") != "" {
			ranges++
		}
	}
	if ranges != 3 {
		t.Errorf("%d requests continued a download", ranges)
	}

	// a bundle that changes in between is downloaded from its start
	web.offer(pack(t, Manifest{Serial: 2}, project(strings.Repeat("other ", 100_000)), key))
	if err := f.Start(t.Context(), engine.activate); err != nil {
		t.Fatal(err)
	}
	if _, err := f.take(t.Context(), engine.activate); !errors.Is(err, errInterrupted) {
		t.Fatal(err)
	}
	web.offer(pack(t, Manifest{Serial: 3}, project("three"), key))
	web.cut = 0
	if _, err := f.take(t.Context(), engine.activate); err != nil || f.Status().Serial != 3 {
		t.Errorf("serving %d: %v", f.Status().Serial, err)
	}

	// and so is one if the kept part was damaged
	web.offer(pack(t, Manifest{Serial: 4}, project(strings.Repeat("four ", 100_000)), key))
	web.cut = 300_000
	if _, err := f.take(t.Context(), engine.activate); !errors.Is(err, errInterrupted) {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, partName), make([]byte, 300_000), 0o600); err != nil {
		t.Fatal(err)
	}
	web.cut = 0
	if _, err := f.take(t.Context(), engine.activate); err == nil {
		t.Error("a damaged part was accepted")
	}
	if _, err := f.take(t.Context(), engine.activate); err != nil || f.Status().Serial != 4 {
		t.Errorf("serving %d: %v", f.Status().Serial, err)
	}
}

func TestNewSource_refusesPlainHTTP(t *testing.T) {
	for url, ok := range map[string]bool{
		"https://example.com/a": true, "http://127.0.0.1:8000/a": true, "http://[::1]/a": true, "http://localhost/a": true, "shop.bundle": true,
		"http://example.com/a": false, "ftp://example.com/a": false, "https://": false, "http://127.0.0.1.example.com/a": false,
	} {
		if _, err := newSource(url, folder{}, 0); (err == nil) != ok {
			t.Errorf("%s: %v", url, err)
		}
	}
	web := newSite(t)
	web.Config.Handler = http.RedirectHandler("http://example.com/shop.bundle", http.StatusFound)
	s, err := newSource(web.URL, folder{realDisk(t.TempDir())}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.fetch(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "https") {
		t.Errorf("a redirect to plain HTTP: %v", err)
	}
}

func TestFollower_fileSource(t *testing.T) {
	key, public := newKey(t)
	dir, engine := t.TempDir(), &server{}
	source := filepath.Join(t.TempDir(), "shop.bundle")
	write := func(data []byte) {
		if err := os.WriteFile(source, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(pack(t, Manifest{Serial: 1}, project("one"), key))
	f := follow(t, source, dir, public, nil)
	if err := f.Start(t.Context(), engine.activate); err != nil {
		t.Fatal(err)
	}
	write(pack(t, Manifest{Serial: 2}, project("number two"), key))
	if _, err := f.take(t.Context(), engine.activate); err != nil || engine.text != "# number two\n" {
		t.Errorf("serving %q: %v", engine.text, err)
	}
	if err := os.Remove(source); err != nil {
		t.Fatal(err)
	}
	if _, err := f.take(t.Context(), engine.activate); err == nil {
		t.Error("a missing file is not reported")
	}
	if err := follow(t, source, dir, public, nil).Start(t.Context(), engine.activate); err != nil {
		t.Errorf("without the file: %v", err)
	}
}

// quickDisk is a directory that is not synced, as no test cuts the real power.
type quickDisk struct{ realDisk }

func (d quickDisk) replace(name string, content []byte) error {
	if err := os.WriteFile(d.path("."+name+".1"), content, 0o600); err != nil {
		return err
	}
	return os.Rename(d.path("."+name+".1"), d.path(name))
}

// faultyDisk stops or fails at one operation.
type faultyDisk struct {
	quickDisk
	left int // operations until the fault
	how  fault
}

type fault int

const (
	before fault = iota // the power is cut before the operation
	during              // in the middle: what is not durable is lost or garbage
	after
	full // this and all later writes fail, as on a full disk
	faults
)

// powerCut is the panic that stands for the end of the machine.
type powerCut struct{}

// step runs an operation, of which torn is a half.
func (d *faultyDisk) step(whole, torn func() error) error {
	d.left--
	switch {
	case d.left > 0 || d.left < 0 && d.how != full:
		return whole()
	case d.how == full:
		_ = torn()
		return syscall.ENOSPC
	case d.how == during:
		_ = torn()
	case d.how == after:
		_ = whole()
	}
	panic(powerCut{})
}

func (d *faultyDisk) replace(name string, content []byte) error {
	return d.step(func() error { return d.quickDisk.replace(name, content) }, func() error {
		if d.how == full {
			return nil // atomicfile removes its temporary file
		}
		return os.WriteFile(d.path("."+name+".123"), content[:len(content)/2], 0o600)
	})
}

func (d *faultyDisk) extend(name string, content []byte) error {
	return d.step(func() error { return d.quickDisk.extend(name, content) }, func() error { return d.quickDisk.extend(name, make([]byte, len(content)/2)) })
}

func (d *faultyDisk) remove(name string) error {
	if d.how == full {
		return d.quickDisk.remove(name)
	}
	return d.step(func() error { return d.quickDisk.remove(name) }, func() error { return nil })
}

// TestFollower_powerCut ends a follower at every disk operation of two updates, before, in the
// middle of and after it, and starts another one without the site: it must serve a bundle, and
// none before the last one that was active. A full disk must change nothing but the problem.
func TestFollower_powerCut(t *testing.T) {
	key, public := newKey(t)
	web := newSite(t)
	offers := [][]byte{
		pack(t, Manifest{Serial: 1}, project("1"), key),
		pack(t, Manifest{Serial: 2}, project("2 "+strings.Repeat("long ", 20_000)), key),
		pack(t, Manifest{Serial: 3}, project("3"), key),
	}
	points := 0
	for how := before; how < faults; how++ {
		for n, more := 1, true; more; n++ {
			dir := t.TempDir()
			last := int64(0)
			more = func() (stopped bool) {
				defer func() {
					if r := recover(); r != nil {
						if _, ok := r.(powerCut); !ok {
							panic(r)
						}
						stopped = true
					}
				}()
				web.offer(offers[0])
				first := follow(t, web.URL, dir, public, quickDisk{realDisk(dir)})
				if err := first.Start(t.Context(), (&server{}).activate); err != nil {
					t.Fatal(err)
				}
				last = 1
				d := &faultyDisk{quickDisk{realDisk(dir)}, n, how}
				f, engine := follow(t, web.URL, dir, public, d), &server{}
				f.source.chunk = 2048
				activate := func(ctx context.Context, files fs.FS) error {
					err := engine.activate(ctx, files)
					if err == nil {
						_, err := fmt.Sscanf(engine.text, "# %d", &last)
						return err
					}
					return err
				}
				if err := f.Start(t.Context(), activate); err != nil {
					t.Fatalf("fault %d at %d: %v", how, n, err)
				}
				for _, data := range offers[1:] {
					web.offer(data)
					for range 2 { // a download that was interrupted continues
						if _, err := f.take(t.Context(), activate); err != nil && how != full {
							t.Fatalf("fault %d at %d: %v", how, n, err)
						}
					}
					if f.Status().Serial != last || last == 0 {
						t.Fatalf("serving %d, activated %d", f.Status().Serial, last)
					}
				}
				if how != full || d.left > 0 {
					return d.left <= 0
				}
				d.how = before // there is space again
				d.left = -1
				if _, err := f.take(t.Context(), activate); err != nil || last != 3 {
					t.Fatalf("with space again: serving %d, %v", last, err)
				}
				return true
			}()
			again, engine := follow(t, "no such file", dir, public, quickDisk{realDisk(dir)}), &server{}
			if err := again.Start(t.Context(), engine.activate); err != nil || again.Status().Serial < last {
				t.Fatalf("fault %d at %d: serving %d after %d: %v", how, n, again.Status().Serial, last, err)
			}
			if more {
				points++
			}
		}
	}
	if points < 200 {
		t.Errorf("only %d points", points)
	}
	t.Logf("%d points", points)
}
