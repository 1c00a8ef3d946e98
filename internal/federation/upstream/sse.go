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
	// maxEvents is how many events may come before the answer to a call, and maxShaking
	// how many on one stream before the server is ready.
	maxEvents          = 10_000
	maxHandshakeEvents = 100
)

// events is the body of an answer that is a stream of events (the HTML standard,
// section 9.2), of which the wire sees each message first. What it lets through is
// written anew: one line of each field.
type sseFilter struct {
	reader *bufio.Reader
	closer io.Closer
	filter *messageFilter
	stream *stream
	// resumes says that the client library goes on behind the last event where a stream
	// was cut, and so is told of those that it does not see.
	resumes     bool
	eventCount  int
	sawEndpoint bool // the event has passed that says where to post to
	ready       []byte
	err         error
}

func newSSEFilter(body io.ReadCloser, w *messageFilter, on *stream, resumes bool) *sseFilter {
	return &sseFilter{reader: bufio.NewReader(body), closer: body, filter: w, stream: on, resumes: resumes}
}

func (e *sseFilter) Close() error { return e.closer.Close() }

func (e *sseFilter) Read(p []byte) (int, error) {
	for len(e.ready) == 0 {
		if e.err != nil {
			return 0, e.err
		}
		e.err = e.next()
	}
	n := copy(p, e.ready)
	e.ready = e.ready[n:]
	return n, nil
}

// next reads an event, and puts what the client library is to see of it into ready.
func (e *sseFilter) next() error {
	event, err := e.event()
	if err != nil {
		if e.stream.isListen && !isOversized(err) {
			return io.EOF // it is asked for again, however it has ended
		}
		if !errors.Is(err, io.EOF) && !e.stream.isClosed() {
			e.fail(err)
		}
		return err
	}
	if err := e.count(); err != nil {
		e.fail(err)
		return err
	}
	if event.data, err = e.visibleData(&event); err != nil {
		e.fail(err)
		return err
	}
	if e.stream.isListen { // which is asked for again, and not gone on with behind an event
		event.id, event.retry = nil, nil
	}
	e.ready = event.text(e.resumes)
	return nil
}

// seenOf returns what the client library is to see of the data of an event: nothing but a
// message that the wire has let through, and once where to post to (revision 2024-11-05).
// Over HTTP with SSE it would take any other event for a message, too.
func (e *sseFilter) visibleData(event *sseEvent) ([]byte, error) {
	switch name := string(event.name); {
	case len(event.data) == 0:
	case name == "" || name == "message":
		return e.filter.incoming(event.data, e.stream)
	case name == "endpoint" && !e.resumes && !e.sawEndpoint:
		e.sawEndpoint = true
		return event.data, nil
	}
	if e.stream.call == nil {
		e.filter.throttle()
	}
	return nil, nil
}

// count counts an event, and returns what is wrong with there being so many.
func (e *sseFilter) count() error {
	e.eventCount++
	switch {
	case e.stream.call != nil && e.eventCount > maxEvents:
		return fmt.Errorf("the server has sent %d events and no answer: %w", maxEvents, errOversized)
	case e.stream.call == nil && e.eventCount > maxHandshakeEvents && !e.filter.ready.Load():
		return fmt.Errorf("the server has sent %d events and is not ready: %w", maxHandshakeEvents, errOversized)
	}
	return nil
}

// broken ends the connection where the stream was all of it, and the call where it was
// that of one.
func (e *sseFilter) fail(err error) {
	if e.stream.call != nil {
		e.stream.call.failStream(err)
		return
	}
	e.filter.fail(err)
}

// event is one of a stream.
type sseEvent struct{ name, id, retry, data []byte }

// text returns the event as it is written: nothing of one that has no data, but for where
// to go on if it is to be told.
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

// leastRetry and mostRetry bound when a client goes on with a stream, in milliseconds: a
// server may end one behind each event.
const (
	minRetry = 100
	maxRetry = 3_600_000
)

// patient returns the time that a server wants a client to wait, within these bounds;
// nothing of what is no time.
func clampRetry(retry []byte) []byte {
	n, err := strconv.ParseInt(string(retry), 10, 64)
	if err != nil {
		return nil
	}
	return strconv.AppendInt(nil, min(max(n, minRetry), maxRetry), 10)
}

var errLongEvent = fmt.Errorf("the server sends an event that is too long: %w", errOversized)

// event reads the fields of an event, up to the blank line behind it.
func (e *sseFilter) event() (sseEvent, error) {
	var found sseEvent
	size, most := 0, e.filter.limits.Bytes+maxFields
	for {
		line, err := e.line(most - size)
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

// maxFields is how much of an event may be no data, in bytes.
const maxFields = 4 << 10

// line reads a line of at most so many bytes, without its end. The last one may lack it.
func (e *sseFilter) line(most int) ([]byte, error) {
	line, err := readLine(e.reader, most)
	if err == errLongLine {
		err = errLongEvent
	}
	return bytes.TrimRight(line, "\r\n"), err
}

// errLongLine is the error of [readLine] for a line that is too long.
var errLongLine = errors.New("a line is too long")

// readLine reads a line of at most so many bytes with its end, which the last one may lack.
func readLine(from *bufio.Reader, most int) (line []byte, err error) {
	for {
		piece, err := from.ReadSlice('\n')
		line = append(line, piece...)
		switch {
		case len(line) > most:
			return nil, errLongLine
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && (len(line) == 0 || !errors.Is(err, io.EOF)):
			return nil, err
		}
		return line, nil
	}
}
