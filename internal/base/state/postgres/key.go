package postgres

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mcpd/mcpd/internal/base/state"
)

// keyLife is the time that a key seals.
const keyLife = 24 * time.Hour

// A storedKey is a key with its creation time.
type storedKey struct {
	state.Key
	made time.Time
}

func (s *store) SealingKey() (state.Key, error) {
	if _, err := s.replica(); err != nil {
		return state.Key{}, err
	}
	now := s.Now()
	s.mu.Lock()
	k, ok := sealing(s.keys, now)
	s.mu.Unlock()
	if ok {
		return k, nil
	}
	release, err := s.turn("key")
	if err != nil {
		return state.Key{}, err
	}
	defer release()
	err = s.do(func(ctx context.Context, c *pgxpool.Conn) error {
		return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			k, err = s.makeKey(ctx, tx)
			return err
		})
	})
	if err != nil {
		return state.Key{}, fmt.Errorf("write a key: %w", err)
	}
	return k, nil
}

// sealing returns the newest key, if it seals now.
func sealing(keys []storedKey, now time.Time) (k state.Key, ok bool) {
	if len(keys) == 0 {
		return state.Key{}, false
	}
	newest := keys[len(keys)-1]
	age := now.Sub(newest.made)
	return newest.Key, age >= 0 && age < keyLife
}

// makeKey creates the key to seal with from now on, unless another replica has.
func (s *store) makeKey(ctx context.Context, tx pgx.Tx) (state.Key, error) {
	var millis int64
	if err := tx.QueryRow(ctx, s.q(`SELECT {s}.clock_1($1) FROM {s}.fleet FOR UPDATE`), s.given()).Scan(&millis); err != nil {
		return state.Key{}, err
	}
	keys, err := s.readKeys(ctx, tx)
	if err != nil {
		return state.Key{}, err
	}
	now := time.UnixMilli(millis)
	k, ok := sealing(keys, now)
	if !ok {
		made := storedKey{Key: state.Key{ID: k.ID + 1}, made: now}
		rand.Read(made.Secret[:])
		_, err := tx.Exec(ctx, s.q(`INSERT INTO {s}.keys (id, made, secret) VALUES ($1, $2, $3)`), int64(made.ID), millis, s.cipher.seal("key", keyName(made.ID), made.Secret[:]))
		if err != nil {
			return state.Key{}, err
		}
		k, keys = made.Key, append(keys, made)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys = keys
	return k, nil
}

func keyName(id uint32) string { return strconv.FormatUint(uint64(id), 10) }

// querier is a connection or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// readKeys returns all keys, oldest first.
func (s *store) readKeys(ctx context.Context, q querier) ([]storedKey, error) {
	rows, err := q.Query(ctx, s.q(`SELECT id, made, secret FROM {s}.keys ORDER BY id`))
	if err != nil {
		return nil, err
	}
	var keys []storedKey
	var id, made int64
	var sealed []byte
	_, err = pgx.ForEachRow(rows, []any{&id, &made, &sealed}, func() error {
		k := storedKey{Key: state.Key{ID: uint32(id)}, made: time.UnixMilli(made)}
		secret, err := s.cipher.open("key", keyName(k.ID), sealed)
		if err != nil {
			return err
		}
		if len(secret) != len(k.Secret) {
			return errors.New("a sealing key is damaged")
		}
		copy(k.Secret[:], secret)
		keys = append(keys, k)
		return nil
	})
	return keys, err
}

// loadKeys reads the keys of all replicas.
func (s *store) loadKeys() error {
	var keys []storedKey
	err := s.do(func(ctx context.Context, c *pgxpool.Conn) (err error) {
		keys, err = s.readKeys(ctx, c)
		return err
	})
	if err != nil {
		return fmt.Errorf("read a key: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys = keys
	return nil
}

func (s *store) KeyByID(id uint32) (state.Key, error) {
	if _, err := s.replica(); err != nil {
		return state.Key{}, err
	}
	k, newest := s.key(id)
	if k != nil || id <= newest {
		return known(k)
	}
	// Another replica may have made it.
	if err := s.loadKeys(); err != nil {
		return state.Key{}, err
	}
	k, _ = s.key(id)
	return known(k)
}

func known(k *state.Key) (state.Key, error) {
	if k == nil {
		return state.Key{}, state.ErrTampered
	}
	return *k, nil
}

// key returns the key with an id, or nil, and the newest id.
func (s *store) key(id uint32) (k *state.Key, newest uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.keys {
		newest = s.keys[i].ID
		if newest == id {
			found := s.keys[i].Key
			k = &found
		}
	}
	return k, newest
}

// dropKeys removes expired keys: those with a successor that has sealed for longer than the life of a
// request state.
func (s *store) dropKeys() error {
	if err := s.loadKeys(); err != nil {
		return err
	}
	now := s.Now()
	s.mu.Lock()
	var old []int64
	for i := 0; i+1 < len(s.keys) && now.Sub(s.keys[i+1].made) > state.MaxLife; i++ {
		old = append(old, int64(s.keys[i].ID))
	}
	s.mu.Unlock()
	if len(old) == 0 {
		return nil
	}
	err := s.do(func(ctx context.Context, c *pgxpool.Conn) error {
		_, err := c.Exec(ctx, s.q(`DELETE FROM {s}.keys WHERE id = ANY ($1)`), old)
		return err
	})
	if err != nil {
		return fmt.Errorf("remove a key: %w", err)
	}
	return s.loadKeys()
}

// atRest encrypts what is stored, if it has keys. Stored bytes start with a form: plain, or encrypted
// with the id of the key.
type atRest struct {
	keys []restKey
}

type restKey struct {
	id    [4]byte
	aead  cipher.AEAD
	names []byte // the secret of names
}

const (
	plainForm     = 0
	encryptedForm = 1
)

func newCipher(secrets []string) *atRest {
	c := &atRest{}
	for _, secret := range secrets {
		material, err := hkdf.Key(sha256.New, []byte(secret), nil, "mcpd state at rest", 36)
		if err != nil {
			panic("state: a key cannot be derived: " + err.Error())
		}
		block, err := aes.NewCipher(material[:32])
		if err != nil {
			panic("state: a key of 32 bytes is refused: " + err.Error())
		}
		aead, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			panic("state: AES is refused: " + err.Error())
		}
		names, err := hkdf.Key(sha256.New, []byte(secret), nil, "mcpd state names", 32)
		if err != nil {
			panic("state: a key cannot be derived: " + err.Error())
		}
		c.keys = append(c.keys, restKey{[4]byte(material[32:]), aead, names})
	}
	return c
}

// Errors of stored bytes.
var (
	errOtherKey = permanentError{errors.New("the state is encrypted with another key than the one of this server")}
	// errPlain: whoever can write to the database but does not know the key could plant plain rows.
	errPlain  = permanentError{errors.New("the state is not encrypted, and this server has a key: name another schema with ?schema=NAME in the URL, or start without a key")}
	errNoForm = errors.New("malformed bytes")
)

// seal returns the stored form of data, which belongs to one row.
func (c *atRest) seal(table, row string, data []byte) []byte {
	if len(c.keys) == 0 {
		return append([]byte{plainForm}, data...)
	}
	k := c.keys[0]
	return k.aead.Seal(append([]byte{encryptedForm}, k.id[:]...), nil, data, label(table, row))
}

// open returns the data in a stored form.
func (c *atRest) open(table, row string, stored []byte) ([]byte, error) {
	if len(stored) > 0 && stored[0] == plainForm {
		if len(c.keys) > 0 {
			return nil, errPlain
		}
		return stored[1:], nil
	}
	if len(stored) < 5 || stored[0] != encryptedForm {
		return nil, errNoForm
	}
	for _, k := range c.keys {
		if id := [4]byte(stored[1:5]); id == k.id {
			data, err := k.aead.Open(nil, nil, stored[5:], label(table, row))
			return data, err
		}
	}
	return nil, errOtherKey
}

// name returns the name of a row in an index. Without the key it does not show its parts.
func (c *atRest) name(table string, of []byte) []byte {
	if len(c.keys) == 0 {
		return digest(table + string(of))
	}
	mac := hmac.New(sha256.New, c.keys[0].names)
	mac.Write(label(table, string(of)))
	return mac.Sum(nil)
}

// isCurrent reports whether seal uses the key of a stored form.
func (c *atRest) isCurrent(stored []byte) bool {
	return len(c.keys) == 0 || len(stored) >= 5 && [4]byte(stored[1:5]) == c.keys[0].id
}

// label binds encrypted bytes to a row.
func label(table, row string) []byte {
	return append(binary.AppendUvarint(nil, uint64(len(table))), table+row...)
}
