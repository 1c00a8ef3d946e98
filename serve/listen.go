package serve

import (
	"crypto/tls"
	"net"
	"net/http"
	"slices"
	"sync"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/internal/auth/authn"
	"github.com/mcpd/mcpd/internal/protocol/transport/httpguard"
)

// listen returns the listen options: the config file, overridden by the options
// of the front. The engine must have been loaded.
func (f *Front) listen() engine.Listen {
	l := f.engine.Snapshot().Listen()
	if f.options.Address != "" {
		l.Address = f.options.Address
	}
	if l.Address == "" {
		l.Address = DefaultAddress
	}
	l.Hosts, l.Origins = append(l.Hosts, f.options.Hosts...), append(l.Origins, f.options.Origins...)
	return l
}

// bind makes a server listen, with TLS if it is configured.
func (f *Front) bind(server *http.Server, l engine.Listen) (net.Listener, error) {
	server.ConnContext = authn.ConnContext
	var encrypted *authn.TLS
	if l.TLS != nil {
		o := tlsOptions(*l.TLS)
		o.Logger = f.engine.Logger()
		var err error
		if encrypted, err = authn.NewTLS(o); err != nil {
			return nil, err
		}
		server.ConnContext = encrypted.ConnContext
		if link := f.link.Load(); link != nil {
			link.clientTLS = encrypted
		}
	}
	mode := httpguard.SocketModeOwner
	if usesPeerAuth(f.engine.Snapshot()) {
		mode = httpguard.SocketModeShared
	}
	listener, err := httpguard.Listen(l.Address, mode)
	if err != nil {
		return nil, err
	}
	listener = httpguard.LimitListener(listener, httpguard.ConnLimits{})
	if encrypted != nil {
		listener = tls.NewListener(listener, encrypted.Config())
	}
	return listener, nil
}

func tlsOptions(t engine.ListenTLS) authn.TLSOptions {
	return authn.TLSOptions{CertFile: t.CertFile, KeyFile: t.KeyFile, ClientCAFile: t.ClientCAFile}
}

// watchListenConfig logs, until stop is called, when the configured listener
// differs from the bound one, because a change needs a restart.
func (f *Front) watchListenConfig(bound engine.Listen) (stop func()) {
	var mu sync.Mutex
	logged := bound
	check := func() {
		mu.Lock()
		defer mu.Unlock()
		now := f.listen()
		if equalListen(now, logged) {
			return
		}
		logged = now
		f.listenConfigChanged.Store(!equalListen(now, bound))
		if f.listenConfigChanged.Load() {
			f.engine.Logger().Warn("listen block changed, restart needed")
			return
		}
		f.engine.Logger().Info("listen block restored, no restart needed")
	}
	stop = f.engine.Watch(func([]string) { check() })
	check()
	return stop
}

func equalListen(a, b engine.Listen) bool {
	return a.Address == b.Address && slices.Equal(a.Hosts, b.Hosts) && slices.Equal(a.Origins, b.Origins) && filesOf(a.TLS) == filesOf(b.TLS)
}

// filesOf returns the files of a tls block; none without it.
func filesOf(t *engine.ListenTLS) [3]string {
	if t == nil {
		return [3]string{}
	}
	return [3]string{t.CertFile, t.KeyFile, t.ClientCAFile}
}
