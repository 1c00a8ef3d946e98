package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mcpd/mcpd/internal/base/state"
)

// messages is the migration for messages between replicas. Their numbers have no gaps, and messages
// become visible in the order of their numbers: the row with the newest number is locked until the end
// of the transaction. So a replica knows from the numbers what it has missed.
const messages = `
CREATE TABLE {s}.messages (
	id     bigint PRIMARY KEY,
	sender text   NOT NULL,
	data   bytea  NOT NULL
);
CREATE TABLE {s}.newest_message (
	one boolean PRIMARY KEY DEFAULT true CHECK (one),
	id  bigint  NOT NULL
);
INSERT INTO {s}.newest_message (id) VALUES (0);

-- publish_1 adds messages, and removes old ones.
CREATE FUNCTION {s}.publish_1(r text, items bytea[], keep bigint, channel text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE newest bigint;
BEGIN
	UPDATE {s}.newest_message SET id = id + cardinality(items) RETURNING id INTO newest;
	INSERT INTO {s}.messages SELECT newest - cardinality(items) + x.n, r, x.item FROM unnest(items) WITH ORDINALITY AS x(item, n);
	DELETE FROM {s}.messages WHERE id <= newest - keep;
	PERFORM pg_notify(channel, r || ' message ' || newest);
END $$;
`

const (
	// keptMessages is the number of messages that the database keeps. A replica that has missed more
	// gets the zero message.
	keptMessages = 10_000
	// messageBatch is the number of messages in one statement.
	messageBatch = 1000
)

func (s *store) Publish(all []state.Message) error {
	for len(all) > 0 {
		n := min(len(all), messageBatch)
		if err := s.publish(all[:n]); err != nil {
			return err
		}
		all = all[n:]
	}
	return nil
}

func (s *store) publish(batch []state.Message) error {
	me, err := s.replica()
	if err != nil {
		return err
	}
	items := make([][]byte, len(batch))
	for i, m := range batch {
		if len(m.Name) > state.MaxName {
			m.Name = ""
		}
		items[i] = s.cipher.seal("message", me.id, []byte(string(m.Topic)+"\x00"+m.Name))
	}
	err = s.do(func(ctx context.Context, c *pgxpool.Conn) error {
		_, err := c.Exec(ctx, s.q(`SELECT {s}.publish_1($1, $2, $3, $4)`), me.id, items, keptMessages, s.channel)
		return err
	})
	if err != nil {
		return fmt.Errorf("send messages: %w", err)
	}
	return nil
}

func (s *store) Receive(fn func(state.Message)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.receivers = append(s.receivers, fn)
	s.requestPollLocked()
}

// firstMessage notes the newest message: those before are of no use for a store that is opened now.
func (s *store) firstMessage() error {
	err := s.do(func(ctx context.Context, c *pgxpool.Conn) error {
		return c.QueryRow(ctx, s.q(`SELECT id FROM {s}.newest_message`)).Scan(&s.received)
	})
	if err != nil {
		return fmt.Errorf("read messages: %w", err)
	}
	return nil
}

// pollMessages passes the next messages of other replicas on. Only pollAlways calls it.
func (s *store) pollMessages() {
	s.mu.Lock()
	receivers := s.receivers
	s.mu.Unlock()
	if len(receivers) == 0 {
		return
	}
	type row struct {
		ID     int64
		Sender string
		Data   []byte
	}
	var found []row
	var newest int64
	err := s.do(func(ctx context.Context, c *pgxpool.Conn) error {
		if err := c.QueryRow(ctx, s.q(`SELECT id FROM {s}.newest_message`)).Scan(&newest); err != nil {
			return err
		}
		rows, err := c.Query(ctx, s.q(`SELECT id, sender, data FROM {s}.messages WHERE id > $1 ORDER BY id LIMIT $2`), s.received, messageBatch)
		if err == nil {
			found, err = pgx.CollectRows(rows, pgx.RowToStructByPos[row])
		}
		return err
	})
	if err != nil {
		return // the next look may succeed
	}
	var news []state.Message
	switch {
	case newest < s.received: // the database was restored, or a standby that lags has taken over
		s.received, found, news = newest, nil, []state.Message{{}}
	case len(found) > 0 && found[0].ID > s.received+1:
		news = append(news, state.Message{}) // there were more than the database keeps
	}
	for _, r := range found {
		if s.received = r.ID; !s.isMine(r.Sender) {
			news = append(news, s.read(r.Sender, r.Data)...)
		}
	}
	for _, m := range news {
		for _, fn := range receivers {
			fn(m)
		}
	}
	if len(found) == messageBatch {
		s.requestPoll() // after a look at claims and tasks
	}
}

// isMine reports whether a message is of this replica.
func (s *store) isMine(sender string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return sender == s.me.id || s.former[sender]
}

// read returns a stored message. One that cannot be read, for example because another key has
// encrypted it, may be any message; it does not end authorizations, as a dropped token does.
func (s *store) read(sender string, data []byte) []state.Message {
	text, err := s.cipher.open("message", sender, data)
	topic, name, ok := strings.Cut(string(text), "\x00")
	if err != nil || !ok {
		return []state.Message{{Topic: state.TokenChanged}, {Topic: state.ResourceUpdated}}
	}
	return []state.Message{{Topic: state.Topic(topic), Name: name}}
}
