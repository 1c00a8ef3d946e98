// Package workload defines the tools that every compared server offers, and the flags
// and the listener that the servers in Go share.
package workload

import (
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
)

// Options are the flags of a server in Go.
type Options struct {
	// Transport is http, sse or stdio.
	Transport string
	// Sessions selects HTTP with sessions. Without it, HTTP is stateless.
	Sessions bool
	// Tools is the number of tools, at least 2.
	Tools int
	// Isolated selects another process for the tools. Only the bare handler offers it.
	Isolated bool
	// Config is the directory of an mcpd.hcl, or empty. Only mcpd reads it.
	Config string
}

// Parse parses the flags of the program.
func Parse() Options {
	var o Options
	flag.StringVar(&o.Transport, "transport", "http", "http, sse or stdio")
	flag.BoolVar(&o.Sessions, "sessions", false, "HTTP with sessions")
	flag.BoolVar(&o.Isolated, "isolated", false, "run tools in another process")
	flag.IntVar(&o.Tools, "tools", 10, "the number of tools")
	flag.StringVar(&o.Config, "config", "", "the directory of an mcpd.hcl")
	flag.Parse()
	return o
}

// AddIn holds the arguments of the tool add and of the filler tools.
type AddIn struct {
	A float64 `json:"a"`
	B float64 `json:"b"`
}

// AddOut is the result of the tool add.
type AddOut struct {
	Sum float64 `json:"sum"`
}

// Add is the tool add.
func Add(in AddIn) AddOut { return AddOut{Sum: in.A + in.B} }

// The result of the tool blob is Row, Rows times: 100,000 bytes.
const (
	Row  = "a row of some table\n"
	Rows = 5000
)

// Blob is the tool blob. It makes its text in each call.
func Blob() string { return strings.Repeat(Row, Rows) }

// Descriptions of the tools, the same in all servers.
const (
	AddDescription    = "Adds two numbers and returns their sum."
	BlobDescription   = "Returns a text of 100,000 bytes."
	FillerDescription = "Adds two numbers, as one of many tools in a list."
)

// Fillers returns the names of the other tools of a server with a number of tools.
func Fillers(tools int) []string {
	names := make([]string, 0, tools)
	for i := 2; i < tools; i++ {
		names = append(names, fmt.Sprintf("tool_%05d", i))
	}
	return names
}

// Serve serves HTTP on a free port, and writes its address to standard error.
func Serve(h http.Handler) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	Announce(l.Addr())
	return http.Serve(l, h)
}

// Announce writes the address of a server to standard error, where the benchmark
// program reads it.
func Announce(a net.Addr) { fmt.Fprintf(os.Stderr, "listening on http://%s/\n", a) }
