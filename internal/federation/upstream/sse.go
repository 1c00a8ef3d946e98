package upstream

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
)

const (
	// maxEvents bounds the events before the response to a call. maxHandshakeEvents bounds the
	// events on one stream before the server is ready.
	maxEvents          = 10_000
	maxHandshakeEvents = 100
)

// sseFilter is the body of a response with server-sent events (HTML standard, section 9.2). It
// passes each message through the message filter, and writes the events anew with one line for
// each field.
type sseFilter struct {
	reader *bufio.Reader
	closer io.Closer
	filter *messageFilter
	stream *stream
	// resumes means that the client library resumes an interrupted stream after the last event,
	// so it also needs the ids of hidden events.
	resumes     bool
	eventCount  int
	sawEndpoint bool // the event with the POST endpoint has passed
	ready       []byte
	err         error
}

func newSSEFilter(body io.ReadCloser, f *messageFilter, s *stream, resumes bool) *sseFilter {
	return &sseFilter{reader: bufio.NewReader(body), closer: body, filter: f, stream: s, resumes: resumes}
}

func (f *sseFilter) Close() error { return f.closer.Close() }

func (f *sseFilter) Read(p []byte) (int, error) {
	for len(f.ready) == 0 {
		if f.err != nil {
			return 0, f.err
		}
		f.err = f.next()
	}
	n := copy(p, f.ready)
	f.ready = f.ready[n:]
	return n, nil
}

// next reads an event and puts what the client library may see into ready.
func (f *sseFilter) next() error {
	event, err := f.event()
	if err != nil {
		if f.stream.isListen && !isOversized(err) {
			return io.EOF // the stream is reopened however it ended
		}
		if !errors.Is(err, io.EOF) && !f.stream.isClosed() {
			f.fail(err)
		}
		return err
	}
	if err := f.count(); err != nil {
		f.fail(err)
		return err
	}
	if event.data, err = f.visibleData(&event); err != nil {
		f.fail(err)
		return err
	}
	if f.stream.isListen { // it is reopened, not resumed after an event
		event.id, event.retry = nil, nil
	}
	f.ready = event.text(f.resumes)
	return nil
}

// visibleData returns the data of an event that the client library may see: a message that the
// filter accepts, or once the POST endpoint (revision 2024-11-05). With HTTP+SSE the library
// would treat any other event as a message.
func (f *sseFilter) visibleData(event *sseEvent) ([]byte, error) {
	switch name := string(event.name); {
	case len(event.data) == 0:
	case name == "" || name == "message":
		return f.filter.incoming(event.data, f.stream)
	case name == "endpoint" && !f.resumes && !f.sawEndpoint:
		f.sawEndpoint = true
		return event.data, nil
	}
	if f.stream.call == nil {
		f.filter.throttle()
	}
	return nil, nil
}

// count counts an event and returns an error if there are too many.
func (f *sseFilter) count() error {
	f.eventCount++
	switch {
	case f.stream.call != nil && f.eventCount > maxEvents:
		return fmt.Errorf("the server sent %d events without a response: %w", maxEvents, errOversized)
	case f.stream.call == nil && f.eventCount > maxHandshakeEvents && !f.filter.ready.Load():
		return fmt.Errorf("the server sent %d events without being ready: %w", maxHandshakeEvents, errOversized)
	}
	return nil
}

// fail ends the call of the stream, or the connection if the stream is shared.
func (f *sseFilter) fail(err error) {
	if f.stream.call != nil {
		f.stream.call.failStream(err)
		return
	}
	f.filter.fail(err)
}

// sseEvent is one server-sent event.
type sseEvent struct{ name, id, retry, data []byte }

// text encodes the event. Without data it is empty, except for the position to resume from.
func (e *sseEvent) text(resumes bool) []byte {
	var out []byte
	write := func(name string, value []byte) {
		if len(value) > 0 {
			out = append(append(append(out, name...), ": "...), value...)
			out = append(out, '\n')
		}
	}
	if len(e.data) > 0 {
		write("event", e.name)
	}
	if len(e.data) > 0 || resumes {
		write("id", e.id)
		write("retry", clampRetry(e.retry))
	}
	write("data", bytes.ReplaceAll(e.data, []byte("\n"), []byte(" ")))
	if len(out) > 0 {
		out = append(out, '\n')
	}
	return out
}

// minRetry and maxRetry bound the reconnection time, in milliseconds: a server may end the
// stream after each event.
const (
	minRetry = 100
	maxRetry = 3_600_000
)

// clampRetry returns the server's reconnection time within these bounds, or nothing if it is
// invalid.
func clampRetry(retry []byte) []byte {
	n, err := strconv.ParseInt(string(retry), 10, 64)
	if err != nil {
		return nil
	}
	return strconv.AppendInt(nil, min(max(n, minRetry), maxRetry), 10)
}

var errLongEvent = fmt.Errorf("the server sent an event that is too long: %w", errOversized)

// event reads the fields of an event up to its blank line.
func (f *sseFilter) event() (sseEvent, error) {
	var found sseEvent
	size, limit := 0, f.filter.limits.Bytes+maxFields
	for {
		line, err := f.line(limit - size)
		if err != nil {
			return found, err
		}
		size += len(line)
		if len(line) == 0 {
			return found, nil
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "event":
			found.name = bytes.TrimSpace(value) // as the client library does
		case "id":
			found.id = value
		case "retry":
			found.retry = value
		case "data":
			if found.data != nil {
				found.data = append(found.data, '\n')
			}
			found.data = append(found.data, value...)
		}
	}
}

// maxFields bounds the bytes of an event in addition to its data.
const maxFields = 4 << 10

// line reads a line of at most limit bytes without its line end. The last line may lack it.
func (f *sseFilter) line(limit int) ([]byte, error) {
	line, err := readLine(f.reader, limit)
	if err == errLongLine {
		err = errLongEvent
	}
	return bytes.TrimRight(line, "\r\n"), err
}

// errLongLine is returned by [readLine] for a line that is too long.
var errLongLine = errors.New("a line is too long")

// readLine reads a line of at most limit bytes with its line end. The last line may lack it.
func readLine(from *bufio.Reader, limit int) (line []byte, err error) {
	for {
		piece, err := from.ReadSlice('\n')
		line = append(line, piece...)
		switch {
		case len(line) > limit:
			return nil, errLongLine
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && (len(line) == 0 || !errors.Is(err, io.EOF)):
			return nil, err
		}
		return line, nil
	}
}
