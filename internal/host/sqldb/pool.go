package sqldb

import (
	"context"
	"crypto/sha256"
	"os"
	"sync"
	"time"

	"github.com/mcpd/mcpd/internal/host/secrets"
	"github.com/mcpd/mcpd/internal/language/grant"
)

// idleTimeout is how long unused connections stay open.
const idleTimeout = 60 * time.Second

// maxConns is the maximum number of connections of a grant.
const maxConns = 4

type key = [sha256.Size]byte

// Driver connects to databases of one kind.
type Driver interface {
	// Connect opens a connection for a grant. resolve returns the value of a secret.
	Connect(ctx context.Context, g grant.SQL, resolve func(ctx context.Context, secret string) (string, error)) (Conn, error)
	// Explain returns the code and message of a driver error for scripts; the message is "" for
	// other errors.
	Explain(err error) (code, text string)
	Close() error
}

// FileDriver is a driver for database files.
type FileDriver interface {
	Driver
	// ConnectFile opens a connection that reads an open file, and no other.
	ConnectFile(f *os.File) (Conn, error)
}

// Conn is a connection to a database. It is not safe for concurrent use.
type Conn interface {
	// Run runs a query, and stops it when ctx is done.
	Run(ctx context.Context, r *Query, a *Rows) error
	// Healthy reports whether the connection can be reused.
	Healthy() bool
	Close()
}

type pool struct {
	connect func(context.Context) (Conn, error)
	slots   chan struct{}
	// leases and idle are guarded by the mutex of the broker.
	leases int
	idle   *time.Timer

	mu     sync.Mutex
	free   []Conn
	closed bool
}

// lease returns the pool of a grant. It stays open for idleTimeout after its last release.
func (b *Broker) lease(d Database) (p *pool, release func(), ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, nil, false
	}
	p, found := b.pools[d.key]
	if !found {
		connect := func(ctx context.Context) (Conn, error) {
			return b.options.Drivers[d.Driver].Connect(ctx, d.SQL, secrets.LogErrors(b.options.Resolve, b.options.Logger, d.Name))
		}
		p = &pool{connect: connect, slots: make(chan struct{}, maxConns)}
		p.idle = time.AfterFunc(idleTimeout, func() { b.closeIdle(d.key, p) })
		b.pools[d.key] = p
	}
	p.leases++
	return p, func() { b.release(p) }, true
}

func (b *Broker) release(p *pool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p.leases--; p.leases == 0 && !b.closed {
		p.idle.Reset(idleTimeout)
	}
}

func (b *Broker) closeIdle(k key, p *pool) {
	b.mu.Lock()
	if p.leases > 0 || b.closed {
		b.mu.Unlock()
		return // release resets the timer
	}
	delete(b.pools, k)
	b.mu.Unlock()
	p.close()
}

func (p *pool) get(ctx context.Context) (Conn, error) {
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	p.mu.Lock()
	var c Conn
	if n := len(p.free); n > 0 {
		c, p.free = p.free[n-1], p.free[:n-1]
	}
	p.mu.Unlock()
	if c != nil {
		return c, nil
	}
	c, err := p.connect(ctx)
	if err != nil {
		<-p.slots
	}
	return c, err
}

func (p *pool) put(c Conn) {
	p.mu.Lock()
	keep := c.Healthy() && !p.closed
	if keep {
		p.free = append(p.free, c)
	}
	p.mu.Unlock()
	if !keep {
		c.Close()
	}
	<-p.slots
}

// close closes the idle connections; the others are closed when they are returned.
func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, c := range p.free {
		c.Close()
	}
	p.free = nil
}
