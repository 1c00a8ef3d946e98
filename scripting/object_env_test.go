package scripting

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// environment is a host with an environment. It suspends asks.
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

func TestEnv_readOnce(t *testing.T) {
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
		t.Errorf("a script that does not use it calls %q", host.calls())
	}
}

func TestEnv_sameAfterResume(t *testing.T) {
	src := files(`const text = await fs.logs.readText(env.LANG); await roots(); return [text, env.LANG]`)
	src.Objects = append(src.Objects, Object{Kind: "ask", Name: "roots"})
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
		t.Errorf("got %s, want %s; called again: %q", got, want, changed.calls())
	}
}

func TestEnv_replay(t *testing.T) {
	program := compiled(t, files(`const a = fs.logs.readText("a"); return [env.LANG, await a]`))
	whole := call(program, `{}`)
	whole.Journal = NewJournal()
	want := shown(runWith(t, whole, environment(`{"LANG":"C"}`)))
	for _, n := range []int{2, 4} { // after each of the two responses
		c := call(program, `{}`)
		c.Journal = &Journal{entries: append([]journalEntry(nil), whole.Journal.entries[:n]...), seed: whole.Journal.seed}
		host := environment(`{"LANG":"another"}`)
		if got := shown(runWith(t, c, host)); got != want {
			t.Errorf("after entry %d: got %s, want %s; host calls %q", n, got, want, host.calls())
		}
	}
}

func TestEnv_unavailable(t *testing.T) {
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

// programs is the source of a tool with the grant exec.git.
func programs(body string) Source {
	src := tool(body)
	src.Objects = []Object{{Kind: "exec", Name: "git"}}
	return src
}

func TestExec_payload(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{`await exec.git()`, `exec.run {"grant":"git","params":{}}`},
		{`await exec.git({})`, `exec.run {"grant":"git","params":{}}`},
		{`await exec.git({ branch: "a b;$(id)\u0000\n", n: -5, big: 9007199254740991 })`, `exec.run {"grant":"git","params":{"big":"9007199254740991","branch":"a b;$(id)\u0000\n","n":"-5"}}`},
		{`const { git } = exec; await git({ a: "😀" })`, `exec.run {"grant":"git","params":{"a":"😀"}}`},
		{`await exec["g" + "it"]()`, `exec.run {"grant":"git","params":{}}`},
	} {
		host := &fakeHost{answer: func(context.Context, string, []byte) ([]byte, error) { return []byte(`{"code":0}`), nil }}
		out := runWith(t, call(compiled(t, programs(c.body)), `{}`), host)
		if diff := cmp.Diff([]string{c.want}, host.calls()); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", c.body, shown(out), diff)
		}
	}
}

func TestExec_invalidParams(t *testing.T) {
	const prefix = "failure Thrown: exec.git: "
	for body, want := range map[string]string{
		`await exec.git("main")`:            "the parameters must be an object, such as { name: value }",
		`await exec.git(["main"])`:          "the parameters must be an object, such as { name: value }",
		`await exec.git({ a: true })`:       "a must be a string or a whole number",
		`await exec.git({ a: undefined })`:  "a must be a string or a whole number",
		`await exec.git({ a: 1.5 })`:        "a must be a string or a whole number",
		`await exec.git({ a: 1e300 })`:      "a must be a string or a whole number",
		`await exec.git({ a: ["--x"] })`:    "a must be a string or a whole number",
		`await exec.git({ a: "x\ud83d" })`:  "a contains half of a character, like truncated text",
		`await exec.git({ a: NaN, b: "x"})`: "a must be a string or a whole number",
	} {
		host := &fakeHost{}
		if got := shown(runWith(t, call(compiled(t, programs(body)), `{}`), host)); got != prefix+want {
			t.Errorf("%s: %s", body, got)
		}
		if calls := host.calls(); len(calls) > 0 {
			t.Errorf("%s: ran %q", body, calls)
		}
	}
}

func TestExec_result(t *testing.T) {
	const unread = `failure Thrown: the response of the host cannot be decoded`
	for _, c := range []struct{ expression, answer, want string }{
		{`exec.git()`, `{"code":3,"stdout":"\ufeffhé","stderr":"e"}`, `{"code":3,"stdout":"hé","stderr":"e"}`},
		{`exec.git().then(r => [r.stdout, Array.from(r.bytes())])`, `{"code":0,"stdout64":"Yf8="}`, `["a�",[97,255]]`},
		{`exec.git().then(r => r.stderr)`, `{"code":0,"stderr64":"Yf8="}`, `"a�"`},
		{`exec.git()`, `{"code":0,"stdout64":"*"}`, unread},
		{`exec.git()`, `{"stdout":""}`, unread},
		{`exec.git()`, `[]`, unread},
		{`[typeof exec.git, typeof exec["o" + "ther"]]`, ``, `["function","undefined"]`},
	} {
		host := &fakeHost{answer: func(context.Context, string, []byte) ([]byte, error) { return []byte(c.answer), nil }}
		if got := shown(runWith(t, call(compiled(t, programs(`return await `+c.expression)), `{}`), host)); got != c.want {
			t.Errorf("%s of %s: %s, want %s", c.expression, c.answer, got, c.want)
		}
	}
}

func TestExec_diagnostics(t *testing.T) {
	for body, want := range map[string]string{
		`return await exec.gti({})`:                                       `exec.gti is not granted`,
		`const r = exec.git({}); return r.stdout`:                         `a promise has no member "stdout"`,
		`return exec.git({}).code`:                                        `a promise has no member "code"`,
		`const r = await exec.git({}); return r.output`:                   `what exec answers has no member "output"`,
		`const { exitCode } = await exec.git({}); return exitCode`:        `what exec answers has no member "exitCode"`,
		`return /a/.exec("a")`:                                            ``,
		`const re = /a/g; return re.exec("a").index`:                      ``,
		`const exec = { git() { return { x: 1 } } }; return exec.git().x`: ``,
	} {
		_, problems := Compile(programs(body))
		var summaries []string
		for _, p := range problems {
			summaries = append(summaries, p.Summary)
		}
		if got := strings.Join(summaries, "; "); got != want {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
	_, problems := Compile(tool(`return await exec.git({})`))
	if len(problems) != 1 || !strings.Contains(problems[0].Detail, `allow { exec "name"`) {
		t.Errorf("without a grant: %v", problems)
	}
}
