package egress

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
)

// names is a name server with answers in memory.
type names struct {
	// answers are the addresses of a name: for the first query of a kind, the second and so on.
	// The last ones repeat.
	answers map[string][][]netip.Addr
	running sync.WaitGroup

	mu    sync.Mutex
	asked map[question]int
}

// question is a DNS question.
type question struct {
	name string
	kind uint16
}

// The question types (RFC 1035 section 3.2.2, RFC 3596 section 2.1).
const (
	typeA    = 1
	typeAAAA = 28
)

// resolver returns a resolver that only uses n, over pipes.
func (n *names) resolver(t *testing.T) *net.Resolver {
	t.Cleanup(n.running.Wait)
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		here, there := net.Pipe()
		n.running.Go(func() {
			defer there.Close()
			n.serve(there)
		})
		return here, nil
	}}
}

// serve answers queries in TCP framing (RFC 1035 section 4.2.2), which the resolver uses for
// connections that are not packet connections.
func (n *names) serve(c net.Conn) {
	for {
		var size [2]byte
		if _, err := io.ReadFull(c, size[:]); err != nil {
			return
		}
		query := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(c, query); err != nil {
			return
		}
		answer := n.answer(query)
		if _, err := c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...)); err != nil {
			return
		}
	}
}

func (n *names) answer(query []byte) []byte {
	const header = 12
	var labels []string
	at := header
	for query[at] != 0 {
		l := int(query[at])
		labels = append(labels, string(query[at+1:at+1+l]))
		at += 1 + l
	}
	at++
	asked := query[header : at+4]
	kind := binary.BigEndian.Uint16(query[at:])
	out := append([]byte{query[0], query[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, asked...)
	for _, ip := range n.lookup(question{strings.ToLower(strings.Join(labels, ".")), kind}) {
		raw := ip.AsSlice()
		if is := map[uint16]int{typeA: 4, typeAAAA: 16}[kind]; is != len(raw) {
			continue
		}
		out[7]++ // one answer: the name of the question, its type, IN, TTL 0
		out = append(out, 0xc0, header, 0, byte(kind), 0, 1, 0, 0, 0, 0, 0, byte(len(raw)))
		out = append(out, raw...)
	}
	return out
}

func (n *names) lookup(q question) []netip.Addr {
	host, encoded := strings.CutSuffix(q.name, ".v4.example")
	if encoded {
		host = host[strings.LastIndexByte(host, '.')+1:]
		ip, err := netip.ParseAddr(strings.ReplaceAll(host, "-", "."))
		if err != nil {
			return nil
		}
		return []netip.Addr{ip}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	answers := n.answers[q.name]
	if len(answers) == 0 {
		return nil
	}
	if n.asked == nil {
		n.asked = map[question]int{}
	}
	now := answers[min(n.asked[q], len(answers)-1)]
	n.asked[q]++
	return now
}
