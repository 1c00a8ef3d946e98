package state

import (
	"encoding/binary"
	"errors"
	"math"
	"time"

	"github.com/mcpd/mcpd/identity"
)

// errMalformed is the error for bytes that the encoder did not write.
var errMalformed = errors.New("malformed bytes")

// An encoder appends values in the format of the decoder.
type encoder []byte

func (e *encoder) uint(n uint64)        { *e = binary.AppendUvarint(*e, n) }
func (e *encoder) int(n int64)          { *e = binary.AppendVarint(*e, n) }
func (e *encoder) fixed(data []byte)    { *e = append(*e, data...) }
func (e *encoder) bytes(data []byte)    { e.uint(uint64(len(data))); *e = append(*e, data...) }
func (e *encoder) string(text string)   { e.uint(uint64(len(text))); *e = append(*e, text...) }
func (e *encoder) time(t time.Time)     { e.int(t.Unix()); e.uint(uint64(t.Nanosecond())) }
func (e *encoder) millis(t time.Time)   { e.int(t.UnixMilli()) }
func (e *encoder) span(d time.Duration) { e.int(int64(d)) }

func (e *encoder) bool(b bool) {
	if b {
		e.uint(1)
	} else {
		e.uint(0)
	}
}

func (e *encoder) owner(o Owner) {
	e.string(o.ID)
	e.string(string(o.Kind))
	e.string(o.Issuer)
	e.string(o.Agent)
}

// A decoder reads the output of an encoder. After the first error it returns zero
// values; end returns the error.
type decoder struct {
	data   []byte
	failed bool
}

func (d *decoder) uint() uint64 {
	n, size := binary.Uvarint(d.data)
	return advance(d, n, size)
}

func (d *decoder) int() int64 {
	n, size := binary.Varint(d.data)
	return advance(d, n, size)
}

// advance consumes a number of a given size.
func advance[N int64 | uint64](d *decoder, n N, size int) N {
	if d.failed || size <= 0 {
		d.failed = true
		return 0
	}
	d.data = d.data[size:]
	return n
}

// small reads a number that fits into an int on every platform.
func (d *decoder) small() int {
	n := d.uint()
	if n > math.MaxInt32 {
		d.failed = true
		return 0
	}
	return int(n)
}

// take returns the next n bytes, which share memory with the data.
func (d *decoder) take(n uint64) []byte {
	if d.failed || n > uint64(len(d.data)) {
		d.failed = true
		return nil
	}
	taken := d.data[:n:n]
	d.data = d.data[n:]
	return taken
}

func (d *decoder) fixed(into []byte) { copy(into, d.take(uint64(len(into)))) }
func (d *decoder) string() string    { return string(d.take(d.uint())) }
func (d *decoder) millis() time.Time { return time.UnixMilli(d.int()).UTC() }
func (d *decoder) span() time.Duration {
	return time.Duration(d.int())
}

func (d *decoder) bool() bool {
	n := d.uint()
	d.failed = d.failed || n > 1
	return n == 1 && !d.failed
}

// bytes returns nil for an empty value.
func (d *decoder) bytes() []byte {
	if data := d.take(d.uint()); len(data) > 0 {
		return data
	}
	return nil
}

func (d *decoder) time() time.Time {
	seconds, nanos := d.int(), d.uint()
	if nanos >= uint64(time.Second) {
		d.failed = true
		return time.Time{}
	}
	return time.Unix(seconds, int64(nanos)).UTC()
}

func (d *decoder) owner() Owner {
	return Owner{ID: d.string(), Kind: identity.Kind(d.string()), Issuer: d.string(), Agent: d.string()}
}

// end returns errMalformed unless everything was read without errors.
func (d *decoder) end() error {
	if d.failed || len(d.data) > 0 {
		return errMalformed
	}
	return nil
}
