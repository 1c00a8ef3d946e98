package lsp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Limits of a session.
const (
	// maxMessage bounds a message of the client, in bytes. A larger one is skipped, and answered
	// with an error.
	maxMessage = 16 << 20
	// maxHeader bounds the header of a message, and maxHeaderLines its lines.
	maxHeader      = 4 << 10
	maxHeaderLines = 32
)

// framing is the channel of the base protocol: a header with the length, an empty line and the
// content. Unlike the framing of jrpc2, it bounds what it reads before it allocates memory.
//
// See https://microsoft.github.io/language-server-protocol/specifications/lsp/3.17/specification/#baseProtocol
type framing struct {
	in  *bufio.Reader
	out io.Writer
	// ended is set after the exit notification. No message follows it, so that the session ends even
	// if the client keeps the stream open.
	ended bool
}

func newFraming(in io.Reader, out io.Writer) *framing {
	return &framing{in: bufio.NewReaderSize(in, maxHeader), out: out}
}

// refusedMessage replaces a message that is too large or a batch. It is not valid, so its answer is an
// error.
var refusedMessage = []byte(`{"jsonrpc":"refused"}`)

// Recv returns the next message, and [io.EOF] after the last one.
func (f *framing) Recv() ([]byte, error) {
	if f.ended {
		return nil, io.EOF
	}
	size, err := f.header()
	if err != nil {
		return nil, err
	}
	if size > maxMessage {
		if _, err := io.CopyN(io.Discard, f.in, size); err != nil {
			return nil, fmt.Errorf("skip message: %w", err)
		}
		return refusedMessage, nil
	}
	message := make([]byte, size)
	if _, err := io.ReadFull(f.in, message); err != nil {
		return nil, fmt.Errorf("read message: %w", err)
	}
	if bytes.HasPrefix(bytes.TrimLeft(message, " \t\r\n"), []byte("[")) {
		return refusedMessage, nil // the protocol has no batches
	}
	f.ended = isExit(message)
	return message, nil
}

// header reads a header and returns the length of the content.
func (f *framing) header() (size int64, err error) {
	size = -1
	for range maxHeaderLines {
		line, err := f.in.ReadSlice('\n')
		switch {
		case errors.Is(err, io.EOF) && len(line) == 0:
			return 0, io.EOF
		case errors.Is(err, bufio.ErrBufferFull):
			return 0, fmt.Errorf("read header: a line is longer than %d bytes", maxHeader)
		case err != nil:
			return 0, fmt.Errorf("read header: %w", err)
		}
		text := strings.TrimRight(string(line), "\r\n")
		if text == "" {
			if size < 0 {
				return 0, errors.New("read header: Content-Length is missing")
			}
			return size, nil
		}
		name, value, ok := strings.Cut(text, ":")
		if !ok {
			return 0, errors.New("read header: a line has no colon")
		}
		if strings.EqualFold(strings.TrimSpace(name), "Content-Length") {
			if size, err = strconv.ParseInt(strings.TrimSpace(value), 10, 64); err != nil || size < 0 {
				return 0, errors.New("read header: Content-Length is no length")
			}
		}
	}
	return 0, fmt.Errorf("read header: more than %d lines", maxHeaderLines)
}

// isExit reports whether a message is the exit notification.
func isExit(message []byte) bool {
	if len(message) > maxHeader || !bytes.Contains(message, []byte("exit")) {
		return false
	}
	var m struct {
		Method string `json:"method"`
	}
	return json.Unmarshal(message, &m) == nil && m.Method == "exit"
}

// Send writes a message.
func (f *framing) Send(message []byte) error {
	framed := append(fmt.Appendf(nil, "Content-Length: %d\r\n\r\n", len(message)), message...)
	if _, err := f.out.Write(framed); err != nil {
		return fmt.Errorf("write message: %w", err)
	}
	return nil
}

// Close does nothing: the caller of [Serve] owns the streams.
func (f *framing) Close() error { return nil }
