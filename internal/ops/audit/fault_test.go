package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

var errInjected = errors.New("injected")

// faultyDisk fails steps of one kind: from the nth on for so many times, or each nth where
// that is 0.
type faultyDisk struct {
	osDisk
	mu            sync.Mutex
	step          string
	nth, times, n int
	failed        int
	// writes counts writes while truncations are to fail, and halved those that were made
	// short for it: nothing is truncated but what a failed write has left.
	writes, halved int
	// hold keeps syncs and writes waiting until it is closed, unless it is nil.
	hold chan struct{}
}

// set changes what fails.
func (d *faultyDisk) set(step string, nth, times int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.step, d.nth, d.times, d.n = step, nth, times, 0
}

// holding makes writes wait until release is called.
func (d *faultyDisk) holding() (release func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	hold := make(chan struct{})
	d.hold = hold
	return func() { close(hold) }
}

func (d *faultyDisk) wait() {
	d.mu.Lock()
	hold := d.hold
	d.mu.Unlock()
	if hold != nil {
		<-hold
	}
}

// fails reports whether a step fails now.
func (d *faultyDisk) fails(step string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if step != d.step {
		return false
	}
	d.n++
	now := d.n >= d.nth && d.n < d.nth+d.times
	if d.times == 0 {
		now = d.n%d.nth == 0
	}
	if now {
		d.failed++
	}
	return now
}

// halves reports whether a write is to leave something to truncate.
func (d *faultyDisk) halves() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.step != "truncate" {
		return false
	}
	d.writes++
	if d.writes%3 != 0 {
		return false
	}
	d.halved++
	return true
}

// failures returns how many steps have failed that were to fail, and how many in all.
func (d *faultyDisk) failures() (meant, all int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.failed, d.failed + d.halved
}

func (d *faultyDisk) open(name string, flag int) (file, error) {
	if d.fails("open") {
		return nil, errInjected
	}
	f, err := d.osDisk.open(name, flag)
	if err != nil {
		return nil, err
	}
	return faultyFile{f, d, filepath.Ext(name) == ".jsonl"}, nil
}

func (d *faultyDisk) rename(from, to string) error {
	if d.fails("rename") {
		return errInjected
	}
	return d.osDisk.rename(from, to)
}

func (d *faultyDisk) remove(name string) error {
	if d.fails("remove") {
		return errInjected
	}
	return d.osDisk.remove(name)
}

func (d *faultyDisk) syncFolder(name string) error {
	if d.fails("sync folder") {
		return errInjected
	}
	return nil // nothing here outlives the machine
}

type faultyFile struct {
	file
	disk *faultyDisk
	// log says that it is the log itself, which alone is ever truncated.
	log bool
}

func (f faultyFile) Write(p []byte) (int, error) {
	f.disk.wait()
	if f.disk.fails("write") {
		return 0, errInjected
	}
	if f.disk.fails("short write") || f.log && f.disk.halves() {
		n, _ := f.file.Write(p[:len(p)/2])
		return n, errInjected
	}
	return f.file.Write(p)
}

func (f faultyFile) sync() error {
	if f.disk.fails("sync") {
		return errInjected
	}
	return nil
}

func (f faultyFile) Truncate(size int64) error {
	if f.disk.fails("truncate") {
		return errInjected
	}
	return f.file.Truncate(size)
}

func (f faultyFile) Stat() (fs.FileInfo, error) {
	if f.disk.fails("stat") {
		return nil, errInjected
	}
	return f.file.Stat()
}

var faultySteps = []string{"open", "rename", "remove", "sync folder", "write", "short write", "sync", "truncate", "stat"}

// faultyTurns are the steps that fail. A log is rotated every six records or so, and each record
// takes each step once or twice: the first ten turns see it all, and those behind them see it again.
func faultyTurns() []int {
	if os.Getenv("MCPD_LONG") == "" {
		return []int{1, 2, 3, 4, 6, 8, 11, 15, 21, 30}
	}
	turns := make([]int, 30)
	for i := range turns {
		turns[i] = i + 1
	}
	return turns
}

// TestStrict_diskFailures makes every step fail in turn, once, for a while
// and again and again: what was acknowledged is there once, what was refused is not, and
// the chain is whole. It is parallel to no test that starts processes: between fork and exec these
// hold the lock of a log that is closed.
func TestStrict_diskFailures(t *testing.T) {
	t.Parallel()
	for _, step := range faultySteps {
		for _, times := range []int{1, 3, 0} {
			failed, logs, acknowledged := 0, 0, 0
			for _, nth := range faultyTurns() {
				if times == 0 && nth == 1 {
					continue // a disk that always fails holds no log
				}
				d := &faultyDisk{step: step, nth: nth, times: times}
				t.Run(fmt.Sprintf("%s %d+%d", step, nth, times), func(t *testing.T) { acknowledged += strictUnder(t, d) })
				logs++
				meant, _ := d.failures()
				failed += meant
			}
			if failed < 3 || acknowledged < logs*strictCalls/2 {
				t.Errorf("%s has failed %d times, and %d records of %d logs were acknowledged", step, failed, acknowledged, logs)
			}
		}
	}
}

// memoryFolder returns a folder whose files are in memory where the system has such: these
// tests rename files by the thousand, which a disk that others use does slowly.
func memoryFolder(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("/dev/shm", "mcpd-audit")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	return folder
}

// strictCalls are those that are written to each log.
const strictCalls = 24

// strictUnder returns how many records were acknowledged.
func strictUnder(t *testing.T, d *faultyDisk) int {
	t.Helper()
	path := filepath.Join(memoryFolder(t), "audit.jsonl")
	step, nth, always := d.step, d.nth, d.times == 0
	if always {
		d.set("", 0, 0) // a log that needs two steps to open never gets past a disk that fails each second
	}
	var l *Log
	for try := 0; l == nil; try++ {
		var err error
		l, err = Open(Options{Path: path, Mode: Strict, MaxSize: 4000, Keep: Retention{Files: 2}, disk: d})
		if _, failed := d.failures(); err != nil && (!errors.Is(err, errInjected) || try >= failed) {
			t.Fatal(err)
		}
	}
	if always {
		d.set(step, nth, 0)
	}
	var want []string
	refused := 0
	for i := range strictCalls {
		r := refund()
		r.Call = strconv.Itoa(i)
		switch err := l.Outcome(r); {
		case err == nil:
			want = append(want, r.Call)
		case !errors.Is(err, errInjected):
			t.Fatal(err)
		default:
			refused++
		}
	}
	if _, failed := d.failures(); refused > failed {
		t.Errorf("%d records were refused for %d failures", refused, failed)
	}
	if err := l.Close(); err != nil && !errors.Is(err, errInjected) {
		t.Fatal(err)
	}
	sound(t, path, want)
	return len(want)
}

// sound checks that a log is whole and ends with the calls that it should.
func sound(t *testing.T, path string, want []string) {
	t.Helper()
	if r := verified(t, path); len(r.Findings) > 0 {
		t.Errorf("findings: %v", r.Findings)
	}
	got := calls(t, path)
	if len(got) > len(want) {
		t.Fatalf("there are %d calls, and %d were acknowledged: %v, %v", len(got), len(want), got, want)
	}
	for i := range got {
		if got[len(got)-1-i] != want[len(want)-1-i] {
			t.Fatalf("there are the calls %v, and acknowledged were %v", got, want)
		}
	}
	if len(got) < min(6, len(want)) {
		t.Errorf("only %d calls are left", len(got))
	}
}

// TestRelaxed_continuesOnDiskFailure makes every step fail in turn: nothing
// is lost that has room in memory, and callers never hear of it.
func TestRelaxed_continuesOnDiskFailure(t *testing.T) {
	t.Parallel()
	for _, step := range faultySteps {
		for nth := 1; nth <= 12; nth++ {
			t.Run(fmt.Sprintf("%s %d", step, nth), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { relaxedUnder(t, step, nth) })
			})
		}
	}
}

func relaxedUnder(t *testing.T, step string, nth int) {
	t.Helper()
	path := filepath.Join(memoryFolder(t), "audit.jsonl")
	d := &faultyDisk{}
	l := opened(t, Options{Path: path, MaxSize: 4000, disk: d})
	d.set(step, nth, 3)
	var want []string
	for i := range 24 {
		r := refund()
		r.Call = strconv.Itoa(i)
		want = append(want, r.Call)
		if err := l.Outcome(r); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if i%5 == 0 {
			time.Sleep(2 * time.Second)
		}
	}
	if step == "truncate" {
		d.set("", 0, 0) // writes go on to be halved
	}
	time.Sleep(time.Minute)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if s := l.stats(); s.Lost > 0 || s.Records != 24 {
		t.Errorf("%+v", s)
	}
	sound(t, path, want)
	if got := len(calls(t, path)); got != 24 {
		t.Errorf("%d of 24 records are there", got)
	}
}
