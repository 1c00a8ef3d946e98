package oauth

import (
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
)

// listen has users come back to this machine, unless they can already; mu is held.
func (u *Users) listen() error {
	if u.server != nil {
		return nil
	}
	back, err := url.Parse(u.client.RedirectURL)
	if err != nil {
		return errReturn
	}
	listener, err := net.Listen("tcp", back.Host)
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler: u.back(back), ReadTimeout: patience, WriteTimeout: 2 * patience, IdleTimeout: patience, MaxHeaderBytes: 32 << 10,
		ErrorLog: log.New(io.Discard, "", 0), // what a browser does wrong is nobody's business
	}
	u.server, u.door = server, listener
	u.issuer.flights.Go(func() { _ = server.Serve(listener) }) // ends when it is closed
	return nil
}

// stop closes the door; mu is held.
func (u *Users) stop() {
	if u.server != nil {
		_ = u.door.Close() // at once, also when the server has not begun to listen
		_ = u.server.Close()
		u.server, u.door = nil, nil
	}
}

// back takes users back to this machine: one path, one method, one name.
func (u *Users) back(to *url.URL) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.Host != to.Host || r.URL.Path != to.Path {
			dress(w.Header())
			w.WriteHeader(http.StatusNotFound)
			return
		}
		u.welcome(w, r)
	})
}
