package scripting

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
)

// author writes random bodies. Whatever a body does has a number of its own
// and leaves its result under it, so that the order in which branches go on
// does not show in the end.
type author struct {
	*rand.Rand
	number int
}

// write returns a text with the next number in place of N, and a number of
// milliseconds in place of MS.
func (a *author) write(text string) string {
	a.number++
	text = strings.ReplaceAll(text, "MS", fmt.Sprint(a.IntN(40)))
	return strings.ReplaceAll(text, "N", fmt.Sprint(a.number))
}

// block writes statements that happen one after another.
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

// TestSuspendedOrNotACallDoesTheSame runs random bodies in one go, where the
// host answers every ask at once, and in legs: every ask is suspended, some of
// those that are open are answered in any order, and the journal is written and
// read in between.
func TestSuspendedOrNotACallDoesTheSame(t *testing.T) {
	reply := func(q question) string {
		if strings.HasPrefix(q.Key, "refused") {
			return `{"action":"decline"}`
		}
		return willing(q)
	}
	asked, runs := 0, 0
	for seed := range uint64(60) {
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
				t.Fatalf("seed %d: effects (-in one go +in %d legs):\n%s\n%s", seed, n, diff, body)
			}
			runs += n
			asked += strings.Count(strings.Join(effects(t, legs), " "), "?")
		})
	}
	if runs < 200 || asked < 400 {
		t.Errorf("only %d runs and %d asks: the bodies try too little", runs, asked)
	}
}

// inLegs runs a call until it ends, and once more from its whole journal. It
// returns how it ended, and after how many runs.
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
				continue // it stays open
			}
			if err := c.Journal.Answer(ask.Seq, answered(t, ask.Payload, reply)); err != nil {
				t.Fatal(err)
			}
		}
		c.Journal = reread(t, c.Journal)
	}
	idle := &fakeHost{answer: func(context.Context, string, []byte) ([]byte, error) { panic("asked in a replay") }}
	if diff := cmp.Diff(end, members(t, runWith(t, c, idle))); diff != "" {
		t.Errorf("the replay of all of it (-before +after):\n%s", diff)
	}
	return end, runs
}

// members returns the members of a result, whose order is that of the branches.
func members(t *testing.T, out Outcome) (found map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(shown(out)), &found); err != nil {
		t.Fatalf("%v: %s", err, shown(out))
	}
	return found
}
