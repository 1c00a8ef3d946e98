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

// faultyDisk fails steps of one kind: a number of times from the nth on, or every nth
// if times is 0.
type faultyDisk struct {
	osDisk
	mu            sync.Mutex
	step          string
	nth, times, n int
	failed        int
	// writes counts writes while truncations must fail, and halved those that were shortened
	// for it: only the rest of a failed write is truncated.
	writes, halved int
	// hold blocks syncs and writes until it is closed, unless it is nil.
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

// halves reports whether a write must leave something to truncate.
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

// failures returns the number of intended failures and of all failures.
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
	return nil // the test does not simulate a power loss
}

type faultyFile struct {
	file
	disk *faultyDisk
	// log marks the log file, the only one that is truncated.
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

// faultyTurns returns the steps that fail. A log rotates about every six records, and
// each record takes each step once or twice: ten turns cover everything once.
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

// Every step fails in turn, once, for a while and repeatedly. Acknowledged records must
// exist once, refused ones must not exist, and the chain must be intact. The test must
// not run in parallel with tests that start processes: between fork and exec these hold
// the lock of a closed log.
func TestStrict_diskFailures(t *testing.T) {
	t.Parallel()
	for _, step := range faultySteps {
		for _, times := range []int{1, 3, 0} {
			failed, logs, acknowledged := 0, 0, 0
			for _, nth := range faultyTurns() {
				if times == 0 && nth == 1 {
					continue // a disk that always fails cannot hold a log
				}
				d := &faultyDisk{step: step, nth: nth, times: times}
				t.Run(fmt.Sprintf("%s %d+%d", step, nth, times), func(t *testing.T) { acknowledged += strictUnder(t, d) })
				logs++
				meant, _ := d.failures()
				failed += meant
			}
			if failed < 3 || acknowledged < logs*strictCalls/2 {
				t.Errorf("%s failed %d times, %d records of %d logs were acknowledged", step, failed, acknowledged, logs)
			}
		}
	}
}

// memoryFolder returns an in-memory directory where the system has one: these tests
// rename thousands of files, which is slow on a shared disk.
func memoryFolder(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("/dev/shm", "mcpd-audit")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	return folder
}

// strictCalls is the number of calls written to each log.
const strictCalls = 24

// strictUnder returns the number of acknowledged records.
func strictUnder(t *testing.T, d *faultyDisk) int {
	t.Helper()
	path := filepath.Join(memoryFolder(t), "audit.jsonl")
	step, nth, always := d.step, d.nth, d.times == 0
	if always {
		d.set("", 0, 0) // a log that needs two steps to open cannot start on a disk that fails each second time
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
		t.Errorf("%d records refused, %d failures", refused, failed)
	}
	if err := l.Close(); err != nil && !errors.Is(err, errInjected) {
		t.Fatal(err)
	}
	sound(t, path, want)
	return len(want)
}

// sound checks that a log is intact and ends with the expected calls.
func sound(t *testing.T, path string, want []string) {
	t.Helper()
	if r := verified(t, path); len(r.Findings) > 0 {
		t.Errorf("findings: %v", r.Findings)
	}
	got := calls(t, path)
	if len(got) > len(want) {
		t.Fatalf("%d calls, %d acknowledged: %v, %v", len(got), len(want), got, want)
	}
	for i := range got {
		if got[len(got)-1-i] != want[len(want)-1-i] {
			t.Fatalf("calls %v, acknowledged %v", got, want)
		}
	}
	if len(got) < min(6, len(want)) {
		t.Errorf("only %d calls remain", len(got))
	}
}

// Every step fails in turn. Records with room in memory must not be lost, and callers
// must not get errors.
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
		d.set("", 0, 0) // further writes are shortened
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
		t.Errorf("%d of 24 records exist", got)
	}
}
