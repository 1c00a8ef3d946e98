package stdio

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/mcpd/mcpd/internal/protocol/mcp"
)

// receive hands the lines of in, up to the limit in bytes, to the connection,
// and calls ended at their end. That of in is no error, and neither is one that
// comes once everything is over.
func receive(ctx context.Context, in io.Reader, conn *mcp.Conn, limit int, ended func(error)) {
	lines := bufio.NewReaderSize(in, 64<<10)
	var err error // that came with the last line
	conn.Pump(ctx, func() (text []byte, served func(), more bool) {
		for err == nil {
			var tooLong bool
			text, tooLong, err = readLine(lines, limit)
			switch {
			case tooLong:
				conn.Reject(fmt.Sprintf("the line is longer than %d bytes", limit))
			case len(bytes.TrimSpace(text)) > 0:
				return text, nil, true
			}
		}
		if errors.Is(err, io.EOF) || ctx.Err() != nil {
			ended(nil)
		} else {
			ended(fmt.Errorf("read a message: %w", err))
		}
		return nil, nil, false
	})
}

// readLine returns the next line, without its end, in memory of its own. A line
// over the limit is skipped, at the cost of no memory. The last line may come
// with the error.
func readLine(r *bufio.Reader, limit int) (line []byte, tooLong bool, err error) {
	for {
		piece, err := r.ReadSlice('\n')
		if err == nil {
			piece = bytes.TrimSuffix(piece[:len(piece)-1], []byte{'\r'})
		}
		if len(line)+len(piece) > limit {
			tooLong, line = true, nil
		}
		if !tooLong {
			line = append(line, piece...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, tooLong, err
		}
	}
}
