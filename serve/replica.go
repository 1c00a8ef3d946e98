package serve

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strconv"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/auth/authn"
	"github.com/mcpd/mcpd/internal/base/httpheader"
	"github.com/mcpd/mcpd/internal/base/state"
	"github.com/mcpd/mcpd/internal/protocol/replica"
	"github.com/mcpd/mcpd/internal/protocol/transport/httpguard"
	"github.com/mcpd/mcpd/internal/protocol/transport/sse"
	"github.com/mcpd/mcpd/internal/protocol/transport/streamable"
)

// link connects this process with the other replicas of its fleet. It forwards requests for their
// legacy sessions, and serves the requests that they forward. A nil link does nothing.
type link struct {
	// fixed before requests are served
	logger    *slog.Logger
	keys      *replica.Keys
	forwarder *replica.Forwarder
	process   string
	address   string // for the other replicas
	listener  net.Listener
	server    *http.Server
	// clientTLS is the TLS of the listener for clients, or nil.
	clientTLS *authn.TLS

	ended chan struct{} // closed when server has returned; nil before it serves
}

// newSessionID returns the id of a new legacy session.
func (f *Front) newSessionID(p identity.Principal) string {
	if link := f.link.Load(); link != nil {
		return link.forwarder.NewSessionID(p)
	}
	return rand.Text()
}

// openLink listens for other replicas if the files have a replica block whose database is in use.
// Otherwise it returns nil.
func (f *Front) openLink() (*link, error) {
	states := f.engine.Inside().States()
	if states.ReplicaConfig == nil {
		return nil, nil
	}
	config := states.ReplicaConfig()
	if config == nil {
		return nil, nil
	}
	l, err := f.newLink(states, *config)
	if err != nil {
		return nil, fmt.Errorf("serve other replicas: %w", err)
	}
	f.link.Store(l)
	return l, nil
}

func (f *Front) newLink(states *state.Lazy, config state.ReplicaConfig) (*link, error) {
	if _, err := states.Open(); err != nil {
		return nil, err
	}
	keys, err := replica.NewKeys(states.Keys()...)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", config.Listen)
	if err != nil {
		return nil, err
	}
	l := &link{logger: f.engine.Logger(), keys: keys, process: rand.Text(), address: config.Address, listener: listener}
	if l.address == "" {
		if l.address, err = defaultAddress(listener.Addr().(*net.TCPAddr), states.LocalIP); err != nil {
			return nil, errors.Join(err, listener.Close())
		}
	}
	count := func(string) {}
	if metrics := f.engine.Inside().Metrics(); metrics != nil {
		count = metrics.Forwarded
	}
	l.forwarder = replica.NewForwarder(replica.Options{
		Keys: keys, Process: l.process, Replicas: states.Replicas, Middleware: f.auth.middleware(), MaxMessage: f.mcp.MaxMessage(),
		Draining: f.mcp.Draining(), Count: count, Log: l.logger,
	})
	return l, nil
}

// defaultAddress returns the address that other replicas connect to: the one that the listener is bound
// to or, if that is every address of the machine, the one from which the machine reaches the database.
func defaultAddress(bound *net.TCPAddr, localIP func() (ip netip.Addr, err error)) (string, error) {
	ip := bound.AddrPort().Addr().Unmap()
	if ip.IsUnspecified() {
		var err error
		if ip, err = localIP(); err != nil {
			return "", fmt.Errorf("find the address of this machine for other replicas: %w; write address in the replica block", err)
		}
		if ip.IsLoopback() {
			return "", errors.New("the database is on this machine, so its connection does not tell at which address other replicas reach this one; write address in the replica block, or an address in listen")
		}
	}
	return net.JoinHostPort(ip.String(), strconv.Itoa(bound.Port)), nil
}

// forwardSessions makes the routes of sessions forward requests, and the link serve those that others
// forward. The latter are never forwarded again.
func (l *link) forwardSessions(routes []route, guard *httpguard.Guard) {
	mux := http.NewServeMux()
	for i, r := range routes {
		switch r.pattern {
		case mcpPath:
			routes[i].handler = l.forwarder.Wrap(mcpPath, "", r.handler, streamable.SessionOf)
		case messagesPath:
			routes[i].handler = l.forwarder.Wrap(messagesPath, sse.SessionParameter, r.handler, sse.SessionOf)
		default:
			continue
		}
		mux.Handle(r.pattern, r.handler)
	}
	l.server = &http.Server{Handler: l.accept(guard.WrapTrusted(mux)), ErrorLog: slog.NewLogLogger(l.logger.Handler(), slog.LevelDebug)}
	httpguard.ConfigureServer(l.server)
	l.server.MaxHeaderBytes = maxForwardedHeader
}

// maxForwardedHeader bounds the header of a forwarded request, in bytes: a header of a client, and what
// its connection says.
const maxForwardedHeader = 192 << 10

// accept returns a handler for requests of other replicas. They count for the client that sent them,
// and are authenticated like its own.
func (l *link) accept(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		values := r.Header[replica.HeaderEvidence]
		delete(r.Header, replica.HeaderEvidence)
		var evidence authn.Evidence
		err := errors.New("the header " + replica.HeaderEvidence + " is missing, or repeated")
		if len(values) == 1 {
			err = json.Unmarshal([]byte(values[0]), &evidence)
		}
		var client *http.Request
		if err == nil {
			client, err = evidence.Request(r, l.clientTLS)
		}
		if err != nil {
			l.logger.Debug("reject request of replica", slog.String("error", err.Error()), slog.String("request_id", httpheader.RequestIDOf(r.Header)))
			http.Error(w, "the request is not one of a replica", http.StatusBadRequest)
			return
		}
		next.ServeHTTP(w, client)
	})
}

// serve serves the other replicas, and tells them its address.
func (l *link) serve(states *state.Lazy) error {
	if l == nil {
		return nil
	}
	limited := tls.NewListener(httpguard.LimitListener(l.listener, httpguard.ConnLimits{}), l.keys.ServerTLS())
	l.ended = make(chan struct{})
	go func() {
		defer close(l.ended)
		if err := l.server.Serve(limited); !errors.Is(err, http.ErrServerClosed) {
			l.logger.Error("listener for replicas ended", slog.String("error", err.Error()))
		}
	}()
	if err := states.Announce(state.Endpoint{Process: l.process, Address: l.address}); err != nil {
		return fmt.Errorf("serve other replicas: %w", err)
	}
	l.logger.Info("serve other replicas", slog.String("listen", l.listener.Addr().String()), slog.String("address", l.address))
	return nil
}

// shutdown stops listening, and waits for running requests until ctx is done.
func (l *link) shutdown(ctx context.Context) {
	if l == nil || l.ended == nil {
		return
	}
	if l.server.Shutdown(ctx) != nil {
		_ = l.server.Close() // the requests are cut
	}
}

// close ends all requests.
func (l *link) close() {
	if l == nil {
		return
	}
	if l.ended != nil {
		_ = l.server.Close() // after shutdown there is nothing to close
		<-l.ended
	} else {
		_ = l.listener.Close() // it was never used
	}
	l.forwarder.Close()
}
