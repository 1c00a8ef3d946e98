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

// names is a name server that answers from memory.
type names struct {
	answers map[string]netip.Addr
	running sync.WaitGroup
}

// resolver returns a resolver that asks only n, over pipes.
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

// serve answers queries in the framing of TCP (RFC 1035 section 4.2.2), which
// the resolver speaks to whatever is no packet connection.
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
	const header, typeA = 12, 1
	var labels []string
	at := header
	for query[at] != 0 {
		l := int(query[at])
		labels = append(labels, string(query[at+1:at+1+l]))
		at += 1 + l
	}
	at++
	question := query[header : at+4]
	kind := binary.BigEndian.Uint16(query[at:])

	var ip netip.Addr
	if kind == typeA {
		ip = n.lookup(strings.ToLower(strings.Join(labels, ".")))
	}
	out := append([]byte{query[0], query[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, question...)
	if ip.IsValid() {
		out[7] = 1 // one answer: the name of the question, A, IN, no time to live
		out = append(out, 0xc0, header, 0, typeA, 0, 1, 0, 0, 0, 0, 0, 4)
		out = append(out, ip.AsSlice()...)
	}
	return out
}

func (n *names) lookup(name string) netip.Addr {
	host, encoded := strings.CutSuffix(name, ".v4.example")
	if !encoded {
		return n.answers[name]
	}
	host = host[strings.LastIndexByte(host, '.')+1:]
	ip, _ := netip.ParseAddr(strings.ReplaceAll(host, "-", "."))
	return ip
}
