package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/mcpd/mcpd/internal/ops/audit"
)

// killedTools are called until their server is killed. The argument identifies the call
// and is captured in the audit log.
const killedTools = `tool "pay" {
  timeout = "30s"
  allow {
    http "bank" {
      hosts            = [%[1]q]
      private_networks = true
    }
  }
  input "id" { type = string }
  run = "return (await http.bank.get('http://%[1]s/' + input.id)).text();"
}
`

// killTest is a server with a strict audit log that is killed repeatedly, and the bank
// that its tool calls.
type killTest struct {
	program, dir string
	bank         *httptest.Server

	mu sync.Mutex
	// paid holds the calls that the bank received; answered holds the calls with a
	// response.
	paid, answered map[string]bool
}

func newKillTest(t *testing.T) *killTest {
	t.Helper()
	k := &killTest{program: buildDaemon(t), paid: map[string]bool{}, answered: map[string]bool{}}
	k.bank = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		k.note(k.paid, strings.TrimPrefix(r.URL.Path, "/"))
		_, _ = w.Write([]byte("paid"))
	}))
	t.Cleanup(k.bank.Close)
	k.dir = workplace(t, "audit {\n  path     = \"audit.jsonl\"\n  mode     = \"strict\"\n  capture  = [\"pay\"]\n  max_size = \"64KiB\"\n  keep     = 10000\n}\n")
	tools := fmt.Sprintf(killedTools, strings.TrimPrefix(k.bank.URL, "http://"))
	if err := os.WriteFile(filepath.Join(k.dir, "tools.d/pay.hcl"), []byte(tools), 0o600); err != nil {
		t.Fatal(err)
	}
	return k
}

// note adds a call to a set and returns the size of the set.
func (k *killTest) note(set map[string]bool, id string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	set[id] = true
	return len(set)
}

// once starts the server, makes calls from several clients, and kills it after the
// given number of further responses.
func (k *killTest) once(t *testing.T, number, after int) {
	t.Helper()
	d, err := startDaemon(k.program, k.dir, os.Environ(), []string{"--state", "memory"})
	if err != nil {
		t.Fatal(err)
	}
	defer d.kill()
	last := len(k.answered) + after
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8}}
	defer client.CloseIdleConnections()
	d.client = client
	var clients sync.WaitGroup
	for c := range 8 {
		clients.Go(func() {
			for n := 0; ; n++ {
				id := fmt.Sprintf("%d-%d-%d", number, c, n)
				status, answer, err := d.modern("tools/call", fmt.Sprintf(`{"name":"pay","arguments":{"id":%q}}`, id))
				if err != nil {
					return // killed
				}
				if status != http.StatusOK || !bytes.Contains(answer, []byte(`"paid"`)) {
					t.Errorf("%d %s", status, answer)
					return
				}
				if k.note(k.answered, id) >= last {
					_ = d.cmd.Process.Signal(syscall.SIGKILL) // may already be dead
				}
			}
		})
	}
	clients.Wait()
}

// A server with a strict audit log is killed at random moments, 1,000 times with
// MCPD_LONG. Each call with a response must be in the log, and each effect must follow
// its intent record.
func TestAudit_survivesKills(t *testing.T) {
	t.Parallel()
	kills := 5
	if os.Getenv("MCPD_LONG") != "" {
		kills = 1000
	}
	k := newKillTest(t)
	for kill := range kills {
		if k.once(t, kill, rand.New(rand.NewPCG(uint64(kill), 2)).IntN(60)); t.Failed() {
			t.FailNow()
		}
	}
	path := filepath.Join(k.dir, "audit.jsonl")
	if report, err := audit.Verify(path); err != nil || len(report.Findings) > 0 {
		t.Fatalf("the audit log: %v, %+v", err, report)
	}
	intents, outcomes := k.written(t, path)
	for id := range k.answered {
		if !outcomes[id] {
			t.Errorf("call %s has a response but no audit record", id)
		}
	}
	for id := range k.paid {
		if !intents[id] {
			t.Errorf("call %s had its effect but has no audit record", id)
		}
	}
	if len(k.paid) <= len(k.answered) {
		t.Errorf("%d effects and %d responses: no call was interrupted by a kill", len(k.paid), len(k.answered))
	}
	t.Logf("%d kills, %d calls with effects, %d answered", kills, len(k.paid), len(k.answered))
}

// written returns the calls with intent records and with outcome records in the log.
func (k *killTest) written(t *testing.T, path string) (intents, outcomes map[string]bool) {
	t.Helper()
	var text bytes.Buffer
	if strange, err := audit.Export(&text, path, audit.JSONL, audit.TimeRange{}); err != nil || strange > 0 {
		t.Fatalf("%d invalid lines, %v", strange, err)
	}
	sets := map[string]map[string]bool{"intent": {}, "outcome": {}}
	for line := range bytes.Lines(text.Bytes()) {
		var record struct {
			Kind      string
			Arguments struct{ ID string } `json:"gen_ai.tool.call.arguments"`
		}
		if err := json.Unmarshal(line, &record); err != nil {
			t.Fatal(err)
		}
		if set := sets[record.Kind]; set != nil {
			set[record.Arguments.ID] = true
		}
	}
	return sets["intent"], sets["outcome"]
}
