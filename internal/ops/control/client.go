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
	"syscall"
	"time"
)

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
