// Package control lets the user who runs a server ask it how it is and whose tokens
// it has, and have it read its files again or drop such tokens.
//
// A [Server] listens on a Unix socket; [Ask] is the other end. A connection
// carries one [Request] and its answer, a line of JSON each, which name the
// [Version] of the protocol:
//
//	{"control":1,"do":"status"}
//	{"control":1,"result":{…}}
//
// What the result holds is a matter of those who answer and ask. A request that
// cannot be carried out is answered with {"control":1,"error":"…"}.
//
// The socket is for one user: its mode is 0600, it stands in a folder in which
// nobody else can write, and where the system tells who connects, all but that
// user and root are turned away without a word. Requests, answers, the time that
// they may take and the connections at once are bounded.
//
// There is no request that stops a server, and none that changes what it serves
// otherwise than its files do; what a user let it have can be dropped, and not be
// had. Nothing here listens on a network.
package control

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/mcpd/mcpd/internal/base/jsonguard"
)

// Version is that of the protocol. One that asks and one that answers understand
// each other when they have the same.
const Version = 1

// Verb says what a server is to do.
type Verb string

const (
	// Status asks how the server is.
	Status Verb = "status"
	// Reload has it read all files again, and asks what came of it.
	Reload Verb = "reload"
	// Tokens asks whose OAuth tokens the server has.
	Tokens Verb = "tokens"
	// DropTokens has it drop some of them, and asks which those were.
	DropTokens Verb = "drop_tokens"
)

// verbs are all that there are.
var verbs = [...]Verb{Status, Reload, Tokens, DropTokens}

// Request is what a server is asked.
type Request struct {
	Do Verb `json:"do"`
	// Color says that text for people may have the colours of a terminal.
	Color bool `json:"color,omitempty"`
	Which
}

// Which says which tokens are meant: empty members mean any. Where tokens are dropped,
// it names a secret or a principal.
type Which struct {
	Secret    string `json:"secret,omitempty"`
	Principal string `json:"principal,omitempty"`
	Kind      string `json:"kind,omitempty"`
	Issuer    string `json:"issuer,omitempty"`
}

// The bounds of what crosses.
const (
	maxRequest = 4 << 10
	maxAnswer  = 64 << 20
)

// asked is a request as it crosses.
type asked struct {
	Control int `json:"control"`
	Request
}

// told is an answer as it crosses: a result, or an error.
type told struct {
	Control int             `json:"control"`
	Error   string          `json:"error,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
}

// parseRequest reads a request. The error is for who has sent it.
func parseRequest(line []byte) (Request, error) {
	var r asked
	if err := decode(line, jsonguard.Limits{Bytes: maxRequest, Depth: 4, Tokens: 64}, &r); err != nil {
		return Request{}, fmt.Errorf("read request: %w", err)
	}
	switch {
	case r.Control != Version:
		return Request{}, fmt.Errorf("this server speaks version %d of the control protocol; use the mcpd that serves", Version)
	case !slices.Contains(verbs[:], r.Do):
		return Request{}, errors.New("there is no such request; ask for status, reload, tokens or drop_tokens")
	case r.Do == DropTokens && r.Secret == "" && r.Principal == "":
		return Request{}, errors.New("whose tokens are to be dropped is not said; name a secret or a principal")
	}
	return r.Request, nil
}

// parseAnswer reads an answer. An error that the server tells is the error.
func parseAnswer(line []byte, into any) error {
	var a told
	if err := decode(line, jsonguard.Limits{Bytes: maxAnswer, Depth: 64, Tokens: 1_000_000}, &a); err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	switch {
	case a.Error != "":
		return errors.New(a.Error)
	case a.Control != Version:
		return fmt.Errorf("the server speaks another version of the control protocol (%d); use its mcpd", a.Control)
	}
	if err := json.Unmarshal(a.Result, into); err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	return nil
}

func encodeAnswer(result any, err error) []byte {
	a := told{Control: Version}
	if err == nil {
		a.Result, err = json.Marshal(result)
	}
	if err != nil {
		a.Error, a.Result = err.Error(), nil
	}
	line, err := json.Marshal(a)
	if err != nil {
		return nil // a number, a text and JSON that was just made have no such error
	}
	return append(line, '\n')
}

func decode(line []byte, limits jsonguard.Limits, into any) error {
	if err := jsonguard.Check(line, limits); err != nil {
		return err
	}
	return json.Unmarshal(line, into)
}

// ErrNobody is the error of a socket on which no server answers.
var ErrNobody = errors.New("no server answers there")

// Ask sends a request to the server that has the socket at a path, and decodes
// the result. It takes as long as ctx lets it. The error of a socket that is not
// there, or that nobody listens on, is [ErrNobody].
func Ask(ctx context.Context, path string, r Request, into any) error {
	if err := ask(ctx, path, r, into); err != nil {
		return fmt.Errorf("ask the server at %s: %w", path, err)
	}
	return nil
}

func ask(ctx context.Context, path string, r Request, into any) error {
	conn, err := dial(ctx, path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ENOTDIR) {
		return ErrNobody
	}
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })()
	line, err := json.Marshal(asked{Control: Version, Request: r})
	if err != nil {
		return err
	}
	var said []byte
	if _, err = conn.Write(append(line, '\n')); err == nil {
		said, err = bufio.NewReader(io.LimitReader(conn, maxAnswer)).ReadBytes('\n')
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, io.EOF), errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.ECONNRESET):
		return errors.New("it has ended, has too much to answer, or does not answer this user")
	case err != nil:
		return err
	}
	return parseAnswer(said, into)
}

func dial(ctx context.Context, path string) (net.Conn, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	p, err := enter(path)
	if err != nil {
		return nil, err
	}
	conn, err := new(net.Dialer).DialContext(ctx, "unix", p.short)
	return conn, errors.Join(err, p.leave())
}
