// Package control is the control protocol between a running server and the user who
// runs it. It reports the state of the server and the files of its last revisions,
// reloads its files, lists and drops stored user tokens, and attaches clients of the
// server, or says why it disconnected them. For the console it describes the items and
// policies of the server, calls items, and lists calls, keys and tasks.
//
// A [Server] listens on a Unix socket; [Do] is the client. A connection carries one
// [Request] and its response. Each is a line of JSON with the [Version] of the
// protocol:
//
//	{"control":1,"do":"status"}
//	{"control":1,"do":"item","params":{"kind":"tool","address":"add"}}
//	{"control":1,"result":{…}}
//
// The actions of the console and their results are in actions.go; for other actions, the caller
// of the package defines the content of the result. A failed request gets the response
// {"control":1,"error":"…"}. After the response to attach, try or calls, the connection
// carries another protocol ([Stream], [Open]), and accepts no further request of this one.
// For try and calls, that is lines of JSON: [Conn.Send], [Conn.Receive].
//
// The socket is for one user: its mode is 0600, and no other user can write in its
// directory. Where the system reports socket peers, connections of other users except
// root are closed without a response. Requests, responses, their duration and the
// number of connections are bounded.
//
// No request stops the server or changes what it serves in another way than its files
// do. User tokens and keys can be dropped, but not read. The package does not listen on a
// network.
package control

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/mcpd/mcpd/internal/base/jsonguard"
)

// Version is the protocol version. Client and server must have the same one.
const Version = 1

// Action is the action of a request.
type Action string

const (
	// Status returns the state of the server.
	Status Action = "status"
	// Fleet lists the servers that share the state of the server.
	Fleet Action = "fleet"
	// Reload loads all files again and returns the result.
	Reload Action = "reload"
	// Tokens lists the stored OAuth tokens.
	Tokens Action = "tokens"
	// DropTokens drops some of them and returns their list.
	DropTokens Action = "drop_tokens"
	// History returns the last revisions, and with a revision in the request its files.
	History Action = "history"
	// Attach makes the connection one of a client of the server: see [Open].
	Attach Action = "attach"
	// Detached returns why the server disconnected an attached client, once.
	Detached Action = "detached"
)

// actions lists all actions. takesParams reports that the action has [Request].Params.
var actions = [...]struct {
	name        Action
	takesParams bool
}{
	{Status, false}, {Fleet, false}, {Reload, false}, {Tokens, false}, {DropTokens, false}, {History, false}, {Attach, false}, {Detached, false},
	{Catalog, false}, {Item, true}, {Explain, true}, {Matrix, true}, {Try, true}, {Complete, true}, {Calls, true}, {Audit, true},
	{PolicyFiles, true}, {Replay, true}, {Limits, false},
	{Pins, false}, {Accept, true}, {Keys, false}, {RevokeKey, true}, {Tasks, false}, {CancelTask, true},
}

// known returns whether an action exists, and whether it takes parameters.
func (a Action) known() (ok, takesParams bool) {
	for _, known := range actions {
		if known.name == a {
			return true, known.takesParams
		}
	}
	return false, false
}

// actionNames lists the names of all actions for an error.
func actionNames() string {
	names := make([]string, len(actions))
	for i, a := range actions {
		names[i] = string(a.name)
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// Request is a request to a server.
type Request struct {
	Action Action `json:"do"`
	// Params are the parameters of an action of the console; see [Request.DecodeParams].
	Params json.RawMessage `json:"params,omitempty"`
	// Color allows terminal colors in text for people.
	Color bool `json:"color,omitempty"`
	// Revision selects a revision for History: the start of its name, or [Previous].
	Revision string `json:"revision,omitempty"`
	// Client is the number of an attached client for Detached.
	Client uint64 `json:"client,omitempty"`
	TokenFilter
}

// Previous selects the revision before the one that serves.
const Previous = "previous"

// TokenFilter selects tokens. Empty fields match any token. DropTokens requires a secret or a
// principal.
type TokenFilter struct {
	Secret    string `json:"secret,omitempty"`
	Principal string `json:"principal,omitempty"`
	Kind      string `json:"kind,omitempty"`
	Issuer    string `json:"issuer,omitempty"`
}

// Bounds of messages. A request with parameters, and a line that a client sends on a stream,
// may have maxParams bytes.
const (
	maxRequest = 4 << 10
	maxParams  = 1 << 20
	maxAnswer  = 64 << 20
)

// requestLimits bound a request without parameters, and paramsLimits one with parameters, which
// may contain the arguments of a call.
var (
	requestLimits = jsonguard.Limits{Bytes: maxRequest, Depth: 4, Tokens: 64}
	paramsLimits  = jsonguard.Limits{Bytes: maxParams, Depth: jsonguard.Client().Depth + 3, Tokens: jsonguard.Client().Tokens + 256}
	answerLimits  = jsonguard.Limits{Bytes: maxAnswer, Depth: 64, Tokens: 1_000_000}
)

// wireRequest is the wire format of a request.
type wireRequest struct {
	Control int `json:"control"`
	Request
}

// wireResponse is the wire format of a response: a result or an error.
type wireResponse struct {
	Control int             `json:"control"`
	Error   string          `json:"error,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
}

// unknownRequest is the start of the error for an action that a server does not know. Servers of
// earlier versions use it too.
const unknownRequest = "unknown request; "

// parseRequest parses a request. The error goes to the client.
func parseRequest(line []byte) (Request, error) {
	var r wireRequest
	if err := jsonguard.Check(line, paramsLimits); err != nil {
		return Request{}, fmt.Errorf("read request: %w", err)
	}
	if err := json.Unmarshal(line, &r); err != nil { // it may have members of later versions
		return Request{}, fmt.Errorf("read request: %w", withoutValues(err))
	}
	known, takesParams := r.Action.known()
	switch {
	case r.Control != Version:
		return Request{}, fmt.Errorf("this server speaks version %d of the control protocol; use the same mcpd as the server", Version)
	case !known:
		return Request{}, errors.New(unknownRequest + "use " + actionNames())
	case r.Action == DropTokens && r.Secret == "" && r.Principal == "":
		return Request{}, errors.New("drop_tokens needs a secret or a principal")
	case takesParams:
		return r.Request, nil
	case r.Params != nil:
		return Request{}, fmt.Errorf("%s takes no params", r.Action)
	}
	if err := jsonguard.Check(line, requestLimits); err != nil {
		return Request{}, fmt.Errorf("read request: %w", err)
	}
	return r.Request, nil
}

// NewRequest returns a request of the console. params are encoded as JSON, unless they are nil.
func NewRequest(do Action, params any) (Request, error) {
	r := Request{Action: do}
	if params == nil {
		return r, nil
	}
	var err error
	if r.Params, err = json.Marshal(params); err != nil {
		return Request{}, fmt.Errorf("encode params of %s: %w", do, err)
	}
	return r, nil
}

// DecodeParams decodes the parameters of a request into a pointer to a struct. Without parameters
// the struct does not change. A member that the struct does not have is an error.
func (r Request) DecodeParams(into any) error {
	if len(r.Params) == 0 {
		return nil
	}
	if !jsonguard.IsObject(r.Params) {
		return fmt.Errorf("params of %s must be a JSON object", r.Action)
	}
	if err := decodeStrict(r.Params, into); err != nil {
		return fmt.Errorf("params of %s: %w", r.Action, err)
	}
	return nil
}

// decodeStrict decodes JSON that has been checked, and rejects unknown members.
func decodeStrict(data []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	return withoutValues(decoder.Decode(into))
}

// withoutValues returns an error of package json that names members, without values and Go types.
func withoutValues(err error) error {
	var other *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &other) && other.Field != "":
		return fmt.Errorf("%.100s has the wrong type", other.Field[strings.LastIndexByte(other.Field, '.')+1:])
	case errors.As(err, &other):
		return errors.New("the JSON has the wrong type")
	case strings.HasPrefix(err.Error(), "json: unknown field"):
		return fmt.Errorf("%.100s", strings.TrimPrefix(err.Error(), "json: "))
	}
	return errors.New("the JSON cannot be decoded") // such as a time of another format
}

// parseAnswer decodes a response. It returns the error of the server, if any.
func parseAnswer(line []byte, into any) error {
	var a wireResponse
	if err := decode(line, answerLimits, &a); err != nil {
		return fmt.Errorf("decode response: %w", err)
	}
	switch {
	case strings.HasPrefix(a.Error, unknownRequest):
		return errors.New("the server is an older mcpd without this request; restart it with this mcpd")
	case a.Error != "":
		return errors.New(a.Error)
	case a.Control != Version:
		return fmt.Errorf("the server uses version %d of the control protocol; use the same mcpd as the server", a.Control)
	}
	if err := json.Unmarshal(a.Result, into); err != nil {
		return fmt.Errorf("decode response: %w", err)
	}
	return nil
}

func encodeAnswer(result any, err error) []byte {
	a := wireResponse{Control: Version}
	if err == nil {
		a.Result, err = json.Marshal(result)
	}
	if err != nil {
		a.Error, a.Result = err.Error(), nil
	}
	line, err := json.Marshal(a)
	if err != nil {
		return nil // cannot happen: a number, a string and valid JSON
	}
	return append(line, '\n')
}

func decode(line []byte, limits jsonguard.Limits, into any) error {
	if err := jsonguard.Check(line, limits); err != nil {
		return err
	}
	return json.Unmarshal(line, into)
}

// ErrNoServer is the error for a socket without a server.
var ErrNoServer = errors.New("no server answers there")

// Do sends a request to the server at the socket path and decodes the result into
// into, a pointer. It stops when ctx is done. The error is [ErrNoServer] if the socket
// does not exist or no server listens on it.
func Do(ctx context.Context, path string, r Request, into any) error {
	if err := exchange(ctx, path, r, into); err != nil {
		return fmt.Errorf("ask the server at %s: %w", path, err)
	}
	return nil
}

func exchange(ctx context.Context, path string, r Request, into any) error {
	conn, err := connect(ctx, path)
	if err != nil {
		return err
	}
	defer conn.Close()
	reader := bufio.NewReader(io.LimitReader(conn, maxAnswer))
	return ask(ctx, conn, r, func() ([]byte, error) { return reader.ReadBytes('\n') }, into)
}

// Open sends a request, such as [Attach], whose response starts another protocol. It
// decodes the result into into, a pointer, and returns the connection for that
// protocol, which the caller must close. The response is as short as a request. ctx ends
// only the request. Errors are as in [Do].
func Open(ctx context.Context, path string, r Request, into any) (*Conn, error) {
	conn, err := connect(ctx, path)
	if err == nil {
		reader := bufio.NewReaderSize(conn, maxRequest)
		if err = ask(ctx, conn, r, func() ([]byte, error) { return reader.ReadSlice('\n') }, into); err == nil {
			if err = conn.SetDeadline(time.Time{}); err == nil {
				return newConn(conn, reader), nil
			}
		}
		_ = conn.Close()
	}
	return nil, fmt.Errorf("ask the server at %s: %w", path, err)
}

func connect(ctx context.Context, path string) (net.Conn, error) {
	conn, err := dial(ctx, path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ENOTDIR) {
		return nil, ErrNoServer
	}
	return conn, err
}

// ask sends a request over a connection and decodes the response, a line that read returns.
func ask(ctx context.Context, conn net.Conn, r Request, read func() ([]byte, error), into any) error {
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })()
	line, err := json.Marshal(wireRequest{Control: Version, Request: r})
	if err != nil {
		return err
	}
	var response []byte
	if _, err = conn.Write(append(line, '\n')); err == nil {
		response, err = read()
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, io.EOF), errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.ECONNRESET):
		return errors.New("the server closed the connection: it stopped, is overloaded, or does not answer this user")
	case err != nil:
		return err
	}
	return parseAnswer(response, into)
}

func dial(ctx context.Context, path string) (net.Conn, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	p, err := openSocketDir(path)
	if err != nil {
		return nil, err
	}
	conn, err := new(net.Dialer).DialContext(ctx, "unix", p.short)
	return conn, errors.Join(err, p.close())
}
