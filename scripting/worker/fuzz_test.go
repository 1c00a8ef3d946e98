package worker

import (
	"bytes"
	"encoding/binary"
	"runtime/metrics"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpd/mcpd/scripting"
)

// allocated returns the total number of allocated bytes.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// checkAllocation checks that reading size bytes allocates a small multiple of them.
func checkAllocation(t *testing.T, size int, read func()) {
	t.Helper()
	// Small allocations are counted by the page, and other goroutines allocate too. The fuzzer
	// sometimes allocates as much, but not each time.
	var used uint64
	for range 4 {
		before := allocated()
		read()
		if used = allocated() - before; used <= 1<<20+uint64(size)*64 {
			return
		}
	}
	t.Fatalf("to read %d bytes took %d", size, used)
}

// checkRoundTrip checks that encoding and decoding are inverse.
func checkRoundTrip(t *testing.T, once []byte, again func([]byte) ([]byte, error)) {
	t.Helper()
	if twice, err := again(once); err != nil || !bytes.Equal(once, twice) {
		t.Fatalf("%x is read and written as %x: %v", once, twice, err)
	}
}

// rehost and similar functions decode a frame and encode it again.
func rehost(content []byte) ([]byte, error) {
	f, err := readHost(content)
	if err != nil {
		return nil, err
	}
	return f.append(nil), nil
}

func recall(content []byte) ([]byte, error) {
	f, err := readCall(content)
	if err != nil {
		return nil, err
	}
	return f.append(nil), nil
}

func reoutcome(content []byte) ([]byte, error) {
	f, err := readOutcome(content)
	if err != nil {
		return nil, err
	}
	return f.append(nil), nil
}

// FuzzFrames reads frames from a process, and the host calls in them.
func FuzzFrames(f *testing.F) {
	host := (&hostFrame{seq: 1, op: "http.request", tail: []byte{5, 1}, payload: []byte(`{"a":[1]}`)}).append(uvarint(7))
	var frames bytes.Buffer
	for _, content := range [][]byte{host, nil, uvarint(1 << 40)} {
		_ = writeFrame(&frames, frameHostCall, content)
	}
	f.Add(frames.Bytes())
	f.Add([]byte{frameOutcome, 1, 0, 0, 0, 'x'}) // 16 MiB that never arrive
	f.Add([]byte{frameHostCall, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, data []byte) {
		checkAllocation(t, len(data), func() {
			in := bytes.NewReader(data)
			for {
				_, content, err := readFrame(in, maxChildFrame)
				if err != nil {
					return
				}
				_, size := binary.Uvarint(content)
				if size <= 0 {
					continue
				}
				if once, err := rehost(content[size:]); err == nil {
					checkRoundTrip(t, once, rehost)
				}
			}
		})
	})
}

// FuzzOutcomes reads outcomes from a process. Valid ones must survive encoding.
func FuzzOutcomes(f *testing.F) {
	for _, out := range []scripting.Outcome{
		{Result: &scripting.Result{Kind: scripting.Value, JSON: []byte(`{"a":1}`)}},
		{Result: &scripting.Result{Kind: scripting.Content, Content: []byte(`[{"type":"text"}]`)}},
		{Failure: &scripting.Failure{Kind: scripting.ToolError, Message: "no", Details: []byte(`[1]`), Stack: []scripting.Frame{{}}}},
		{Suspended: []scripting.Ask{{Seq: 1, Payload: []byte(`{}`)}}},
	} {
		text, err := out.AppendBinary(nil)
		if err != nil {
			f.Fatal(err)
		}
		f.Add((&outcomeFrame{outcome: text, tail: []byte{5, 1}}).append(nil))
	}
	f.Add((&outcomeFrame{fault: "it failed"}).append(nil))
	f.Add((&outcomeFrame{outcome: append([]byte{1, '{'}, bytes.Repeat([]byte("["), 200)...)}).append(nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		room := newAdmission(1, time.Second).of(unrated)
		call, err := newExecution(scripting.Call{}, nil, room, &atomic.Int64{})
		if err != nil {
			t.Fatal(err)
		}
		checkAllocation(t, len(data), func() {
			if once, err := reoutcome(data); err == nil {
				checkRoundTrip(t, once, reoutcome)
			}
			out, err := call.decodeOutcome(data)
			if err != nil || out.Result == nil && out.Failure == nil && out.Suspended == nil {
				return
			}
			once, err := out.AppendBinary(nil)
			if err != nil {
				t.Fatal(err)
			}
			checkRoundTrip(t, once, func(text []byte) ([]byte, error) {
				again, err := readValid(text)
				if err != nil {
					return nil, err
				}
				return again.AppendBinary(nil)
			})
		})
	})
}

// FuzzCalls reads frames to a process.
func FuzzCalls(f *testing.F) {
	call := callFrame{id: 3, remaining: time.Second, journal: []byte("journal"), call: scripting.Call{Input: []byte(`{}`), Seed: scripting.Seed{9}, Start: time.Unix(1, 0)}}
	f.Add(call.append(nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		checkAllocation(t, len(data), func() {
			if once, err := recall(data); err == nil {
				checkRoundTrip(t, once, recall)
			}
		})
	})
}
