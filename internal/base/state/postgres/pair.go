package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mcpd/mcpd/internal/base/state"
)

// pairName binds an encrypted value to its space and key.
func pairName(space, key string) string { return string(digest(space)) + string(digest(key)) }

func (s *store) Pair(space, key string) (state.Pair, error) {
	if _, err := s.replica(); err != nil {
		return state.Pair{}, err
	}
	var p state.StoredPair
	var now int64
	err := s.do(func(ctx context.Context, c *pgxpool.Conn) error {
		return s.readPair(ctx, c, space, key, &p, &now)
	})
	if err == nil {
		err = s.openPair(space, key, &p)
	}
	if err != nil {
		return state.Pair{}, fmt.Errorf("read a value: %w", err)
	}
	return p.Public(now), nil
}

// readPair reads the stored form of a pair, if it exists.
func (s *store) readPair(ctx context.Context, c *pgxpool.Conn, space, key string, p *state.StoredPair, now *int64) error {
	err := c.QueryRow(ctx, s.q(`SELECT value, expires, {s}.clock_1($3) FROM {s}.pairs WHERE space = $1 AND digest = $2`), digest(space), digest(key), s.given()).Scan(&p.Value, &p.Expires, now)
	if errors.Is(err, pgx.ErrNoRows) {
		*p, err = state.StoredPair{}, nil
	}
	return err
}

// openPair decrypts the value of a pair, if there is one.
func (s *store) openPair(space, key string, p *state.StoredPair) (err error) {
	if p.Value != nil {
		p.Value, err = s.cipher.open("pair", pairName(space, key), p.Value)
	}
	return err
}

func (s *store) ChangePair(space, key string, room state.Room, change func(old state.Pair, now time.Time) (state.Pair, error)) error {
	if _, err := s.replica(); err != nil {
		return err
	}
	release, err := s.turn(pairName(space, key))
	if err != nil {
		return err
	}
	defer release()
	limits := limitsOf(s.options.PairLimits())
	limits[2], limits[3] = int64(room.Keys), room.Bytes
	try := func() error {
		return s.do(func(ctx context.Context, c *pgxpool.Conn) error {
			return s.changeIn(ctx, c, space, key, limits, change)
		})
	}
	err = try()
	for _, from := range [][]byte{digest(space), nil} {
		if full := (*state.FullError)(nil); !errors.Is(err, state.ErrRoom) && !errors.As(err, &full) {
			break
		}
		removed, failed := s.sweepKind(pairKind, from)
		if failed != nil {
			return failed
		}
		if removed > 0 {
			err = try()
		}
	}
	return err
}

// changeIn changes a pair in a transaction of two round trips. A lock of the name orders changes of a key
// that has no row yet.
func (s *store) changeIn(ctx context.Context, c *pgxpool.Conn, space, key string, limits []int64, change func(old state.Pair, now time.Time) (state.Pair, error)) error {
	var p state.StoredPair
	var millis int64
	b := &pgx.Batch{}
	b.Queue("BEGIN")
	b.Queue(`SELECT pg_advisory_xact_lock(hashtextextended(encode($1, 'hex'), $2))`, []byte(pairName(space, key)), int64(len(s.schema)))
	b.Queue(s.q(`SELECT x.value, coalesce(x.expires, 0), t.now FROM (SELECT {s}.clock_1($3) AS now) AS t LEFT JOIN {s}.pairs x ON x.space = $1 AND x.digest = $2`),
		digest(space), digest(key), s.given()).QueryRow(func(row pgx.Row) error { return row.Scan(&p.Value, &p.Expires, &millis) })
	if err := c.SendBatch(ctx, b).Close(); err != nil {
		return fmt.Errorf("read a value: %w", err)
	}
	now := time.UnixMilli(millis)
	if s.options.Now != nil {
		now = s.options.Now()
	}
	var made state.Pair
	err := s.openPair(space, key, &p)
	if err == nil {
		made, err = change(p.Public(millis), now)
	}
	if err != nil {
		if _, failed := c.Exec(ctx, "ROLLBACK"); failed != nil {
			_ = c.Conn().Close(ctx)
		}
		return refusal{err}
	}
	stored := made.Stored()
	var value []byte
	if made.Value != nil {
		value = s.cipher.seal("pair", pairName(space, key), made.Value)
	}
	var outcome int
	b = &pgx.Batch{}
	b.Queue(s.q(`SELECT {s}.change_pair_1($1, $2, $3, $4, $5, $6, $7)`), digest(space), digest(key), []byte(key), stored.Expires, stored.Size(key), value, limits).
		QueryRow(func(row pgx.Row) error { return row.Scan(&outcome) })
	b.Queue("COMMIT")
	if err := c.SendBatch(ctx, b).Close(); err != nil {
		return finalError{fmt.Errorf("write a value: %w", err)}
	}
	switch outcome {
	case 1:
		return refusal{state.ErrRoom}
	case 2:
		return refusal{&state.FullError{What: "values", Wait: time.Minute}}
	}
	return nil
}

func (s *store) PairKeys(space, prefix, after string, most int) ([]string, error) {
	if _, err := s.replica(); err != nil {
		return nil, err
	}
	from := prefix
	if after >= prefix {
		from = after + "\x00"
	}
	var keys []string
	err := s.do(func(ctx context.Context, c *pgxpool.Conn) error {
		// UTF-8 never contains the byte 0xff.
		rows, err := c.Query(ctx, s.q(`SELECT key FROM {s}.pairs WHERE space = $1 AND key >= $2 AND key < $3 AND expires > (SELECT {s}.clock_1($4))
			AND substring(key FROM 1 FOR 512) >= substring($2::bytea FROM 1 FOR 512) AND substring(key FROM 1 FOR 512) <= substring($3::bytea FROM 1 FOR 512)
			ORDER BY substring(key FROM 1 FOR 512), key LIMIT $5`), digest(space), []byte(from), []byte(prefix+"\xff"), s.given(), most)
		if err != nil {
			return err
		}
		found, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
		keys = make([]string, len(found))
		for i, key := range found {
			keys[i] = string(key)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read keys: %w", err)
	}
	return keys, nil
}
