package scripting

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// vault is a host with secrets. It suspends asks.
func vault(values string) *fakeHost {
	return &fakeHost{answer: func(_ context.Context, op string, _ []byte) ([]byte, error) {
		switch op {
		case OpSecret:
			return []byte(values), nil
		case "ask":
			return nil, ErrSuspended
		}
		return []byte(`{"text":"x"}`), nil
	}}
}

// revealing is a script with grants of two secrets.
func revealing(body string) Source {
	src := files(body)
	src.Objects = append(src.Objects, Object{Kind: "secrets", Name: "key"}, Object{Kind: "secrets", Name: "other"})
	return src
}

func TestSecret_readOnAccess(t *testing.T) {
	read := []string{`secret {"name":"key"}`}
	for body, want := range map[string]struct {
		result string
		calls  []string
	}{
		`return secrets.key`: {`"v"`, read},
		`return secrets.key + secrets.key + secrets["key"]`: {`"vvv"`, read},
		`return secrets`: {`{}`, nil},
		`return [JSON.stringify(secrets), Object.keys(secrets)]`:     {`["{}",[]]`, nil},
		`const a = []; for (const n in secrets) a.push(n); return a`: {`[]`, nil},
		`return typeof secrets.toString`:                             {`"undefined"`, nil},
		`try { secrets.key = "x" } catch (e) { return e.name }`:      {`"TypeError"`, nil},
		`try { secrets.more = "x" } catch (e) { return e.name }`:     {`"TypeError"`, nil},
		`return "key" in secrets`:                                    {`true`, nil},
		`return 1`:                                                   {`1`, nil},
	} {
		host := vault(`{"name":"key","value":"v"}`)
		src := revealing(body)
		src.Objects = src.Objects[:len(src.Objects)-1]
		program, problems := Compile(src)
		if program == nil {
			t.Errorf("%s: %v", body, problems)
			continue
		}
		if got := shown(runWith(t, call(program, `{}`), host)); got != want.result {
			t.Errorf("%s: got %s, want %s", body, got, want.result)
		}
		if diff := cmp.Diff(want.calls, host.calls()); diff != "" && (len(want.calls) > 0 || len(host.calls()) > 0) {
			t.Errorf("%s: (-want +got)\n%s", body, diff)
		}
	}
}

func TestSecret_unavailable(t *testing.T) {
	program := compiled(t, revealing(`try { return secrets.key } catch (e) { return [e instanceof HostError, e.code] }`))
	refusing := &fakeHost{answer: func(context.Context, string, []byte) ([]byte, error) {
		return nil, &HostError{Code: Unavailable, Message: "no"}
	}}
	for _, host := range []*fakeHost{refusing, vault(`{"name":"key"}`), vault(`[]`)} {
		if got, want := shown(runWith(t, call(program, `{}`), host)), `[true,"UNAVAILABLE"]`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// A run that continues a journal must not use the response to another host call, which arrived
// while the secret was read, as the secret.
func TestSecret_concurrentResponses(t *testing.T) {
	program := compiled(t, revealing(`const a = fs.logs.readText("a"); const k = secrets.key; return [k, await a]`))
	whole := call(program, `{}`)
	whole.Journal = NewJournal()
	if got := shown(runWith(t, whole, vault(`{"name":"key","value":"v"}`))); got != `["v","x"]` {
		t.Fatal(got)
	}
	answers := map[int]journalEntry{}
	again := &Journal{seed: whole.Journal.seed}
	for _, e := range whole.Journal.entries {
		if e.kind == entryResponse {
			answers[e.seq] = e
		} else {
			again.add(e)
		}
	}
	again.add(answers[1])
	again.add(answers[2])
	c := call(program, `{}`)
	c.Journal = again
	host := vault(`{"name":"key","value":"another"}`)
	if got := shown(runWith(t, c, host)); got != `["v","x"]` || len(host.calls()) > 0 {
		t.Errorf("got %s; host calls %q", got, host.calls())
	}
}

func TestSecret_replacedInJournal(t *testing.T) {
	program := compiled(t, func() Source {
		src := revealing(`const k = secrets.key; await roots(); return [k, secrets.key]`)
		src.Objects = append(src.Objects, Object{Kind: "ask", Name: "roots"})
		return src
	}())
	c := call(program, `{}`)
	c.Journal = NewJournal()
	out := runWith(t, c, vault(`{"name":"key","value":"hunter22"}`))
	if len(out.Suspended) != 1 {
		t.Fatal(shown(out))
	}
	replace := func(from, to string) error {
		before := c.Journal.Bytes()
		err := c.Journal.Replace(OpSecret, func(answer []byte) ([]byte, error) {
			if string(answer) != from {
				return nil, fmt.Errorf("there is %s, want %s", answer, from)
			}
			return []byte(to), nil
		})
		if got := c.Journal.Bytes() - before; err == nil && got != len(to)-len(from) {
			t.Errorf("the journal grows by %d bytes", got)
		}
		return err
	}
	if err := replace(`{"name":"key","value":"hunter22"}`, `{"name":"key"}`); err != nil {
		t.Fatal(err)
	}
	binary, err := c.Journal.MarshalBinary()
	if err != nil || strings.Contains(string(binary), "hunter22") {
		t.Fatalf("%q, %v", binary, err)
	}
	c.Journal = NewJournal()
	if err := errors.Join(c.Journal.UnmarshalBinary(binary), replace(`{"name":"key"}`, `{"name":"key","value":"hunter33"}`),
		c.Journal.Answer(out.Suspended[0].Seq, []byte(`{"responses":{"roots":{"roots":[]}}}`))); err != nil {
		t.Fatal(err)
	}
	if got, want := shown(runWith(t, c, vault(`{}`))), `["hunter33","hunter33"]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if err := replace(`nothing`, ``); err == nil {
		t.Error("an error was dropped")
	}
}
