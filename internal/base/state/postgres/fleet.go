package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mcpd/mcpd/internal/base/state"
)

// descriptions adds what a replica says about itself: encrypted JSON of [state.ReplicaInfo], NULL for none.
const descriptions = `ALTER TABLE {s}.replicas ADD COLUMN IF NOT EXISTS info bytea;`

const (
	// maxListed bounds the replicas that Replicas returns.
	maxListed = 1000
	// maxInfo bounds what it reads of each, in bytes: no replica writes more.
	maxInfo = 32 << 10
)

func (s *store) Describe(about func() state.ReplicaInfo) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.about = about
}

// info returns the stored form of what this replica says about itself, or nil for no change.
func (s *store) info(me replica) []byte {
	s.mu.Lock()
	about := s.about
	s.mu.Unlock()
	if about == nil {
		return nil
	}
	text, err := about().Encode()
	if err != nil {
		return nil // cannot happen: it has strings, numbers and times
	}
	s.mu.Lock()
	s.lastInfo = text
	s.mu.Unlock()
	return s.cipher.seal("replica", me.id, text)
}

// sealedLastInfo is info as of the heartbeat before. Unlike info it may be called by any operation, whose
// caller may hold what the description waits for.
func (s *store) sealedLastInfo(me replica) []byte {
	s.mu.Lock()
	text := s.lastInfo
	s.mu.Unlock()
	if text == nil {
		return nil
	}
	return s.cipher.seal("replica", me.id, text)
}

func (s *store) Beat() error {
	_, err := s.sendBeat()
	return err
}

func (s *store) LocalIP() (ip netip.Addr, err error) {
	err = s.do(func(_ context.Context, c *pgxpool.Conn) error {
		if local, ok := c.Conn().PgConn().Conn().LocalAddr().(*net.TCPAddr); ok {
			ip = local.AddrPort().Addr().Unmap()
		}
		return nil
	})
	if err == nil && !ip.IsValid() {
		err = errors.New("the database is on a socket of this machine")
	}
	return ip, err
}

func (s *store) Self() (id string, age time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.me.id, time.Since(s.beaten)
}

func (s *store) Reach() state.Reach {
	s.mu.Lock()
	defer s.mu.Unlock()
	return state.Reach{Database: s.address, Heartbeat: s.beaten, Err: s.failure}
}

func (s *store) Replicas() ([]state.Replica, error) {
	me, err := s.replica()
	if err != nil {
		return nil, err
	}
	type row struct {
		ID, Host string
		Age      int64
		Info     []byte
	}
	var found []row
	err = s.do(func(ctx context.Context, c *pgxpool.Conn) error {
		rows, err := c.Query(ctx, s.q(`SELECT id, left(host, 255), {s}.clock_1(NULL) - beat, CASE WHEN octet_length(info) <= $2 THEN info END FROM {s}.replicas ORDER BY fence LIMIT $1`), maxListed, maxInfo)
		if err == nil {
			found, err = pgx.CollectRows(rows, pgx.RowToStructByPos[row])
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list the replicas: %w", err)
	}
	all := make([]state.Replica, 0, len(found))
	for _, r := range found {
		one := state.Replica{ID: r.ID, Host: r.Host, Self: r.ID == me.id, HeartbeatAge: time.Duration(max(0, r.Age)) * time.Millisecond}
		if r.Info != nil {
			text, err := s.cipher.open("replica", r.ID, r.Info)
			if err == nil {
				one.Info, err = state.DecodeReplicaInfo(text)
			}
			if err != nil { // the other one has another key, for example
				s.options.Logger.Debug("read replica info", slog.String("replica", r.ID), slog.String("error", err.Error()))
			}
		}
		all = append(all, one)
	}
	return all, nil
}
