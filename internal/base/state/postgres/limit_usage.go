package postgres

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/base/state"
)

// usageTimeout bounds a read of counters for an operator.
const usageTimeout = time.Second

// usageQuery reads the counters of the limits whose keys are between $1 and $2: for each limit the number of
// counters (0), the keys with the latest times (1) and those with most running calls (2). It takes no lock that
// a call waits for.
const usageQuery = `WITH clock AS MATERIALIZED (SELECT coalesce($3::bigint, {s}.nanos_1()) AS now),
	l AS MATERIALIZED (SELECT * FROM unnest($1::bytea[], $2::bytea[]) WITH ORDINALITY AS x(low, high, n))
SELECT l.n, 0, ''::bytea, c.used FROM l, LATERAL (SELECT count(*) AS used FROM {s}.counters c WHERE c.key BETWEEN l.low AND l.high) c
UNION ALL
SELECT l.n, 1, c.key, c.used FROM clock, l, LATERAL (SELECT c.key, c.tat - clock.now AS used FROM {s}.counters c
	WHERE c.key BETWEEN l.low AND l.high AND c.tat > clock.now ORDER BY c.tat DESC, c.key LIMIT $4) c
UNION ALL
SELECT l.n, 2, p.key, p.used FROM clock, l, LATERAL (SELECT p.key, sum(p.running) AS used FROM {s}.places p JOIN {s}.replicas r ON r.fence = p.replica
	WHERE p.key BETWEEN l.low AND l.high AND p.running > 0 AND p.ends > clock.now GROUP BY p.key ORDER BY used DESC, p.key LIMIT $4) p
ORDER BY 1, 2, 4 DESC, 3`

// LimitUsage returns how much of each limit is in use, with at most n keys for each of its bounds. The charges
// are those of a first leg, without a key. The database has only the name of a limit: another limit with this
// name, such as one with the rate before a reload, has its keys in the same list.
func (c *counter) LimitUsage(limits []call.LimitCharge, n int) ([]state.LimitUsage, error) {
	c.mu.Lock()
	away := c.away()
	c.mu.Unlock()
	if away {
		return nil, errAway
	}
	low, high := make([][]byte, len(limits)), make([][]byte, len(limits))
	for i := range limits {
		low[i] = digest(limits[i].Limit)[:nameSize]
		high[i] = append(slices.Clone(low[i]), bytes.Repeat([]byte{0xff}, sha256.Size-nameSize)...)
	}
	var usages []state.LimitUsage
	err := c.s.doWithin(c.s.pool, usageTimeout, func(ctx context.Context, conn *pgxpool.Conn) error {
		return pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
			// The plan must not depend on statistics: a table without any may seem small.
			_, err := tx.Exec(ctx, fmt.Sprintf(`SET LOCAL statement_timeout = %d; SET LOCAL enable_seqscan = off; SET LOCAL jit = off`, usageTimeout.Milliseconds()))
			if err != nil {
				return err
			}
			rows, err := tx.Query(ctx, c.s.q(usageQuery), low, high, c.s.givenNanos(), n)
			if err != nil {
				return err
			}
			usages, err = usagesOf(limits, rows)
			return err
		})
	})
	if err != nil {
		return nil, fmt.Errorf("read counters of limits: %w", err)
	}
	return usages, nil
}

func usagesOf(limits []call.LimitCharge, rows pgx.Rows) ([]state.LimitUsage, error) {
	usages := make([]state.LimitUsage, len(limits))
	var limit, kind, used int64
	var key []byte
	_, err := pgx.ForEachRow(rows, []any{&limit, &kind, &key, &used}, func() error {
		l, u := chargeOf(&limits[limit-1]), &usages[limit-1]
		share := state.LimitShare{Key: string(key), Rest: string(key) == overflowKey(l.limit)}
		switch {
		case kind == 0:
			u.Keys = int(used)
		case kind == 1 && l.burst > 0:
			share.Share = min(1, float64(used)/float64(l.burst))
			u.Rate = append(u.Rate, share)
		case kind == 2 && l.most > 0:
			share.Share = min(1, float64(used)/float64(l.most))
			u.Concurrency = append(u.Concurrency, share)
		}
		return nil
	})
	return usages, err
}

// StoredKey returns the key of [state.LimitShare] for a key of a charge.
func (c *counter) StoredKey(l *call.LimitCharge) string { return counterKey(l.Limit, l.Key) }
