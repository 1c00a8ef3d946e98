package scripting

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// suspendingHost suspends every ask, and echoes requests.
func suspendingHost() *fakeHost {
	return &fakeHost{answer: func(ctx context.Context, op string, payload []byte) ([]byte, error) {
		if op == OpAsk {
			return nil, fmt.Errorf("waiting for the client: %w", ErrSuspended)
		}
		return echo(ctx, op, payload)
	}}
}

// keysOf returns the keys of asks, one text for each ask.
func keysOf(t testing.TB, asks []Ask) []string {
	t.Helper()
	var keys []string
	for _, ask := range asks {
		var together []string
		for _, q := range questions(t, ask.Payload) {
			together = append(together, q.Key)
		}
		keys = append(keys, strings.Join(together, "+"))
	}
	return keys
}

// effects returns a summary of the calls of a host, sorted: concurrent calls reach it in any order.
func effects(t testing.TB, h *fakeHost) []string {
	t.Helper()
	short := []string{}
	for _, asked := range h.calls() {
		op, payload, _ := strings.Cut(asked, " ")
		var request struct{ URL, Message string }
		if err := json.Unmarshal([]byte(payload), &request); err != nil {
			t.Fatal(err)
		}
		switch op {
		case OpAsk:
			short = append(short, "?"+keysOf(t, []Ask{{Payload: []byte(payload)}})[0])
		case "progress":
			short = append(short, op)
		default:
			short = append(short, request.URL+request.Message)
		}
	}
	slices.Sort(short)
	return short
}

// runLegs runs a call until it has a result. After each leg it responds to the asks that pick selects.
// It returns the pending asks after each leg, and the end.
func runLegs(t testing.TB, c Call, h Host, pick func([]Ask) []Ask) (open []string, out Outcome) {
	t.Helper()
	c.Journal = NewJournal()
	for range 50 {
		if out = runWith(t, c, h); out.Suspended == nil {
			return open, out
		}
		open = append(open, strings.Join(keysOf(t, out.Suspended), " "))
		for _, ask := range pick(out.Suspended) {
			if err := c.Journal.Answer(ask.Seq, answered(t, ask.Payload, willing)); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Fatal("the call stays suspended")
	return nil, out
}

func all(asks []Ask) []Ask   { return asks }
func first(asks []Ask) []Ask { return asks[:1] }
func last(asks []Ask) []Ask  { return asks[len(asks)-1:] }
func reversed(asks []Ask) []Ask {
	asks = slices.Clone(asks)
	slices.Reverse(asks)
	return asks
}

func TestSuspend_resumes(t *testing.T) {
	const prelude = `
		const seen = [];
		const get = async (url) => { seen.push((await http.crm.get(url)).text()) };
		const who = async (key) => { seen.push((await elicit(key, ` + form + `)).content.key) };
		const sleep = (ms) => new Promise(r => setTimeout(r, ms));
	`
	for _, c := range []struct {
		name, body string
		pick       func([]Ask) []Ask
		open       []string
		want       string
		effects    string // calls of the host, asks with a question mark
	}{
		{"one ask", `await get("1"); await who("a"); await get("2")`, all,
			[]string{"a"}, `["1","a","2"]`, "1 ?a 2"},
		{"one after another", `await who("a"); log.info("between"); await who("b"); await who("a")`, all,
			[]string{"a", "b", "a"}, `["a","b","a"]`, "?a between ?b ?a"},
		{"several as one", `seen.push(...Object.keys(await ask({ x: roots.list(), y: elicit.form(` + form + `) })))`, all,
			[]string{"x+y"}, `["x","y"]`, "?x+y"},
		{"concurrent work", `await Promise.all([who("a"), get("30"), get("10"), sleep(20).then(() => log.info("woke"))])`, all,
			[]string{"a"}, `["10","30","a"]`, "?a 30 10 woke"},
		{"two at once", `await Promise.all([who("a"), who("b")])`, all,
			[]string{"a b"}, `["a","b"]`, "?a ?b"},
		{"two at once, answered the other way round", `await Promise.all([who("a"), who("b")])`, reversed,
			[]string{"a b"}, `["b","a"]`, "?a ?b"},
		{"two at once, each with a successor", `await Promise.all([who("a").then(() => who("c")), who("b").then(() => get("2"))])`, all,
			[]string{"a b", "c"}, `["a","b","2","c"]`, "?a ?b ?c 2"},
		{"two at once, answered one at a time", `await Promise.all([who("a").then(() => get("1")), who("b").then(() => get("2"))])`, last,
			[]string{"a b", "a"}, `["b","2","a","1"]`, "?a ?b 1 2"},
		{"a new ask beside an open one", `await Promise.all([who("a").then(() => who("c")), who("b")])`, first,
			[]string{"a b", "b c", "c"}, `["a","b","c"]`, "?a ?b ?c"},
		{"a race that a timer wins", `seen.push(await Promise.race([roots("a"), sleep(5).then(() => "late")]))`, all,
			[]string{"a"}, `["late"]`, "?a"},
		{"a race that a request wins", `seen.push(await Promise.race([roots("a"), http.crm.get("7").then(r => r.text())]))`, all,
			[]string{"a"}, `["7"]`, "?a 7"},
		{"a race that an ask wins", `seen.push((await Promise.race([roots("a"), roots("b")]))[0].name)`, last,
			[]string{"a b", "a"}, `["b"]`, "?a ?b"},
		{"in catch", `try { await get("1"); throw new Error("x") } catch (e) { await who("a"); seen.push(e.message) }`, all,
			[]string{"a"}, `["1","a","x"]`, "1 ?a"},
		{"in finally", `try { await get("1") } finally { await who("a"); await get("2") }`, all,
			[]string{"a"}, `["1","a","2"]`, "1 ?a 2"},
		{"not awaited", `who("a"); elicit("b", ` + form + `).then(() => get("1"))`, all,
			[]string{"a b"}, `["a","1"]`, "?a ?b 1"},
		{"in a timer", `setTimeout(() => who("a").then(() => get("2")), 10); await get("1")`, all,
			[]string{"a"}, `["1","a","2"]`, "?a 1 2"},
		{"in an interval", `let n = 0; const id = setInterval(() => { who("k" + n); if (++n === 3) clearInterval(id) }, 5)`, all,
			[]string{"k0 k1 k2"}, `["k0","k1","k2"]`, "?k0 ?k1 ?k2"},
		{"in a timer behind an ask", `await who("a"); setTimeout(() => who("b"), 1000)`, all,
			[]string{"a", "b"}, `["a","b"]`, "?a ?b"},
		{"messages are sent once", `log.info("1"); progress(1); console.log("2"); await who("a"); log.info("3")`, all,
			[]string{"a"}, `["a"]`, "1 progress 2 ?a 3"},
		{"a rejection that is looked at after an ask", `const p = Promise.reject(new Error("x")); await who("a"); await p.catch(e => seen.push(e.message))`, all,
			[]string{"a"}, `["a","x"]`, "?a"},
		{"a generator", `async function* g() { yield await roots("a"); yield await roots("b") } for await (const r of g()) seen.push(r[0].name)`, all,
			[]string{"a", "b"}, `["a","b"]`, "?a ?b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				host := suspendingHost()
				open, out := runLegs(t, call(compiled(t, asker(prelude+c.body+"; return seen")), `{}`), host, c.pick)
				if diff := cmp.Diff(c.open, open); diff != "" {
					t.Errorf("open asks after each leg (-want +got):\n%s", diff)
				}
				if got := shown(out); got != c.want {
					t.Errorf("got %s, want %s", got, c.want)
				}
				want := strings.Fields(c.effects)
				slices.Sort(want)
				if diff := cmp.Diff(want, effects(t, host)); diff != "" {
					t.Errorf("effects (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestSuspend_again(t *testing.T) {
	host := suspendingHost()
	c := call(compiled(t, asker(`log.info("x"); return (await roots("a"))[0].name`)), `{}`)
	c.Journal = NewJournal()
	out := runWith(t, c, host)
	entries := c.Journal.Len()
	again := runWith(t, c, host)
	if diff := cmp.Diff(out, again); diff != "" || len(out.Suspended) != 1 {
		t.Errorf("the second run ends with %s (-first +second):\n%s", shown(again), diff)
	}
	if got := effects(t, host); len(got) != 2 || c.Journal.Len() != entries {
		t.Errorf("the journal has %d entries after %d, and the host was called: %q", c.Journal.Len(), entries, got)
	}
	want := Ask{Seq: 2, Payload: []byte(`{"requests":[{"key":"a","method":"roots/list","params":{}}]}`)}
	if diff := cmp.Diff(want, again.Suspended[0]); diff != "" {
		t.Errorf("the ask (-want +got):\n%s", diff)
	}
}

func TestSuspend_failureFirst(t *testing.T) {
	for _, body := range []string{
		`roots("a"); throw new Error("x")`,
		`roots("a"); await null; throw new Error("x")`,
		`await Promise.all([roots("a"), http.crm.get("1").then(() => { throw new Error("x") })])`,
	} {
		out := runWith(t, call(compiled(t, asker(body)), `{}`), suspendingHost())
		if got := shown(out); got != "failure Thrown: x" {
			t.Errorf("%s: got %s", body, got)
		}
	}
}

func TestSuspend_someAsks(t *testing.T) {
	host := &fakeHost{answer: func(_ context.Context, _ string, payload []byte) ([]byte, error) {
		if strings.Contains(string(payload), "later") {
			return nil, ErrSuspended
		}
		return answered(t, payload, willing), nil
	}}
	body := `const [a, b] = await Promise.all([roots("now"), roots("later")]); return [a[0].name, b[0].name, (await roots("now"))[0].name]`
	open, out := runLegs(t, call(compiled(t, asker(body)), `{}`), host, all)
	if shown(out) != `["now","later","now"]` || len(open) != 1 || open[0] != "later" {
		t.Errorf("got %s after %q", shown(out), open)
	}
}

func TestSuspend_otherOperations(t *testing.T) {
	host := &fakeHost{answer: func(context.Context, string, []byte) ([]byte, error) { return nil, ErrSuspended }}
	body := `log.info("x"); progress(1); try { await http.crm.get("u") } catch (e) { return [e.code, e.message] }`
	if got := shown(runWith(t, call(compiled(t, asker(body)), `{}`), host)); got != `["UNAVAILABLE","the host could not respond"]` {
		t.Errorf("got %s", got)
	}
}

func TestSuspend_clockAndRandom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body := `const before = [Date.now(), Math.random(), crypto.randomUUID()];
			await roots();
			return [before, [Date.now() - before[0], Math.random() === before[1], crypto.randomUUID() === before[2]]]`
		whole := shown(runWith(t, call(compiled(t, asker(body)), `{}`), askingHost(t, willing)))
		c := call(compiled(t, asker(body)), `{}`)
		c.Journal = NewJournal()
		time.Sleep(time.Second)
		out := runWith(t, c, suspendingHost())
		if err := c.Journal.Answer(out.Suspended[0].Seq, answered(t, out.Suspended[0].Payload, willing)); err != nil {
			t.Fatal(err)
		}
		replay := c
		replay.Seed = Seed{8} // the journal has its own
		replay.Start = c.Start.Add(-time.Hour)
		if got := shown(runWith(t, replay, suspendingHost())); got != whole {
			t.Errorf("got %s, want %s", got, whole)
		}
		if strings.Contains(whole, "true") || !strings.Contains(whole, "[0,") {
			t.Errorf("in one run: %s", whole)
		}
	})
}

func TestSuspend_canceledCall(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(context.Context) (context.Context, context.CancelFunc)
		want FailureKind
	}{
		{"its deadline", func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Second)
		}, Timeout},
		{"a cancellation", func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(time.Second, cancel)
			return ctx, cancel
		}, Canceled},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := c.end(t.Context())
				defer cancel()
				host := &fakeHost{answer: func(ctx context.Context, _ string, _ []byte) ([]byte, error) {
					<-ctx.Done()
					return nil, ErrSuspended
				}}
				call := call(compiled(t, asker(`await roots()`)), `{}`)
				call.Journal = NewJournal()
				out, err := Inline().Run(ctx, call, host)
				if err != nil || out.Failure == nil || out.Failure.Kind != c.want {
					t.Fatalf("got %s %v", shown(out), err)
				}
				if again := runWith(t, call, &fakeHost{}); len(again.Suspended) != 1 {
					t.Errorf("its journal has %s", shown(again))
				}
			})
		})
	}
}

func TestSuspend_timers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		out := runWith(t, call(compiled(t, asker(`setTimeout(() => {}, 3000); await roots()`)), `{}`), suspendingHost())
		if len(out.Suspended) != 1 || time.Since(began) != 3*time.Second {
			t.Errorf("after %v: %s", time.Since(began), shown(out))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		out, err := Inline().Run(ctx, call(compiled(t, asker(`setInterval(() => {}, 3000); await roots()`)), `{}`), suspendingHost())
		if err != nil || out.Failure == nil || out.Failure.Kind != Timeout {
			t.Errorf("got %s %v", shown(out), err)
		}
	})
}

// author writes random scripts. Each operation has a number and stores its result under it, so that
// the order of concurrent branches does not show in the end.
type author struct {
	*rand.Rand
	number int
}

// write replaces N in a text by the next number, and MS by a number of milliseconds.
func (a *author) write(text string) string {
	a.number++
	text = strings.ReplaceAll(text, "MS", fmt.Sprint(a.IntN(40)))
	return strings.ReplaceAll(text, "N", fmt.Sprint(a.number))
}

// block writes statements that run one after the other.
func (a *author) block(depth int) string {
	var b strings.Builder
	for range 1 + a.IntN(3) {
		if depth > 0 && a.IntN(3) == 0 {
			b.WriteString(a.nested(depth-1) + "\n")
		} else {
			b.WriteString(a.statement() + "\n")
		}
	}
	return b.String()
}

func (a *author) statement() string {
	statements := []string{
		`log.info("N");`,
		`await sleep(MS); void Date.now();`,
		`out.iN = (await http.crm.post("N", { json: { n: N } })).text();`,
		`out.iN = (await http.crm.get("MS N")).text();`,
		`http.crm.get("MS N").then(r => { out.iN = r.text(); log.info("N") });`,
		`out.iN = await http.crm.get("90 N", { signal: AbortSignal.timeout(MS) }).catch(e => e.name);`,
		`{ const c = new AbortController(); http.crm.get("MS N", { signal: c.signal }).catch(e => { out.iN = e.name }); c.abort(); }`,
		`out.iN = (await elicit("kN", FORM)).content;`,
		`out.iN = await roots("refusedN").catch(e => e.reason);`,
		`out.iN = await ask({ aN: roots.list(), bN: sample.message({ prompt: "p" }), refusedN: elicit.form(FORM) });`,
		`elicit("kN", FORM).then(async a => { out.iN = a; await sleep(MS); log.info("N") });`,
		`{ const who = (await elicit("kN", FORM)).content; out.iN = (await http.crm.post("N", { json: who })).text() }`,
		`for (const i of [1, 2]) { out["iN_" + i] = [await roots("kN"), (await http.crm.get("MS N " + i)).text()]; progress(i) }`,
		`out.iN = await Promise.race([roots("kN"), new Promise(() => {})]);`,
	}
	return a.write(strings.ReplaceAll(statements[a.IntN(len(statements))], "FORM", form))
}

func (a *author) nested(depth int) string {
	switch a.IntN(5) {
	case 0:
		return "await Promise.all([(async () => {" + a.block(depth) + "})(), (async () => {" + a.block(depth) + "})()]);"
	case 1:
		return "try {" + a.block(depth) + a.write(`await roots("refusedN")`) + "} catch (e) {" + a.write("out.iN = e.reason;") + a.block(depth) + "}"
	case 2:
		return "try {" + a.block(depth) + "} finally {" + a.block(depth) + "}"
	case 3:
		return "setTimeout(async () => {" + a.block(depth) + "}, " + a.write("MS") + ");"
	default:
		return "(async () => {" + a.block(depth) + "})();"
	}
}

// TestSuspend_equivalence runs random scripts in one run, with a host that responds to every ask at
// once, and in legs: every ask is suspended, some pending ones get responses in any order, and the
// journal is encoded and decoded in between.
func TestSuspend_equivalence(t *testing.T) {
	t.Parallel()
	reply := func(q question) string {
		if strings.HasPrefix(q.Key, "refused") {
			return `{"action":"decline"}`
		}
		return willing(q)
	}
	asked, runs, seeds := 0, 0, 60
	if testing.Short() {
		seeds = 10
	}
	for seed := range uint64(seeds) {
		a := &author{Rand: rand.New(rand.NewPCG(seed, 1))}
		body := `const out = {}; const sleep = (ms) => new Promise(r => setTimeout(r, ms));
			out.first = [Math.random(), crypto.randomUUID(), (await roots())[0].name, (await roots())[0].name, Math.random()];
			` + a.block(3) + a.block(3) + "return out"
		synctest.Test(t, func(t *testing.T) {
			c := call(compiled(t, asker(body)), `{}`)
			host := askingHost(t, reply)
			want := members(t, runWith(t, c, host))
			legs := &fakeHost{answer: suspendingHost().answer}
			got, n := a.inLegs(t, c, legs, reply)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("seed %d: -in one go +in %d legs:\n%s\n%s", seed, n, diff, body)
			}
			if diff := cmp.Diff(effects(t, host), effects(t, legs)); diff != "" {
				t.Fatalf("seed %d: effects (-one run +%d legs):\n%s\n%s", seed, n, diff, body)
			}
			runs += n
			asked += strings.Count(strings.Join(effects(t, legs), " "), "?")
		})
	}
	if runs < 10*seeds/3 || asked < 20*seeds/3 {
		t.Errorf("only %d runs and %d asks: the scripts test too little", runs, asked)
	}
}

// inLegs runs a call until it ends, and replays its whole journal. It returns the end of the call
// and the number of runs.
func (a *author) inLegs(t *testing.T, c Call, h Host, reply func(question) string) (end map[string]any, runs int) {
	t.Helper()
	c.Journal = NewJournal()
	for {
		out := runWith(t, c, h)
		runs++
		if out.Suspended == nil {
			end = members(t, out)
			break
		}
		for i, n := range a.Perm(len(out.Suspended)) {
			ask := out.Suspended[n]
			if i > 0 && a.IntN(2) == 0 {
				continue // it stays pending
			}
			if err := c.Journal.Answer(ask.Seq, answered(t, ask.Payload, reply)); err != nil {
				t.Fatal(err)
			}
		}
		c.Journal = reread(t, c.Journal)
	}
	idle := &fakeHost{answer: func(context.Context, string, []byte) ([]byte, error) { panic("asked in a replay") }}
	if diff := cmp.Diff(end, members(t, runWith(t, c, idle))); diff != "" {
		t.Errorf("the replay of the whole journal (-before +after):\n%s", diff)
	}
	return end, runs
}

// members returns the members of a result; their order is that of the branches.
func members(t *testing.T, out Outcome) (found map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(shown(out)), &found); err != nil {
		t.Fatalf("%v: %s", err, shown(out))
	}
	return found
}
