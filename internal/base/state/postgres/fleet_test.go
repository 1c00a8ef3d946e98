package postgres

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mcpd/mcpd/internal/base/state"
)

// listed returns the replicas by id.
func listed(t *testing.T, s *store) map[string]state.Replica {
	t.Helper()
	all, err := s.Replicas()
	if err != nil {
		t.Fatal(err)
	}
	byID := map[string]state.Replica{}
	for _, r := range all {
		byID[r.ID] = r
	}
	return byID
}

func TestReplicas_infoOfOthers(t *testing.T) {
	database := state.Database{URL: newURL(t), Keys: []string{"the key"}}
	a := opened(t, database, state.Options{}, hooks{frozen: true})
	b := opened(t, database, state.Options{}, hooks{frozen: true})
	running := 0
	b.Describe(func() state.ReplicaInfo {
		running++
		return state.ReplicaInfo{Version: "1.2.3", Revision: "r1", Status: strings.Repeat("é", 5000), Running: running}
	})
	if got := listed(t, a); len(got) != 2 || got[b.me.id].Info != nil || !got[a.me.id].Self || got[b.me.id].Self {
		t.Errorf("before a heartbeat: %+v", got)
	}
	check(t, b.beat())
	check(t, b.beat())
	got := listed(t, a)[b.me.id]
	if i := got.Info; i == nil || i.Version != "1.2.3" || i.Revision != "r1" || i.Running != 2 || len(i.Status) > 1100 || got.Host == "" || got.HeartbeatAge > state.DeadAfter {
		t.Errorf("after two heartbeats: %+v %+v", got, got.Info)
	}
	var stored []byte
	check(t, a.do(func(ctx context.Context, c *pgxpool.Conn) error {
		return c.QueryRow(ctx, a.q(`SELECT info FROM {s}.replicas WHERE id = $1`), b.me.id).Scan(&stored)
	}))
	if strings.Contains(string(stored), "1.2.3") {
		t.Error("the info is not encrypted")
	}
}

// A replica that was presumed dead has its address from the moment of its new registration.
func TestReplicas_addressAfterReturn(t *testing.T) {
	stores := replicas(t, 2, state.Options{})
	a, b := stores[0], stores[1]
	a.Describe(func() state.ReplicaInfo {
		return state.ReplicaInfo{Endpoint: state.Endpoint{Process: "p", Address: "127.0.0.1:7443"}}
	})
	check(t, a.beat())
	before := a.me
	silence(t, a)
	check(t, b.beat())
	me, err := a.replica()
	check(t, err)
	check(t, a.registerAgain(me))
	if me, err = a.replica(); err != nil || me == before {
		t.Fatalf("the replica kept its id: %v", err)
	}
	if got := listed(t, b)[me.id]; got.Info == nil || got.Info.Address != "127.0.0.1:7443" || got.Info.Process != "p" {
		t.Errorf("%+v %+v", got, got.Info)
	}
}

func TestReplicas_otherVersions(t *testing.T) {
	s := opened(t, state.Database{URL: newURL(t), Keys: []string{"the key"}}, state.Options{}, hooks{frozen: true})
	other := newCipher([]string{"another key"})
	rows := map[string][]byte{
		"newer":   s.cipher.seal("replica", "newer", []byte(`{"version":"9.0","revision":"r9","mood":{"happy":true}}`)),
		"wrong":   s.cipher.seal("replica", "wrong", []byte(`{"version":7}`)),
		"large":   s.cipher.seal("replica", "large", []byte(`{"version":"`+strings.Repeat("x", 20_000)+`"}`)),
		"moved":   s.cipher.seal("replica", "another row", []byte(`{"version":"1"}`)),
		"foreign": other.seal("replica", "foreign", []byte(`{"version":"1"}`)),
		"short":   {1},
		"older":   nil,
	}
	for id, info := range rows {
		check(t, s.do(func(ctx context.Context, c *pgxpool.Conn) error {
			_, err := c.Exec(ctx, s.q(`INSERT INTO {s}.replicas (id, host, beat, info) VALUES ($1, 'h', {s}.clock_1(NULL) - 60000, $2)`), id, info)
			return err
		}))
	}
	got := listed(t, s)
	if i := got["newer"].Info; len(got) != len(rows)+1 || i == nil || i.Version != "9.0" || i.Revision != "r9" {
		t.Errorf("%d replicas, the newer one %+v", len(got), i)
	}
	for id := range rows {
		if r := got[id]; id != "newer" && r.Info != nil || r.HeartbeatAge < time.Minute {
			t.Errorf("%s: %+v %+v", id, r, r.Info)
		}
	}
}

// A replica of the version before registers and sends heartbeats without the column.
func TestReplicas_columnAddedBesideOlderReplica(t *testing.T) {
	url := newURL(t)
	old := opened(t, state.Database{URL: url}, state.Options{}, hooks{frozen: true, steps: migrations[:4]})
	s := opened(t, state.Database{URL: url}, state.Options{}, hooks{frozen: true})
	check(t, old.do(func(ctx context.Context, c *pgxpool.Conn) error {
		_, err := c.Exec(ctx, old.q(`UPDATE {s}.replicas SET beat = {s}.clock_1(NULL) WHERE id = $1 AND fence = $2`), old.me.id, old.me.fence)
		return err
	}))
	if got := listed(t, s); len(got) != 2 || got[old.me.id].Info != nil {
		t.Errorf("%+v", got)
	}
}

func TestSelf_heartbeat(t *testing.T) {
	s := opened(t, state.Database{URL: newURL(t)}, state.Options{}, hooks{frozen: true})
	_, before := s.Self()
	check(t, s.beat())
	if id, age := s.Self(); id != s.me.id || age < 0 || before < 0 {
		t.Errorf("%s, %v", id, age)
	}
}

// The heartbeat of a running store tells that the database is away, and that it returned.
func TestReach_away(t *testing.T) {
	link, url := newLossyLink(t, newURL(t))
	s := opened(t, state.Database{URL: url}, state.Options{}, hooks{})
	until := func(away bool) state.Reach {
		t.Helper()
		for end := time.Now().Add(time.Minute); ; {
			reach := s.Reach()
			if since := reach.AwaySince(); since.IsZero() != away {
				return reach
			}
			if time.Now().After(end) {
				t.Fatalf("away is not %v: %+v", away, reach)
			}
			time.Sleep(20 * time.Millisecond) // the interval of the poll
		}
	}
	before := until(false)
	link.setAway(true)
	if away := until(true); away.Err == nil || away.Heartbeat.Before(before.Heartbeat) || !strings.HasSuffix(away.Database, "/postgres") {
		t.Errorf("%+v", away)
	}
	link.setAway(false)
	until(false)
}
