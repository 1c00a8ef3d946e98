package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/base/state"
)

// shape returns what a schema has: functions with their bodies, tables, columns, constraints and indexes, by
// name.
func shape(t *testing.T, s *store) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, query := range []string{
		`SELECT 'function ' || oid::regprocedure, pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = $1::regnamespace`,
		`SELECT 'table ' || relname, relpersistence::text FROM pg_class WHERE relnamespace = $1::regnamespace AND relkind = 'r'`,
		`SELECT 'column ' || c.relname || '.' || a.attname, concat_ws(' ', format_type(a.atttypid, a.atttypmod), CASE WHEN a.attnotnull THEN 'NOT NULL' END, a.attidentity,
			pg_get_expr(d.adbin, d.adrelid)) FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
			WHERE c.relnamespace = $1::regnamespace AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped`,
		`SELECT 'constraint ' || conrelid::regclass || '.' || conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE connamespace = $1::regnamespace`,
		`SELECT 'index ' || indexname, indexdef FROM pg_indexes WHERE schemaname = $1`,
	} {
		check(t, s.do(func(ctx context.Context, c *pgxpool.Conn) error {
			rows, err := c.Query(ctx, query, s.schema)
			if err != nil {
				return err
			}
			var name, definition string
			_, err = pgx.ForEachRow(rows, []any{&name, &definition}, func() error {
				found[name] = definition
				return nil
			})
			return err
		}))
	}
	return found
}

// A step only adds, so that statements of the version before still work: what exists does not change, and a table
// that exists gets no constraint, and no column without a value.
func TestMigrations_onlyAdd(t *testing.T) {
	url := newURL(t)
	// A store cannot be opened with the first steps only, so it migrates another schema.
	s := opened(t, state.Database{URL: url}, state.Options{}, hooks{frozen: true})
	execute(t, s, `DROP SCHEMA {s} CASCADE`)
	before := map[string]string{}
	for n := 1; n <= len(migrations); n++ {
		check(t, s.do(func(ctx context.Context, c *pgxpool.Conn) error {
			return migrate(ctx, c.Conn(), s.schema, state.Database{}, migrations[:n])
		}))
		after := shape(t, s)
		for name, definition := range before {
			if after[name] != definition {
				t.Errorf("step %d changes %s from %q to %q", n, name, definition, after[name])
			}
		}
		for name, definition := range after {
			kind, rest, _ := strings.Cut(name, " ")
			table, _, _ := strings.Cut(rest, ".")
			table = strings.TrimPrefix(table, s.schema+".")
			_, exists := before["table "+table]
			switch _, old := before[name]; {
			case old || !exists:
			case kind == "constraint":
				t.Errorf("step %d adds %s", n, name)
			case kind == "column" && strings.Contains(definition, "NOT NULL"):
				t.Errorf("step %d adds %s, which old statements do not set", n, name)
			}
		}
		before = after
	}
	if len(before) < 50 {
		t.Errorf("the schema has only %d parts", len(before))
	}
}

// olderStatements are statements of an earlier version about a table that a step has changed since. The earlier
// version does not know the new column.
var olderStatements = map[string]string{
	"register": `INSERT INTO {s}.replicas (id, host, beat) VALUES ($1, 'older', {s}.clock_1(NULL)) ON CONFLICT (id) DO UPDATE SET beat = {s}.clock_1(NULL)
		RETURNING fence, beat`,
	"beat": `WITH mine AS (UPDATE {s}.replicas SET beat = {s}.clock_1(NULL) WHERE id = $1 AND fence = $2 RETURNING 1),
		t AS (SELECT {s}.clock_1(NULL) AS now)
		SELECT EXISTS (SELECT 1 FROM mine), EXISTS (SELECT 1 FROM {s}.replicas, t WHERE id <> $1 AND beat < t.now - 10000), now FROM t`,
}

// olderReplica is a replica of the version before the last step, with its work: the other statements are the same
// in both versions. Each function does one thing and returns an error.
type olderReplica struct {
	*store
	done    atomic.Int64
	counted atomic.Int64
}

func (o *olderReplica) beat() error {
	var alive, stale bool
	var now int64
	err := o.do(func(ctx context.Context, c *pgxpool.Conn) error {
		return c.QueryRow(ctx, o.q(olderStatements["beat"]), o.me.id, o.me.fence).Scan(&alive, &stale, &now)
	})
	if err == nil && !alive {
		err = errors.New("the older replica is presumed dead")
	}
	return err
}

// work does one of everything; n differs each time.
func (o *olderReplica) work(n int) error {
	won, err := o.Claim(context.Background(), ann, nonce(n), soon())
	if err == nil && !won.Won {
		err = errors.New("a new claim was not won")
	}
	task, failed := o.CreateTask(state.Task{Owner: ann, Tool: "a tool", TTL: time.Hour})
	err = errors.Join(err, failed)
	_, failed = o.UpdateTask(ann, task.ID, func(t *state.Task) error {
		t.Status = state.Completed
		return nil
	})
	err = errors.Join(err, failed, o.Finish(nonce(n), []byte(strconv.Itoa(n))), o.PutJournal(ann, nonce(n), soon(), []byte("a journal")), increase(o.store, "shared"),
		o.Publish([]state.Message{{Topic: state.ResourceUpdated, Name: "lab://note"}}), o.sweepRecords(), o.beat())
	v, failed := o.counter.Take(context.Background(), []call.LimitCharge{rate("shared", 1000), placed("places", strconv.Itoa(n), 1)})
	if v.Taken {
		o.counted.Add(1)
		failed = errors.Join(failed, o.counter.Release(context.Background(), []call.LimitCharge{placed("places", strconv.Itoa(n), 1)}))
	}
	return errors.Join(err, failed)
}

// A new version upgrades the schema while a replica of the version before works, and both continue side by side.
func TestMigrations_besideOlderReplica(t *testing.T) {
	url := newURL(t)
	older := hooks{frozen: true, steps: migrations[:len(migrations)-1]}
	old := &olderReplica{store: opened(t, state.Database{URL: url}, state.Options{}, older)}
	var worker sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	did := make(chan struct{}) // receives while the test waits
	worker.Go(func() {
		defer close(did)
		for n := 0; ctx.Err() == nil; n++ {
			if err := old.work(n); err != nil {
				t.Errorf("the older replica: %v", err)
				return
			}
			old.done.Add(1)
			select {
			case did <- struct{}{}:
			default:
			}
		}
	})
	defer worker.Wait()
	defer stop()
	wait := func(times int) {
		for range times {
			<-did
		}
	}
	wait(5)
	next := opened(t, state.Database{URL: url}, state.Options{}, hooks{frozen: true})
	heard := make(chan state.Message, 1000)
	next.Receive(func(m state.Message) {
		select {
		case heard <- m:
		default:
		}
	})
	check(t, next.beat())
	wait(20)
	if t.Failed() {
		return
	}
	// Each hears of the work of the other.
	const mine = 60_000
	win(t, next, mine)
	got := join(old.store, mine)
	check(t, next.Finish(nonce(mine), []byte("by the new one")))
	wantOutcome(t, <-got, "by the new one", nil)
	wantOutcome(t, <-join(next, 0), "0", nil)
	for range 10 {
		check(t, increase(next, "shared"))
	}
	if m := <-heard; m.Name != "lab://note" {
		t.Errorf("message %+v", m)
	}
	v, err := next.counter.Take(t.Context(), []call.LimitCharge{rate("shared", 1000)})
	check(t, err)
	if v.Taken {
		old.counted.Add(1)
	}
	stop()
	worker.Wait()
	if p, err := next.Pair("space", "shared"); err != nil || string(p.Value) != fmt.Sprint(old.done.Load()+10) {
		t.Errorf("%d and 10 increments gave %s, %v", old.done.Load(), p.Value, err)
	}
	wantTake(t, next, false, rate("shared", int(old.counted.Load())))
	if all := listed(t, next); len(all) != 2 || all[old.me.id].HeartbeatAge > time.Minute {
		t.Errorf("replicas %+v", all)
	}
	wantUsage(t, next)

	// One that restarts in the version before registers again under the same id.
	var fence, beat int64
	check(t, next.do(func(ctx context.Context, c *pgxpool.Conn) error {
		return c.QueryRow(ctx, next.q(olderStatements["register"]), "older").Scan(&fence, &beat)
	}))
	if all := listed(t, next); fence == 0 || len(all) != 3 || all["older"].Info != nil {
		t.Errorf("fence %d, replicas %+v", fence, all)
	}
}
