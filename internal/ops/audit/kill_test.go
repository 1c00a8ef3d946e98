package audit

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(writerPath); path != "" {
		os.Exit(writeUntilKilled(path))
	}
	goleak.VerifyTestMain(m)
}

// writerPath is the environment variable that turns this test into a writer process.
const writerPath = "MCPD_AUDIT_WRITER"

// writeUntilKilled writes records from several goroutines, and prints the id of each
// acknowledged one.
func writeUntilKilled(path string) int {
	l, err := Open(Options{Path: path, Mode: Strict, MaxSize: 64 << 10, Keep: Retention{Files: 1 << 20}})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var mu sync.Mutex
	var writers sync.WaitGroup
	for w := range 8 {
		writers.Go(func() {
			for i := 0; ; i++ {
				r := refund()
				r.Call = fmt.Sprintf("%d-%d-%d", os.Getpid(), w, i)
				if err := l.Outcome(r); err != nil {
					fmt.Fprintln(os.Stderr, err)
					return
				}
				mu.Lock()
				fmt.Println(r.Call)
				mu.Unlock()
			}
		})
	}
	writers.Wait()
	return 1
}

// Kills a writer process repeatedly, 1,000 times with MCPD_LONG.
func TestStrict_killed(t *testing.T) {
	kills := 25
	switch {
	case os.Getenv("MCPD_LONG") != "":
		kills = 1000
	case testing.Short():
		kills = 10
	}
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	acknowledged := map[string]bool{}
	for kill := range kills {
		killOnce(t, path, rand.New(rand.NewPCG(uint64(kill), 1)).IntN(40), acknowledged)
	}
	if r := verified(t, path); len(r.Findings) > 0 {
		t.Fatalf("%d findings, the first: %v", len(r.Findings)+r.More, r.Findings[0])
	}
	total := len(acknowledged)
	for _, id := range calls(t, path) {
		delete(acknowledged, id)
	}
	if len(acknowledged) > 0 {
		t.Errorf("%d of %d acknowledged records are missing", len(acknowledged), total)
	}
	t.Logf("%d kills, %d acknowledged records", kills, total)
}

// killOnce starts a writer process and kills it after this number of acknowledgements.
// It adds all acknowledged ids, including those still in the pipe.
func killOnce(t *testing.T, path string, after int, acknowledged map[string]bool) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), writerPath+"="+path)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	told := 0
	for ids := bufio.NewScanner(out); ids.Scan(); told++ {
		acknowledged[ids.Text()] = true
		if told == after {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = cmd.Wait() // killed
	if told <= after {
		t.Fatalf("the process exited after %s records: %s", strconv.Itoa(told), said.String())
	}
}

// calls returns the ids of all calls in a log.
func calls(t testing.TB, path string) (ids []string) {
	t.Helper()
	f, err := openFiles(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	if err := f.each(func(_ string, _ bool, file *os.File) error {
		for in := newLines(file); ; {
			line, err := in.next()
			if err != nil || line.partial { // the next start removes a torn line
				return nil
			}
			_, rest, _ := strings.Cut(string(line.text), `"call_id":"`)
			if id, _, ok := strings.Cut(rest, `"`); ok {
				ids = append(ids, id)
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	return ids
}
