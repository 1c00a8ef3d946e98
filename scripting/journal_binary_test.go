package scripting

import (
	"bytes"
	"context"
	"encoding"
	"encoding/hex"
	"errors"
	"flag"
	"os"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
)

var (
	_ encoding.BinaryMarshaler   = (*Journal)(nil)
	_ encoding.BinaryUnmarshaler = (*Journal)(nil)
)

var update = flag.Bool("update", false, "rewrite the golden files")

// sameJournal compares all fields of journals.
var sameJournal = cmp.AllowUnexported(Journal{}, journalEntry{})

func marshaled(t testing.TB, j *Journal) []byte {
	t.Helper()
	data, err := j.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// reread returns a journal after encoding and decoding.
func reread(t testing.TB, j *Journal) *Journal {
	t.Helper()
	data := marshaled(t, j)
	kept := bytes.Clone(data)
	again := NewJournal()
	if err := again.UnmarshalBinary(data); err != nil {
		t.Fatal(err)
	}
	clear(data) // the journal must not refer to it
	if diff := cmp.Diff(j, again, sameJournal); diff != "" {
		t.Fatalf("the journal changed (-before +after):\n%s", diff)
	}
	if !bytes.Equal(marshaled(t, again), kept) {
		t.Fatal("the journal has two encodings")
	}
	return again
}

// variedJournal is the journal of a call with all kinds of entries.
func variedJournal(t testing.TB) (*Program, *Journal) {
	t.Helper()
	program := compiled(t, asker(busyScript[:strings.LastIndex(busyScript, "return")]+`
		const who = await elicit("who", `+form+`).catch(e => e.code);
		const where = await roots();
		return { order, who, where, now: Date.now(), random: Math.random() }`))
	c := call(program, `{}`)
	c.Journal = NewJournal()
	host := busyHost()
	inner := host.answer
	host.answer = func(ctx context.Context, op string, payload []byte) ([]byte, error) {
		if op == OpAsk {
			return nil, ErrSuspended
		}
		return inner(ctx, op, payload)
	}
	out := runWith(t, c, host)
	if len(out.Suspended) != 1 {
		t.Fatal(shown(out))
	}
	refusal := &HostError{Code: Capability, Message: "no", Details: []byte(`{"requiredCapabilities":{}}`)}
	if err := c.Journal.Refuse(out.Suspended[0].Seq, refusal); err != nil {
		t.Fatal(err)
	}
	if out = runWith(t, c, host); len(out.Suspended) != 1 {
		t.Fatal(shown(out))
	}
	return program, c.Journal
}

func TestJournal_binaryRoundTrip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		program, journal := variedJournal(t)
		c := call(program, `{}`)
		var outs []string
		for _, j := range []*Journal{reread(t, journal), journal} {
			c.Journal = j
			host := &fakeHost{}
			out := runWith(t, c, host)
			if err := c.Journal.Answer(out.Suspended[0].Seq, answered(t, out.Suspended[0].Payload, willing)); err != nil {
				t.Fatal(err)
			}
			outs = append(outs, shown(runWith(t, c, host)))
			if len(host.calls()) > 0 {
				t.Errorf("the host was called: %q", host.calls())
			}
		}
		if outs[0] != outs[1] || !strings.Contains(outs[0], `"where":[{"uri":"file:///roots"`) {
			t.Errorf("it ends with\n%s\nand without encoding with\n%s", outs[0], outs[1])
		}
	})
}

func TestJournal_binaryPanic(t *testing.T) {
	c := call(compiled(t, tool(`await http.crm.get("1")`)), `{}`)
	c.Journal = NewJournal()
	runWith(t, c, &fakeHost{answer: func(context.Context, string, []byte) ([]byte, error) { panic("bug") }})
	c.Journal = reread(t, c.Journal)
	if out := runWith(t, c, &fakeHost{}); out.Failure == nil || out.Failure.Kind != HostPanic {
		t.Errorf("got %s", shown(out))
	}
}

// Suspended calls are stored in this form: a change requires another version.
func TestJournal_binaryStable(t *testing.T) {
	const golden = "testdata/journal.hex"
	synctest.Test(t, func(t *testing.T) {
		_, journal := variedJournal(t)
		got := hex.Dump(marshaled(t, journal))
		if *update {
			if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}

func TestJournal_binarySize(t *testing.T) {
	host := &fakeHost{answer: func(_ context.Context, op string, _ []byte) ([]byte, error) {
		if op == OpAsk {
			return nil, ErrSuspended
		}
		return []byte(`{"status":201,"headers":{"content-type":"application/json"},"body":"{\"id\":\"ord_12345\",\"status\":\"created\"}","url":"https://api.example.com/orders"}`), nil
	}}
	c := call(compiled(t, asker(`
		for (const n of [1, 2, 3]) await http.crm.post("https://api.example.com/orders", { json: { n } });
		await elicit("confirm", `+form+`);
		await elicit("really", `+form+`);
		return 1`)), `{}`)
	c.Journal = NewJournal()
	for range 2 {
		out := runWith(t, c, host)
		if err := c.Journal.Answer(out.Suspended[0].Seq, answered(t, out.Suspended[0].Payload, willing)); err != nil {
			t.Fatal(err)
		}
	}
	if size := len(marshaled(t, c.Journal)); size >= 1024 {
		t.Errorf("the journal of 3 requests and 2 asks has %d bytes", size)
	}
	if got := shown(runWith(t, c, &fakeHost{})); got != "1" {
		t.Errorf("got %s", got)
	}
}

func TestJournal_binaryInvalid(t *testing.T) {
	head := "\x02" + strings.Repeat("\x00", len(Seed{}))
	const digest = "0123456789abcdef"
	const asked = "\x00\x00\x01x" + digest
	var ops strings.Builder
	for i := range maxOps + 1 {
		ops.WriteString("\x01\x00\x02" + string([]byte{'a' + byte(i/26), 'a' + byte(i%26)}) + digest)
	}
	for _, c := range []struct{ name, data string }{
		{"nothing", ""},
		{"no seed", "\x02\x00"},
		{"another version", "\x01" + head[1:]},
		{"an unknown tag", head + "\x07"},
		{"a tag alone", head + "\x00"},
		{"an unfinished number", head + "\x05\xff"},
		{"a number that is too large", head + "\x05\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"},
		{"a number with superfluous bytes", head + "\x05\x81\x00"},
		{"a timer without a number", head + "\x05\x00"},
		{"an unread clock", head + "\x06\x02\x00"},
		{"a clock with superfluous bytes", head + "\x06\x82\x00\x01"},
		{"an operation that was not named", head + "\x00\x01" + digest},
		{"an operation that is named twice", head + asked + asked},
		{"an operation with a long name", head + "\x00\x00\x41" + strings.Repeat("x", 65) + digest},
		{"too many operations", head + ops.String()},
		{"half a digest", head + asked[:10]},
		{"an answer to nothing", head + "\x02\x01\x00"},
		{"an answer to the call with the number 0", head + asked + "\x02\x00\x00"},
		{"an answer to a message", head + "\x01\x00\x01x" + digest + "\x02\x01\x00"},
		{"two answers to one call", head + asked + "\x02\x01\x00\x02\x01\x00"},
		{"an answer that claims to be huge", head + asked + "\x02\x01\xff\xff\xff\x1f"},
		{"an answer that is cut off", head + asked + "\x02\x01\x05ab"},
		{"a refusal that is cut off", head + asked + "\x03\x01\x01C\x01M"},
		{"too many entries", head + strings.Repeat("\x05\x01", maxJournalEntries+1)},
	} {
		journal := NewJournal()
		journal.seed = Seed{7}
		if err := journal.UnmarshalBinary([]byte(c.data)); !errors.Is(err, errJournal) {
			t.Errorf("%s: %v", c.name, err)
		}
		if journal.seed != (Seed{7}) || journal.Len() != 0 {
			t.Errorf("%s: the journal has changed", c.name)
		}
	}
	if err := NewJournal().UnmarshalBinary([]byte(head + asked + "\x02\x01\x01a")); err != nil {
		t.Errorf("a journal was refused: %v", err)
	}
	if err := NewJournal().UnmarshalBinary(make([]byte, maxJournalBytes+1)); !errors.Is(err, errJournal) {
		t.Errorf("too many bytes: %v", err)
	}
	if _, err := (&Journal{entries: make([]journalEntry, maxJournalEntries+1)}).MarshalBinary(); err == nil {
		t.Error("a journal was encoded that cannot be decoded")
	}
}

// FuzzJournal checks that no bytes crash the decoder, and that encoding is its inverse.
func FuzzJournal(f *testing.F) {
	for _, body := range []string{smallScript, asyncScript, `log.info("x"); setTimeout(() => Date.now(), 0); roots(); await http.crm.post("u", { json: {} })`} {
		c := call(compiled(f, asker(body)), `{}`)
		c.Journal = NewJournal()
		runWith(f, c, suspendingHost())
		f.Add(marshaled(f, c.Journal))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		journal := NewJournal()
		if journal.UnmarshalBinary(data) != nil {
			return
		}
		if again := marshaled(t, journal); !bytes.Equal(again, data) {
			t.Fatalf("%x was decoded and encoded as %x", data, again)
		}
		reread(t, journal)
	})
}
