package scripting

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// echo responds to a request with its url, after the milliseconds in the url.
func echo(ctx context.Context, op string, payload []byte) ([]byte, error) {
	if op != "http.request" {
		return nil, nil
	}
	_, after, _ := strings.Cut(string(payload), `"url":"`)
	url, _, _ := strings.Cut(after, `"`)
	var ms int
	if _, err := fmt.Sscanf(url, "%d", &ms); err == nil {
		select {
		case <-time.After(time.Duration(ms) * time.Millisecond):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return fmt.Appendf(nil, `{"status":200,"headers":{"x":"y"},"body":%q,"url":%q}`, url, url), nil
}

const busyScript = `
	log.info("begin", { at: Date.now() });
	const order = [];
	const get = async (url) => { const r = await http.crm.get(url); order.push(r.text()); return r.text(); };
	const all = await Promise.all([get("30"), get("10"), get("20")]);
	await new Promise(r => setTimeout(r, 1000));
	progress(1, 2);
	try { await http.crm.post("refused") } catch (e) { order.push(e.code) }
	return { all, order, now: Date.now(), random: Math.random(), id: crypto.randomUUID() };
`

// busyHost echoes, but refuses one url.
func busyHost() *fakeHost {
	return &fakeHost{answer: func(ctx context.Context, op string, payload []byte) ([]byte, error) {
		if strings.Contains(string(payload), "refused") {
			return nil, &HostError{Code: Denied, Message: "no"}
		}
		return echo(ctx, op, payload)
	}}
}

func TestReplay_noEffects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := call(compiled(t, tool(busyScript)), `{}`)
		c.Journal = NewJournal()
		first := busyHost()
		want := shown(runWith(t, c, first))
		if !strings.Contains(want, `"order":["10","20","30","DENIED"]`) {
			t.Fatalf("first run: %s", want)
		}
		if n := len(first.calls()); n != 6 {
			t.Fatalf("the first run made %d host calls: %q", n, first.calls())
		}
		entries := c.Journal.Len()

		second, began := busyHost(), time.Now()
		if got := shown(runWith(t, c, second)); got != want {
			t.Errorf("the replay differs:\n got %s\nwant %s", got, want)
		}
		if calls := second.calls(); len(calls) != 0 {
			t.Errorf("the replay had effects: %q", calls)
		}
		if waited := time.Since(began); waited != 0 {
			t.Errorf("the replay waited %v", waited)
		}
		if c.Journal.Len() != entries {
			t.Errorf("the journal grew from %d to %d entries", entries, c.Journal.Len())
		}
	})
}

func TestReplay_continues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body := `const a = (await http.crm.get("1")).text(); log.info(a); const b = (await http.crm.get("2")).text(); return a + b`
		p := compiled(t, tool(body))
		c := call(p, `{}`)
		c.Journal = NewJournal()
		ctx, cancel := context.WithCancel(t.Context())
		host := &fakeHost{answer: func(_ context.Context, op string, payload []byte) ([]byte, error) {
			if op == "log" {
				cancel()
			}
			return echo(context.Background(), op, payload)
		}}
		out, err := Inline().Run(ctx, c, host)
		if err != nil || out.Failure == nil || out.Failure.Kind != Canceled {
			t.Fatalf("first run: %+v %v", out, err)
		}
		again := &fakeHost{answer: echo}
		if got := shown(runWith(t, c, again)); got != `"12"` {
			t.Errorf("got %s", got)
		}
		want := []string{
			`http.request {"grant":"crm","method":"GET","url":"1"}`,
			`log {"level":"info","message":"1"}`,
			`http.request {"grant":"crm","method":"GET","url":"2"}`,
		}
		if diff := cmp.Diff(want, append(host.calls(), again.calls()...)); diff != "" {
			t.Errorf("effects of both runs (-want +got):\n%s", diff)
		}
	})
}

func TestReplay_nondeterministic(t *testing.T) {
	for _, c := range []struct{ name, first, second string }{
		{"another request", `await http.crm.get("1"); return 1`, `await http.crm.get("2"); return 1`},
		{"another operation", `await http.crm.get("1"); return 1`, `log.info("1"); return 1`},
		{"the clock instead of a request", `await http.crm.get("1"); return 1`, `Date.now(); return 1`},
		{"a request instead of the clock", `Date.now(); return 1`, `await http.crm.get("1"); return 1`},
		{"waiting instead of a request", `log.info("x"); log.info("y"); return 1`, `log.info("x"); await new Promise(r => setTimeout(r, 1)); return 1`},
		{"ending early", `log.info("x"); return 1`, `return 1`},
		{"another timer", `setTimeout(() => {}, 1); return 1`, `const a = setTimeout(() => {}, 5); setTimeout(() => {}, 1); clearTimeout(a); return 1`},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				journal := NewJournal()
				first := call(compiled(t, tool(c.first)), `{}`)
				first.Journal = journal
				runWith(t, first, &fakeHost{answer: echo})

				second := call(compiled(t, tool(c.second)), `{}`)
				second.Journal = journal
				host := &fakeHost{answer: echo}
				out := runWith(t, second, host)
				if out.Failure == nil || out.Failure.Kind != Nondeterministic {
					t.Errorf("got %s", shown(out))
				}
				if calls := host.calls(); len(calls) != 0 {
					t.Errorf("the replay had effects: %q", calls)
				}
			})
		})
	}
}

func TestReplay_hostPanic(t *testing.T) {
	c := call(compiled(t, tool(`return (await http.crm.get("1")).text()`)), `{}`)
	c.Journal = NewJournal()
	for range 2 {
		out := runWith(t, c, &fakeHost{answer: func(context.Context, string, []byte) ([]byte, error) { panic("bug") }})
		if out.Failure == nil || out.Failure.Kind != HostPanic {
			t.Errorf("got %s", shown(out))
		}
	}
}

func TestJournal_limits(t *testing.T) {
	for _, c := range []struct {
		name, body, want string
		limits           Limits
	}{
		{"messages", `for (;;) log.info("x")`, "host_calls", Limits{HostCalls: 20}},
		{"requests", `for (;;) await http.crm.get("0")`, "host_calls", Limits{HostCalls: 20}},
		{"timers", `for (;;) setTimeout(() => {}, 1e6)`, "host_calls", Limits{HostCalls: 20}},
		{"intervals", `setInterval(() => {}, 0)`, "host_calls", Limits{HostCalls: 20}},
		{"answers", `for (;;) await http.crm.get("0")`, "journal_bytes", Limits{JournalBytes: 4096}},
	} {
		t.Run(c.name, func(t *testing.T) {
			call := call(compiled(t, tool(c.body)), `{}`)
			call.Limits = c.limits
			out := runWith(t, call, &fakeHost{answer: echo})
			if out.Failure == nil || out.Failure.Kind != Limit || out.Failure.Limit != c.want {
				t.Errorf("got %s", shown(out))
			}
		})
	}
}

func TestJournal_clockReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := call(compiled(t, tool(`let n = 0; for (let i = 0; i < 100000; i++) n = Date.now(); return n`)), `{}`)
		c.Journal = NewJournal()
		want := shown(runWith(t, c, &fakeHost{}))
		if want != "1767323045000" {
			t.Errorf("the clock shows %s first, not the start of the call", want)
		}
		if c.Journal.Len() != 1 {
			t.Errorf("the journal has %d entries", c.Journal.Len())
		}
		if got := shown(runWith(t, c, &fakeHost{})); got != want {
			t.Errorf("replay: %s, want %s", got, want)
		}
	})
}

func TestHostError_hiddenText(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{&HostError{Code: NotFound, Message: "no file a"}, `["NOT_FOUND","no file a"]`},
		{fmt.Errorf("open: %w", &HostError{Code: Denied, Message: "x"}), `["DENIED","x"]`},
		{errors.New("dial 10.0.0.1: secret"), `["UNAVAILABLE","the host could not respond"]`},
		{context.DeadlineExceeded, `["TIMEOUT","the host did not respond in time"]`},
	} {
		host := &fakeHost{answer: func(context.Context, string, []byte) ([]byte, error) { return nil, c.err }}
		body := `try { await http.crm.get("1") } catch (e) { return [e.code, e.message].concat(e instanceof HostError ? [] : ["?"]) }`
		if got := shown(runWith(t, call(compiled(t, tool(body)), `{}`), host)); got != c.want {
			t.Errorf("%v: got %s, want %s", c.err, got, c.want)
		}
	}
}

// TestJournal_answeredInputs: each request has its response; a pending one has none.
func TestJournal_answeredInputs(t *testing.T) {
	details := func(tool string) string {
		return `{"requests":[{"key":"` + tool + `_<1>","method":"elicitation/create","params":{}}],"state":{"state":"` + tool + `","keys":{}}}`
	}
	host := &fakeHost{answer: func(_ context.Context, op string, payload []byte) ([]byte, error) {
		switch tool := "crm_list"; {
		case op == OpAsk:
			return nil, ErrSuspended
		case strings.Contains(string(payload), "read_file"):
			tool = "read_file"
			fallthrough
		default:
			return nil, &HostError{Code: Asks, Message: "it asks", Details: []byte(details(tool))}
		}
	}}
	c := call(compiled(t, codeOf(`await parallel([crm.list({}), read_file({})])`)), `{}`)
	c.Journal = NewJournal()
	out := runWith(t, c, host)
	if len(out.Suspended) != 2 {
		t.Fatalf("got %s", shown(out))
	}
	if got := c.Journal.AnsweredInputs(); got != nil {
		t.Errorf("without a response: %s", got)
	}
	const responses = `{"read_file_<1>":{"action":"decline"}}`
	of := slices.IndexFunc(out.Suspended, func(a Ask) bool { return strings.Contains(string(a.Payload), "read_file") })
	if err := c.Journal.Answer(out.Suspended[of].Seq, []byte(`{"responses":`+responses+`}`)); err != nil {
		t.Fatal(err)
	}
	again := reread(t, c.Journal)
	want := []AnsweredInput{{[]byte(details("read_file")), []byte(responses)}}
	if diff := cmp.Diff(want, again.AnsweredInputs()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestJournal_savedState(t *testing.T) {
	j := NewJournal()
	for _, round := range []string{"first", "second"} {
		outcome := j.SaveState([]byte("kept "+round), []byte(`{"requests":[]}`))
		if len(outcome.Suspended) != 1 || string(outcome.Suspended[0].Payload) != `{"requests":[]}` {
			t.Fatalf("%s: the call is not suspended: %+v", round, outcome)
		}
		if _, _, ok := j.SavedState(); ok {
			t.Errorf("%s: it continues without a response", round)
		}
		encoded, err := j.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		j = NewJournal()
		if err := j.UnmarshalBinary(encoded); err != nil {
			t.Fatal(err)
		}
		if err := j.Answer(outcome.Suspended[0].Seq, []byte("answered "+round)); err != nil {
			t.Fatal(err)
		}
		kept, answers, ok := j.SavedState()
		if !ok || string(kept) != "kept "+round || string(answers) != "answered "+round {
			t.Errorf("it continues from %q with %q, %v", kept, answers, ok)
		}
	}
}

func TestJournal_noSavedState(t *testing.T) {
	for name, j := range map[string]*Journal{"none": nil, "an empty one": NewJournal()} {
		if _, _, ok := j.SavedState(); ok {
			t.Errorf("%s has a saved state", name)
		}
	}
}
