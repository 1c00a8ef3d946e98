package scripting

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// environment is a host that knows an environment, and suspends what is asked.
func environment(values string) *fakeHost {
	return &fakeHost{answer: func(_ context.Context, op string, _ []byte) ([]byte, error) {
		switch op {
		case "env":
			return []byte(values), nil
		case "ask":
			return nil, ErrSuspended
		}
		return []byte(`{"text":"x"}`), nil
	}}
}

func TestTheEnvironmentIsReadOnceBeforeTheBody(t *testing.T) {
	for body, want := range map[string]string{
		`return [env.LANG, env.TZ]`:                                          `["C",null]`,
		`return [typeof env.TZ, Object.isFrozen(env), "LANG" in env]`:        `["undefined",true,true]`,
		`try { env.LANG = "x" } catch (e) { return e instanceof TypeError }`: `true`,
		`return globalThis.env.LANG`:                                         `"C"`,
		`return env === globalThis.env`:                                      `true`,
	} {
		host := environment(`{"LANG":"C"}`)
		if got := shown(runWith(t, call(compiled(t, files(body)), `{}`), host)); got != want {
			t.Errorf("%s: got %s, want %s", body, got, want)
		}
		if diff := cmp.Diff([]string{"env {}"}, host.calls()); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", body, diff)
		}
	}
	host := environment(`{}`)
	runWith(t, call(compiled(t, files(`return 1`)), `{}`), host)
	if len(host.calls()) > 0 {
		t.Errorf("a body that does not look at it asks %q", host.calls())
	}
}

func TestTheEnvironmentIsTheSameInEveryLeg(t *testing.T) {
	src := files(`const text = await fs.logs.readText(env.LANG); await roots(); return [text, env.LANG]`)
	src.Objects = append(src.Objects, Object{"ask", "roots"})
	program := compiled(t, src)
	c := call(program, `{}`)
	c.Journal = NewJournal()
	out := runWith(t, c, environment(`{"LANG":"C"}`))
	if len(out.Suspended) != 1 {
		t.Fatal(shown(out))
	}
	binary, err := c.Journal.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	c.Journal = NewJournal()
	if err := errors.Join(c.Journal.UnmarshalBinary(binary), c.Journal.Answer(out.Suspended[0].Seq, []byte(`{"responses":{"roots":{"roots":[]}}}`))); err != nil {
		t.Fatal(err)
	}
	changed := environment(`{"LANG":"de"}`)
	if got, want := shown(runWith(t, c, changed)), `["x","C"]`; got != want || len(changed.calls()) > 0 {
		t.Errorf("got %s, want %s; asked again: %q", got, want, changed.calls())
	}
}

func TestARunGoesOnBehindTheEnvironment(t *testing.T) {
	program := compiled(t, files(`const a = fs.logs.readText("a"); return [env.LANG, await a]`))
	whole := call(program, `{}`)
	whole.Journal = NewJournal()
	want := shown(runWith(t, whole, environment(`{"LANG":"C"}`)))
	for _, n := range []int{2, 4} { // behind each of the two answers
		c := call(program, `{}`)
		c.Journal = &Journal{entries: append([]entryRecord(nil), whole.Journal.entries[:n]...), seed: whole.Journal.seed}
		host := environment(`{"LANG":"another"}`)
		if got := shown(runWith(t, c, host)); got != want {
			t.Errorf("behind entry %d: got %s, want %s; asked %q", n, got, want, host.calls())
		}
	}
}

func TestAnEnvironmentThatCannotBeHadEndsTheCall(t *testing.T) {
	host := &fakeHost{answer: func(context.Context, string, []byte) ([]byte, error) {
		return nil, &HostError{Code: NotGranted, Message: "nothing is granted"}
	}}
	if got, want := shown(runWith(t, call(compiled(t, files(`return env.LANG`)), `{}`), host)), `failure Thrown: the arguments cannot be read: NOT_GRANTED: nothing is granted`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	canceled, cancel := context.WithCancel(t.Context())
	host.answer = func(ctx context.Context, _ string, _ []byte) ([]byte, error) {
		cancel()
		<-ctx.Done()
		return nil, ctx.Err()
	}
	out, err := Inline().Run(canceled, call(compiled(t, files(`return env.LANG`)), `{}`), host)
	if err != nil || out.Failure == nil || out.Failure.Kind != Canceled {
		t.Errorf("a canceled call: %s, %v", shown(out), err)
	}
}
