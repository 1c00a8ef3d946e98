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

// A line is {"seq":N,"prev":"…",BODY,"mac":"…"}: prev is the mac of the previous line,
// and mac is the HMAC-SHA-256 of all bytes before its own member. The first line has
// zeros for prev.
const (
	seqMember  = `{"seq":`
	prevMember = `,"prev":"`
	macMember  = `,"mac":"`
	lineEnd    = `"}`
	macDigits  = 2 * sha256.Size
)

// maxLine is the maximum length of a line in bytes, without the newline. The bounds of
// records keep lines far below it.
const maxLine = 1 << 20

// chainEntry is a position in the chain: the number and the mac of a line.
type chainEntry struct {
	seq uint64
	mac [sha256.Size]byte
}

// hashChain computes links. It is not safe for concurrent use.
type hashChain struct {
	hash hash.Hash
	sum  []byte
}

func newChain(key []byte) *hashChain {
	return &hashChain{hash: hmac.New(sha256.New, key), sum: make([]byte, 0, sha256.Size)}
}

// mac returns the authentication code of text. The result is valid until the next call.
func (c *hashChain) mac(text []byte) []byte {
	c.hash.Reset()
	c.hash.Write(text)
	c.sum = c.hash.Sum(c.sum[:0])
	return c.sum
}

// sign appends the last member of an unfinished object: the code of all preceding
// bytes.
func (c *hashChain) sign(text []byte) []byte {
	mac := c.mac(text)
	return append(hex.AppendEncode(append(text, macMember...), mac), "\"}\n"...)
}

// signed reports whether an object ends with a valid code, as [hashChain.sign] writes it.
func (c *hashChain) signed(text []byte) bool {
	_, _, ok := c.open(text, nil)
	return ok
}

// open returns the part of an object before its code, and appends the code to mac. ok
// is false if the code is wrong.
func (c *hashChain) open(text, mac []byte) (body, code []byte, ok bool) {
	body, ok = bytes.CutSuffix(text, []byte(lineEnd))
	if !ok || len(body) < macDigits+len(macMember) {
		return nil, nil, false
	}
	body, digits := body[:len(body)-macDigits], body[len(body)-macDigits:]
	body, ok = bytes.CutSuffix(body, []byte(macMember))
	code, err := hex.AppendDecode(mac, digits)
	return body, code, ok && err == nil && hmac.Equal(code, c.mac(body))
}

// append appends the line after the position after. body holds the members of an object
// without its braces. It returns the position of the new line.
func (c *hashChain) append(dst []byte, after chainEntry, body []byte) ([]byte, chainEntry) {
	from := len(dst)
	next := chainEntry{seq: after.seq + 1}
	dst = strconv.AppendUint(append(dst, seqMember...), next.seq, 10)
	dst = hex.AppendEncode(append(dst, prevMember...), after.mac[:])
	dst = append(append(dst, '"', ','), body...)
	copy(next.mac[:], c.mac(dst[from:]))
	dst = hex.AppendEncode(append(dst, macMember...), next.mac[:])
	return append(append(dst, lineEnd...), '\n'), next
}

// read returns the position of a line without its newline, and the mac that it states
// for the previous line. authentic is false if the line was not written with the key.
func (c *hashChain) read(line []byte) (at chainEntry, prev [sha256.Size]byte, authentic bool) {
	body, _, ok := c.open(line, at.mac[:0])
	if !ok {
		return at, prev, false
	}
	// An authentic line was written by append and has its form.
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

// maxHead is the maximum length of a head in bytes.
const maxHead = 1 << 10

// checkpoint records how far a log reached at the last checkpoint, so that a truncated tail
// is detected.
type checkpoint struct {
	// first is the number of the oldest line that must exist. Retention removed the
	// older ones.
	first uint64
	// last is the last line that is known to be durable.
	last chainEntry
	// file is the number of the first line in the file that holds last, and offset is
	// the position after last in that file.
	file   uint64
	offset int64
}

// encode returns the text of a head, signed with the key.
func (h checkpoint) encode(c *hashChain) []byte {
	text := strconv.AppendUint([]byte(`{"first":`), h.first, 10)
	text = strconv.AppendUint(append(text, `,"seq":`...), h.last.seq, 10)
	text = strconv.AppendUint(append(text, `,"file":`...), h.file, 10)
	text = strconv.AppendInt(append(text, `,"offset":`...), h.offset, 10)
	text = append(hex.AppendEncode(append(text, `,"last":"`...), h.last.mac[:]), '"')
	return c.sign(text)
}

var errHead = errors.New("the head was not written with this key")

func decodeHead(c *hashChain, text []byte) (h checkpoint, err error) {
	text = bytes.TrimSuffix(text, []byte("\n"))
	if !c.signed(text) {
		return h, errHead
	}
	if err := jsonguard.Check(text, jsonguard.Limits{Bytes: maxHead}); err != nil {
		return h, fmt.Errorf("decode head: %w", err)
	}
	var read struct {
		First, Seq, File uint64
		Offset           int64
		Last             string
	}
	if err := json.Unmarshal(text, &read); err != nil {
		return h, fmt.Errorf("decode head: %w", err)
	}
	h = checkpoint{first: read.First, last: chainEntry{seq: read.Seq}, file: read.File, offset: read.Offset}
	if n, err := hex.Decode(h.last.mac[:], []byte(read.Last)); err != nil || n != len(h.last.mac) || h.offset < 0 {
		return h, errHead
	}
	return h, nil
}

// readHead reads the head of a log. The error is fs.ErrNotExist if there is none.
func readHead(d disk, path string, c *hashChain) (checkpoint, error) {
	text, err := readAll(d, headPath(path), maxHead)
	if err != nil {
		return checkpoint{}, err
	}
	return decodeHead(c, text)
}
