package streamable_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"regexp"
	"runtime"
	"testing"

	"github.com/mcpd/mcpd/internal/protocol/mcp"
	"github.com/mcpd/mcpd/internal/protocol/transport/streamable"
)

// BenchmarkIdleStreams reports what a legacy session costs with the stream
// that it listens on and all that net/http holds for the connection.
func BenchmarkIdleStreams(b *testing.B) {
	const many = 1000
	for b.Loop() {
		s := mcp.New(instant{}, mcp.Options{})
		web := httptest.NewServer(streamable.New(s, streamable.Options{}))
		before := inUse()
		for range many {
			conn, err := net.Dial("tcp", web.Listener.Addr().String())
			if err != nil {
				b.Fatal(err)
			}
			defer conn.Close()
			listenOn(b, conn)
		}
		b.ReportMetric(float64(inUse()-before)/many, "B/session")
		web.CloseClientConnections()
		if err := s.Drain(context.Background()); err != nil {
			b.Error(err)
		}
		web.Close()
	}
}

var sessionHeader = regexp.MustCompile(`Mcp-Session-Id: (\S+)`)

// listenOn opens a session on a connection, and its stream.
func listenOn(b *testing.B, conn net.Conn) {
	b.Helper()
	fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(initialize), initialize)
	id := sessionHeader.FindSubmatch(readSome(b, conn))
	if id == nil {
		b.Fatal("there is no session")
	}
	fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\nMcp-Session-Id: %s\r\n\r\n", id[1])
	readSome(b, conn)
}

func readSome(b *testing.B, conn net.Conn) []byte {
	b.Helper()
	buffer := make([]byte, 4<<10)
	n, err := conn.Read(buffer)
	if err != nil && err != io.EOF {
		b.Fatal(err)
	}
	return buffer[:n]
}

// inUse returns the bytes of heap and stacks that are in use.
func inUse() int64 {
	var m runtime.MemStats
	for range 2 {
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}
