package main

import (
	"context"
	"errors"
	"fmt"
	"html"
	"net"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/mcpd/mcpd/internal/ops/console"
	"github.com/mcpd/mcpd/internal/ops/control"
)

// consoleFlags holds the flags of the console.
type consoleFlags struct {
	server controlClientFlags
	port   int
	noOpen bool
}

func newConsole(e env) *cobra.Command {
	var f consoleFlags
	cmd := &cobra.Command{
		Use:   "console",
		Short: "Open a web console of the running server",
		Long: `Console serves a web console of the running server on a loopback port, and opens it in a
browser: what the server serves, what is broken, a form for each tool, its calls, policies,
upstream servers, keys, tokens and tasks.

The address that it prints works once, within five minutes. The browser then has a session
until the console ends with Ctrl-C, for 12 hours at most. The path of the address is a secret
of this console. The console is the user who runs
it: it calls tools as the local user, or as another principal that you choose.`,
		Example: `  mcpd console
  mcpd console --no-open --port 4321
  mcpd console --control /run/mcpd/control.sock`,
		Args: noOperand,
		RunE: func(cmd *cobra.Command, _ []string) error { return runConsole(cmd.Context(), e, &f) },
	}
	cmd.Flags().IntVar(&f.port, "port", 0, "listen on this loopback `PORT` (default a free one)")
	cmd.Flags().BoolVar(&f.noOpen, "no-open", false, "print the address, and open no browser")
	f.server.addServer(cmd)
	return cmd
}

// runConsole serves the console until a signal.
func runConsole(ctx context.Context, e env, f *consoleFlags) (err error) {
	if f.port < 0 || f.port > 65535 {
		return usageError("--port takes a port from 1 to 65535, or 0 for a free one")
	}
	path := f.server.control.path(e, &f.server.files)
	if path == "" {
		return usageError("no default directory for the control socket; name the socket with --control PATH")
	}
	socket, err := filepath.Abs(e.resolve(path))
	if err != nil {
		return findingsError("%v", err)
	}
	var running statusResult
	switch _, err := callControl(ctx, socket, control.Request{Action: control.Status}, statusPatience, &running); {
	case errors.Is(err, control.ErrNoServer):
		return f.server.noServer(e, path)
	case err != nil:
		return findingsError("%v", err)
	}
	stopped, _, stop := e.service.signals()
	defer stop()
	c, err := listenConsole(e, consoleBackend{socket}, f.port, socket)
	if err != nil {
		return findingsError("%v", err)
	}
	defer c.Close()
	address := c.url + c.NewToken()
	if _, err := fmt.Fprintf(e.stdout, "console: %s\n", address); err != nil {
		return err
	}
	if !f.noOpen {
		page := socket + "." + c.port + ".html"
		if err := openAddress(e, page, address); err != nil {
			warnf(e, "open a browser: %v; open the address yourself", err)
		}
		defer func() { _ = e.disk.remove(page) }() // it may not exist
	}
	return c.Serve(stopped, c.listener)
}

// localConsole is a console on a port of 127.0.0.1.
type localConsole struct {
	*console.Console
	listener net.Listener
	port     string
	url      string // without a path
}

// listenConsole returns a console on a port, or on a free one if port is 0. The caller must serve
// it on its listener, and close it. socket is the control socket of the server, or "" for none.
func listenConsole(e env, b console.Backend, port int, socket string) (*localConsole, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return nil, err
	}
	c := &localConsole{listener: listener, port: strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)}
	c.url = "http://127.0.0.1:" + c.port
	o := console.Options{Hosts: []string{"127.0.0.1:" + c.port}, Now: e.now}
	if socket != "" {
		o.Attach = []string{e.ownCommand(), "attach", "--control", socket}
	}
	if c.Console, err = console.New(b, o); err != nil {
		_ = listener.Close()
		return nil, err
	}
	return c, nil
}

// Close closes the listener and the console.
func (c *localConsole) Close() {
	_ = c.listener.Close() // [console.Console.Serve] may have closed it
	c.Console.Close()
}

// openAddress opens an address in the browser of the user. Other users may see the arguments of
// programs, so the browser gets the path of a private page that leads to the address.
func openAddress(e env, page, address string) error {
	content := `<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer"><title>mcpd console</title><meta http-equiv="refresh" content="0; url=` +
		html.EscapeString(address) + `"><a href="` + html.EscapeString(address) + `">Open the console</a>` + "\n"
	if err := e.disk.writePrivate(page, []byte(content)); err != nil {
		return err
	}
	return e.executables.open(page)
}

// consoleBackend is a server at the socket with this path.
type consoleBackend struct{ socket string }

// Do sends a request to the server.
func (b consoleBackend) Do(ctx context.Context, r control.Request, into any) error {
	return control.Do(ctx, b.socket, r, into)
}

// Open starts a stream of the server.
func (b consoleBackend) Open(ctx context.Context, r control.Request) (console.Stream, error) {
	var first any
	conn, err := control.Open(ctx, b.socket, r, &first)
	if err != nil {
		return nil, err
	}
	return conn, nil
}
