package stdio

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/mcpd/mcpd/internal/base/jsonguard"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
)

const (
	// firstRequest is how long a client may take to send its first request.
	firstRequest = 10 * time.Second
	// nextRequest is how long it may take to send another one, such as the initialize
	// of a client that has tried server/discover before.
	nextRequest = 2 * time.Second
)

// Refuse answers the first requests of a client for a server that could not start: each
// of them gets an error with the message why. It returns once the client has been
// answered its initialize, when in ends, or when no request comes in time.
func Refuse(ctx context.Context, in io.Reader, out io.Writer, why string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	lines := make(chan []byte)
	go func() {
		defer close(lines)
		r := bufio.NewReaderSize(in, 64<<10)
		for {
			line, _, err := readLine(r, jsonguard.Client().Bytes)
			if len(bytes.TrimSpace(line)) > 0 {
				select {
				case lines <- line:
				case <-ctx.Done():
					return
				}
			}
			if err != nil {
				return
			}
		}
	}()
	patience := time.NewTimer(firstRequest)
	defer patience.Stop()
	for {
		select {
		case line, more := <-lines:
			if !more {
				return nil
			}
			answer, initialized := mcp.Decline(line, why)
			if len(answer) == 0 {
				continue
			}
			if _, err := out.Write(append(answer, '\n')); err != nil {
				return fmt.Errorf("write a message: %w", err)
			}
			if initialized {
				return nil
			}
			patience.Reset(nextRequest)
		case <-patience.C:
			return errors.New("the client sends no request")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
