package audit

import (
	"bytes"
	"crypto/hmac"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/mcpd/mcpd/internal/base/jsonguard"
)

// headPath returns where the head of a log is kept.
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
	mac := c.mac(text)
	return append(hex.AppendEncode(append(text, macMember...), mac), "\"}\n"...)
}

var errHead = errors.New("the head was not written with this key")

// decodeHead reads the text of a head.
func decodeHead(c *chain, text []byte) (h head, err error) {
	text = bytes.TrimSuffix(text, []byte("\n"))
	body, ok := bytes.CutSuffix(text, []byte(lineEnd))
	if !ok || len(body) < macDigits+len(macMember) {
		return h, errHead
	}
	signed := body[:len(body)-macDigits-len(macMember)]
	mac, err := hex.DecodeString(string(body[len(body)-macDigits:]))
	if err != nil || !hmac.Equal(mac, c.mac(signed)) {
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
