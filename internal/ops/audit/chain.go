package audit

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"strconv"

	"github.com/mcpd/mcpd/internal/base/jsonguard"
)

// A line is {"seq":N,"prev":"…",BODY,"mac":"…"}: prev is the mac of the line
// before, and mac the HMAC-SHA-256 of all bytes of the line that precede its own
// member. The line after number 0 has zeros for prev.
const (
	seqMember  = `{"seq":`
	prevMember = `,"prev":"`
	macMember  = `,"mac":"`
	lineEnd    = `"}`
	macDigits  = 2 * sha256.Size
)

// maxLine is the length in bytes of the longest line, its newline not counted.
// Records are bounded so that none comes near.
const maxLine = 1 << 20

// link is a place in the chain: a line and what the next one says of it.
type link struct {
	seq uint64
	mac [sha256.Size]byte
}

// chain computes links. It is for one goroutine at a time.
type chain struct {
	hash hash.Hash
	sum  []byte
}

func newChain(key []byte) *chain {
	return &chain{hash: hmac.New(sha256.New, key), sum: make([]byte, 0, sha256.Size)}
}

// mac returns the authentication code of some bytes, until it is called again.
func (c *chain) mac(text []byte) []byte {
	c.hash.Reset()
	c.hash.Write(text)
	c.sum = c.hash.Sum(c.sum[:0])
	return c.sum
}

// sign appends the last member of an object that has no end yet: the code of what precedes it.
func (c *chain) sign(text []byte) []byte {
	mac := c.mac(text)
	return append(hex.AppendEncode(append(text, macMember...), mac), "\"}\n"...)
}

// signed reports whether an object ends with its own code, as [chain.sign] writes it.
func (c *chain) signed(text []byte) bool {
	_, _, ok := c.open(text, nil)
	return ok
}

// open returns what precedes the code of an object, and appends that code to mac. It reports
// false where the code is another.
func (c *chain) open(text, mac []byte) (body, code []byte, ok bool) {
	body, ok = bytes.CutSuffix(text, []byte(lineEnd))
	if !ok || len(body) < macDigits+len(macMember) {
		return nil, nil, false
	}
	body, digits := body[:len(body)-macDigits], body[len(body)-macDigits:]
	body, ok = bytes.CutSuffix(body, []byte(macMember))
	code, err := hex.AppendDecode(mac, digits)
	return body, code, ok && err == nil && hmac.Equal(code, c.mac(body))
}

// append appends the line that follows a place and holds body, the members of
// an object without its braces. It returns the place of the new line.
func (c *chain) append(dst []byte, after link, body []byte) ([]byte, link) {
	from := len(dst)
	next := link{seq: after.seq + 1}
	dst = strconv.AppendUint(append(dst, seqMember...), next.seq, 10)
	dst = hex.AppendEncode(append(dst, prevMember...), after.mac[:])
	dst = append(append(dst, '"', ','), body...)
	copy(next.mac[:], c.mac(dst[from:]))
	dst = hex.AppendEncode(append(dst, macMember...), next.mac[:])
	return append(append(dst, lineEnd...), '\n'), next
}

// read returns the place of a line, which has no newline, and the mac that it
// says the line before it has. It reports false for what nobody with the key wrote.
func (c *chain) read(line []byte) (at link, prev [sha256.Size]byte, authentic bool) {
	body, _, ok := c.open(line, at.mac[:0])
	if !ok {
		return at, prev, false
	}
	// What is authentic was written by append, and has its form.
	rest, ok := bytes.CutPrefix(body, []byte(seqMember))
	number, rest, found := bytes.Cut(rest, []byte(prevMember))
	seq, err := strconv.ParseUint(string(number), 10, 64)
	if !ok || !found || err != nil || len(rest) < macDigits {
		return at, prev, false
	}
	at.seq = seq
	_, err = hex.Decode(prev[:], rest[:macDigits])
	return at, prev, err == nil
}

func headPath(path string) string { return path + ".head" }

// maxHead is the length of a head in bytes.
const maxHead = 1 << 10

// head says how far a log reached when it was last looked after, so that a tail
// that somebody cuts off is missed.
type head struct {
	// first is the number of the oldest line that has to be there; older ones
	// went with files that were not to be kept.
	first uint64
	// last is the last line that is known to be durable.
	last link
	// file is the number of the first line of the file that holds it, and offset
	// where in it the next line begins.
	file   uint64
	offset int64
}

// encode returns the text of a head, which only who has the key can write.
func (h head) encode(c *chain) []byte {
	text := strconv.AppendUint([]byte(`{"first":`), h.first, 10)
	text = strconv.AppendUint(append(text, `,"seq":`...), h.last.seq, 10)
	text = strconv.AppendUint(append(text, `,"file":`...), h.file, 10)
	text = strconv.AppendInt(append(text, `,"offset":`...), h.offset, 10)
	text = append(hex.AppendEncode(append(text, `,"last":"`...), h.last.mac[:]), '"')
	return c.sign(text)
}

var errHead = errors.New("the head was not written with this key")

func decodeHead(c *chain, text []byte) (h head, err error) {
	text = bytes.TrimSuffix(text, []byte("\n"))
	if !c.signed(text) {
		return h, errHead
	}
	if err := jsonguard.Check(text, jsonguard.Limits{Bytes: maxHead}); err != nil {
		return h, fmt.Errorf("the head is broken: %w", err)
	}
	var read struct {
		First, Seq, File uint64
		Offset           int64
		Last             string
	}
	if err := json.Unmarshal(text, &read); err != nil {
		return h, fmt.Errorf("the head is broken: %w", err)
	}
	h = head{first: read.First, last: link{seq: read.Seq}, file: read.File, offset: read.Offset}
	if n, err := hex.Decode(h.last.mac[:], []byte(read.Last)); err != nil || n != len(h.last.mac) || h.offset < 0 {
		return h, errHead
	}
	return h, nil
}

// readHead reads the head of a log; fs.ErrNotExist means that it has none.
func readHead(d disk, path string, c *chain) (head, error) {
	text, err := readAll(d, headPath(path), maxHead)
	if err != nil {
		return head{}, err
	}
	return decodeHead(c, text)
}
