package postgres

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mcpd/mcpd/internal/base/state"
)

// results is the migration for results of calls that replicas use again. The tables are not logged: a
// crash empties both, and a commit does not wait for the disk. The row of the usage is locked last, and
// its holder waits for no other row, so that no two transactions wait for each other.
const results = `
CREATE UNLOGGED TABLE {s}.results (
	key     bytea  PRIMARY KEY,
	stored  bigint NOT NULL,
	expires bigint NOT NULL,
	size    bigint NOT NULL,
	data    bytea  NOT NULL
);
CREATE INDEX results_by_age ON {s}.results (stored);
CREATE INDEX results_by_expiry ON {s}.results (expires);
CREATE UNLOGGED TABLE {s}.result_usage (
	one   boolean PRIMARY KEY DEFAULT true CHECK (one),
	count bigint  NOT NULL,
	bytes bigint  NOT NULL
);

-- charge_results_1 adds n results and b bytes to the usage, and returns it.
CREATE FUNCTION {s}.charge_results_1(n bigint, b bigint, OUT total bigint, OUT used bigint) LANGUAGE sql AS $$
	INSERT INTO {s}.result_usage AS u (count, bytes) VALUES (n, b)
		ON CONFLICT (one) DO UPDATE SET count = u.count + n, bytes = u.bytes + b RETURNING count, bytes
$$;

-- put_result_1 stores a result, or replaces one that expires earlier. Then it removes the oldest
-- results while there are more than most, or more bytes than room.
CREATE FUNCTION {s}.put_result_1(k bytea, e bigint, b bigint, d bytea, given bigint, most bigint, room bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE now bigint := {s}.clock_1(given); old record; n bigint := 1; usage record;
BEGIN
	IF e <= now THEN RETURN; END IF;
	LOOP
		INSERT INTO {s}.results VALUES (k, now, e, b, d) ON CONFLICT DO NOTHING;
		IF FOUND THEN EXIT; END IF;
		SELECT x.expires, x.size INTO old FROM {s}.results x WHERE x.key = k FOR UPDATE;
		IF NOT FOUND THEN CONTINUE; END IF;
		IF old.expires >= e THEN RETURN; END IF;
		UPDATE {s}.results SET stored = now, expires = e, size = b, data = d WHERE key = k;
		n := 0;
		b := b - old.size;
		EXIT;
	END LOOP;
	SELECT * INTO usage FROM {s}.charge_results_1(n, b);
	WHILE usage.total > most OR usage.used > room LOOP
		WITH gone AS (DELETE FROM {s}.results WHERE key IN (SELECT x.key FROM {s}.results x WHERE x.key <> k
			ORDER BY x.stored LIMIT greatest(usage.total - most, 1) FOR UPDATE SKIP LOCKED) RETURNING size)
		SELECT -count(*), -coalesce(sum(size), 0)::bigint INTO n, b FROM gone;
		EXIT WHEN n = 0;
		SELECT * INTO usage FROM {s}.charge_results_1(n, b);
	END LOOP;
END $$;

-- sweep_results_1 removes at most most expired results, and returns their number.
CREATE FUNCTION {s}.sweep_results_1(given bigint, most bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE now bigint := {s}.clock_1(given); n bigint; b bigint;
BEGIN
	WITH gone AS (DELETE FROM {s}.results WHERE key IN (SELECT x.key FROM {s}.results x WHERE x.expires <= now
		ORDER BY x.expires LIMIT most FOR UPDATE SKIP LOCKED) RETURNING size)
	SELECT count(*), coalesce(sum(size), 0)::bigint INTO n, b FROM gone;
	IF n > 0 THEN PERFORM {s}.charge_results_1(-n, -b); END IF;
	RETURN n;
END $$;
`

const (
	// resultTimeout is the default bound of the wait for a result, which can be computed instead. After
	// a failure, results are missing for resultPause.
	resultTimeout = 250 * time.Millisecond
	resultPause   = time.Second
	// resultOverhead approximates the size of a row without its data.
	resultOverhead = 256
	// maxSealed bounds the stored form of a result.
	maxSealed = state.MaxResult + 128
)

// Result implements [state.Results]. The time at which a result was made is part of the encrypted data,
// so that it cannot be prolonged without the key.
func (s *store) Result(key [32]byte) (data []byte, age time.Duration, err error) {
	row := s.cipher.name("result", key[:])
	var sealed []byte
	var now int64
	err = s.tryResults(func(ctx context.Context, c *pgxpool.Conn) error {
		err := c.QueryRow(ctx, s.q(`SELECT data, {s}.clock_1($2) FROM {s}.results WHERE key = $1 AND expires > {s}.clock_1($2) AND octet_length(data) <= $3`),
			row, s.given(), maxSealed).Scan(&sealed, &now)
		if errors.Is(err, pgx.ErrNoRows) {
			sealed, err = nil, nil
		}
		return err
	})
	if err != nil {
		return nil, 0, fmt.Errorf("read a result: %w", err)
	}
	opened, err := s.cipher.open("result", string(row), sealed)
	if err != nil || len(opened) < 8 {
		return nil, 0, nil // none, damaged, or of another key
	}
	// If the clock was set back, results of the future are missing.
	began := int64(binary.BigEndian.Uint64(opened))
	if began > now+clockError || began < now-maxAge {
		return nil, 0, nil
	}
	return opened[8:], time.Duration(max(now-began, 0)) * time.Millisecond, nil
}

const (
	// clockError bounds the difference between the times of the database as two replicas know them, and
	// maxAge the age of a result, in milliseconds.
	clockError = 5_000
	maxAge     = 366 * 24 * 3600_000
)

// PutResult implements [state.Results].
func (s *store) PutResult(key [32]byte, data []byte, age, ttl time.Duration) error {
	if len(data) > state.MaxResult {
		return errors.New("write a result: it is too large")
	}
	row, limits := s.cipher.name("result", key[:]), s.options.ResultLimits()
	began := s.Now().Add(-age).UnixMilli()
	sealed := s.cipher.seal("result", string(row), append(binary.BigEndian.AppendUint64(nil, uint64(began)), data...))
	err := s.tryResults(func(ctx context.Context, c *pgxpool.Conn) error {
		_, err := c.Exec(ctx, s.q(`SELECT {s}.put_result_1($1, $2, $3, $4, $5, $6, $7)`),
			row, began+ttl.Milliseconds(), len(sealed)+resultOverhead, sealed, s.given(), limits.Count, limits.Bytes)
		return err
	})
	if err != nil {
		return fmt.Errorf("write a result: %w", err)
	}
	return nil
}

// tryResults runs an operation within the timeout of results. For resultPause after a failure it fails at once,
// and then one caller tries.
func (s *store) tryResults(op func(ctx context.Context, c *pgxpool.Conn) error) error {
	s.mu.Lock()
	now := time.Now()
	switch {
	case s.closed:
		s.mu.Unlock()
		return state.ErrClosed
	case s.failure != nil || now.Before(s.resultsAgain):
		s.mu.Unlock()
		return errAway
	case !s.resultsAgain.IsZero():
		s.resultsAgain = now.Add(resultPause)
	}
	s.mu.Unlock()
	err := s.doWithin(s.pool, cmp.Or(s.options.ResultTimeout, resultTimeout), op)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resultsAgain = time.Time{}
	if err != nil {
		s.resultsAgain = time.Now().Add(resultPause)
	}
	return err
}

// sweepResults removes expired results.
func (s *store) sweepResults() error {
	for removed := int64(sweepBatch); removed == sweepBatch; {
		err := s.do(func(ctx context.Context, c *pgxpool.Conn) error {
			return c.QueryRow(ctx, s.q(`SELECT {s}.sweep_results_1($1, $2)`), s.given(), sweepBatch).Scan(&removed)
		})
		if err != nil {
			return fmt.Errorf("remove expired results: %w", err)
		}
	}
	return nil
}
