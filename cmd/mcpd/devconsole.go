package main

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/mcpd/mcpd/internal/ops/control"
)

// wantConsole lets serveConsole open the console, which it does once the files are served.
func (d *devSession) wantConsole() {
	d.update(func(s *devState) {
		if len(s.Console) == 0 {
			s.Console = []string{"opens when the files are served"}
		}
	})
	notify(d.opens)
}

// hideConsole removes the address of the console from the view. The console stays.
func (d *devSession) hideConsole() { d.update(func(s *devState) { s.Console = nil }) }

// serveConsole serves the console of a server from the first wish of the user until ctx is done.
func (d *devSession) serveConsole(ctx context.Context, o *runningServer) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.opens:
		}
		if err := d.openConsole(ctx, o); err != nil {
			d.showConsole("not served: " + err.Error())
		}
	}
}

// openConsole serves the console on a free port until ctx is done, and opens it each time that the
// user wants it. The console has the rights of the control socket, but does not need the socket.
func (d *devSession) openConsole(ctx context.Context, o *runningServer) error {
	socket := ""
	if o.control != nil {
		var err error
		if socket, err = filepath.Abs(d.env.resolve(d.flags.control.path(d.env, &d.flags.files))); err != nil {
			return err
		}
	}
	answer := func(ctx context.Context, r control.Request) (context.Context, any, error) {
		result, err := o.answer(ctx, r)
		return ctx, result, err
	}
	c, err := listenConsole(d.env, processBackend{answer}, 0, socket)
	if err != nil {
		return err
	}
	defer c.Close()
	page := d.flags.files.stateFileFor(d.env, "."+c.port+".html")
	if page != "" {
		defer func() { _ = d.env.disk.remove(page) }() // it may not exist
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Serve(ctx, c.listener) }()
	for {
		address := c.url + c.NewToken()
		lines := []string{address, "It works once, within five minutes. o makes a new one, Esc hides it."}
		if d.screen != nil {
			if err := openPage(d.env, page, address); err != nil {
				lines = append(lines, "open a browser: "+err.Error()+"; open the address yourself")
			}
		}
		d.showConsole(lines...)
		select {
		case err := <-ended:
			return err
		case <-d.opens:
		}
	}
}

// openPage is [openAddress] with a page in a directory that may not exist.
func openPage(e env, page, address string) error {
	if page == "" {
		return errors.New("no directory for the page that leads to the address")
	}
	if err := e.disk.mkdirAll(filepath.Dir(page), 0o700); err != nil {
		return err
	}
	return openAddress(e, page, address)
}

// showConsole shows lines about the console in the view. Without a view, it prints the first one.
func (d *devSession) showConsole(lines ...string) {
	d.update(func(s *devState) { s.Console = lines })
	d.line("console", "%s", lines[0])
}
