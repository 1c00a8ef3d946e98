package upstream

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// changingServer is a server without a network whose lists change on each read without notification. It
// records the times of reads.
type changingServer struct {
	newest bool
	ttl    string // the TTL member of each list, "" for none
	began  time.Time

	mu   sync.Mutex
	read map[string][]time.Duration // by method
}

func (s *changingServer) RoundTrip(r *http.Request) (*http.Response, error) {
	give := func(status int, text string) (*http.Response, error) {
		return given(r, status, "application/json", strings.NewReader(text)), nil
	}
	if r.Method != http.MethodPost {
		return give(http.StatusMethodNotAllowed, "")
	}
	m, _, err := sentBy(r)
	if err != nil {
		return nil, err
	}
	const can = `"capabilities":{"tools":{},"prompts":{},"resources":{}}`
	result := ""
	switch {
	case m.id == nil:
		return give(http.StatusAccepted, "")
	case m.method == "initialize":
		result = `"protocolVersion":"2025-11-25","serverInfo":{"name":"aging","version":"1"},` + can
	case m.method == "server/discover" && !s.newest:
		return give(http.StatusMethodNotAllowed, "")
	case m.method == "server/discover":
		result = `"resultType":"complete","supportedVersions":["2026-07-28"],"cacheScope":"private",` + can + s.ttl
	default:
		n := s.reads(m.method)
		result = fmt.Sprintf(`"resultType":"complete","cacheScope":"private",%q:[{"name":"n%d","uri":"lab://n","uriTemplate":"lab://{n}","inputSchema":{"type":"object"}}]`, lists[m.method], n) + s.ttl
	}
	return give(http.StatusOK, `{"jsonrpc":"2.0","id":`+string(m.id)+`,"result":{`+result+`}}`)
}

// reads records a read of a list, and returns their number.
func (s *changingServer) reads(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.read[method] = append(s.read[method], time.Since(s.began))
	return len(s.read[method])
}

// aged runs a pool with the server for 150 s, and calls during. It returns the final state,
// and the number of list changes.
func (s *changingServer) aged(t *testing.T, during func(*Pool)) (state ServerState, told int) {
	t.Helper()
	s.began, s.read = time.Now(), map[string][]time.Duration{}
	pool := NewPool(playedBy(s), func() { told++ }, nil)
	pool.SetTargets([]Target{{Name: "aging", URL: "http://aging.test/mcp"}})
	during(pool)
	time.Sleep(150*time.Second - time.Since(s.began))
	synctest.Wait()
	state = pool.State("aging")
	pool.Close()
	if state.Listing == nil || (state.Revision == modern) != s.newest {
		t.Fatalf("it speaks %q: %v", state.Revision, state.Err)
	}
	return state, told
}

// always returns the same times for all lists.
func always(times []time.Duration) map[string][]time.Duration {
	all := map[string][]time.Duration{}
	for method := range lists {
		all[method] = times
	}
	return all
}

func TestPool_refreshAfterTTL(t *testing.T) {
	for ttl, want := range map[string][]time.Duration{
		`,"ttlMs":60000`:  {0, time.Minute, 2 * time.Minute},
		`,"ttlMs":100000`: {0, 100 * time.Second},
		`,"ttlMs":0`:      {0},
		``:                {0},
	} {
		for _, newest := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				s := &changingServer{newest: newest, ttl: ttl}
				state, told := s.aged(t, func(*Pool) {})
				if diff := cmp.Diff(always(want), s.read); diff != "" || told != len(want) {
					t.Errorf("%s: notified %d times; read times (-want +got)\n%s", ttl, told, diff)
				}
				last := fmt.Sprintf(`"name":"n%d"`, len(want))
				l := state.Listing
				for _, entries := range [][]json.RawMessage{l.Tools, l.Prompts, l.Resources, l.Templates} {
					if len(entries) != 1 || !strings.Contains(string(entries[0]), last) {
						t.Errorf("%s: it offers %s, want %s", ttl, entries, last)
					}
				}
			})
		}
	}
}

func TestPool_changeBeforeTTL(t *testing.T) {
	for _, newest := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			s := &changingServer{newest: newest, ttl: `,"ttlMs":100000`}
			_, told := s.aged(t, func(pool *Pool) {
				time.Sleep(30 * time.Second)
				pool.server("aging").changed("notifications/tools/list_changed", "")
			})
			again := 30*time.Second + listDebounce
			if diff := cmp.Diff(always([]time.Duration{0, again, again + 100*time.Second}), s.read); diff != "" || told != 3 {
				t.Errorf("notified %d times; read times (-want +got)\n%s", told, diff)
			}
		})
	}
}
