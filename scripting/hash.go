package scripting

import (
	"encoding/binary"
	"encoding/json"
	"hash"
	"strconv"
)

// hashSource hashes everything that is known before imports are read.
func (c *compilation) hashSource() {
	s := c.src
	start, end := s.Text.Pos(0), s.Text.Pos(len(s.Text.Body()))
	objects, _ := json.Marshal(s.Objects)
	inputs, _ := json.Marshal(s.Inputs)
	for _, part := range []string{s.Name, s.Text.Body(), string(objects), string(inputs), string(s.Vars)} {
		c.hashPart(part)
	}
	if len(s.Members) > 0 {
		members, _ := json.Marshal(s.Members)
		c.hashPart(string(members))
	}
	if len(s.BigInts) > 0 || s.BigIntResult {
		places, _ := json.Marshal(s.BigInts)
		c.hashPart(string(places) + strconv.FormatBool(s.BigIntResult))
	}
	c.hashPart(string([]byte{byte(s.Kind), byte(s.Language)}))
	for _, part := range []string{s.Text.File(), s.Path} {
		writePart(c.digest, part)
	}
	for _, n := range []int{start.Line, start.Column, start.Byte, end.Line, end.Column, end.Byte} {
		_ = binary.Write(c.digest, binary.LittleEndian, int64(n))
	}
}

// hashPart adds a part to both hashes.
func (c *compilation) hashPart(part string) {
	writePart(c.digest, part)
	writePart(c.meant, part)
}

func writePart(h hash.Hash, part string) {
	_ = binary.Write(h, binary.LittleEndian, int64(len(part)))
	h.Write([]byte(part))
}
