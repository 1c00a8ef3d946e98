package history_test

import (
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/mcpd/mcpd/internal/base/postgrestest"
	"github.com/mcpd/mcpd/internal/base/state"
	"github.com/mcpd/mcpd/internal/base/state/postgres"
	"github.com/mcpd/mcpd/internal/ops/history"
)

// TestAdd_replicas adds the same revisions at three replicas at the same time.
func TestAdd_replicas(t *testing.T) {
	server := postgrestest.Start(t, os.Getenv("MCPD_NEED_POSTGRES"))
	var replicas []state.Store
	for range 3 {
		s, err := postgres.Open(state.Database{URL: server.URL("postgres", "sslmode=disable"), Keys: []string{"k"}}, state.Options{}, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		replicas = append(replicas, s)
	}
	for i := range 3 {
		var busy sync.WaitGroup
		for _, s := range replicas {
			busy.Go(func() {
				r := history.Revision{Name: fmt.Sprint("r", i), Time: time.Unix(0, 0), Files: map[string][]byte{"mcpd.hcl": fmt.Append(nil, i)}}
				if err := history.Add(s, r); err != nil {
					t.Error(err)
				}
			})
		}
		busy.Wait()
	}
	entries := list(t, replicas[0])
	if len(entries) != 3 || entries[0].Revision != "r2" {
		t.Fatalf("entries: %+v", entries)
	}
	for i, e := range entries {
		files, err := history.Read(replicas[1], e)
		if err != nil || string(files["mcpd.hcl"]) != fmt.Sprint(2-i) {
			t.Errorf("%s: %q, error %v", e.Revision, files, err)
		}
	}
}
