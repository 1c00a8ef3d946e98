package host_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/host"
	"github.com/mcpd/mcpd/internal/host/secrets"
	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/scripting"
)

// newReadingLab returns a call with three granted secrets: a readable one, an unavailable one,
// and one that scripts may not read.
func newReadingLab(t *testing.T) *lab {
	t.Helper()
	l := newLab(t)
	defs := []secrets.Definition{
		{Name: "key", Env: "TOKEN", ScriptReadable: true}, {Name: "hidden", Env: "TOKEN"}, {Name: "absent", Env: "NONE", ScriptReadable: true}, {Name: "other", Env: "TOKEN", ScriptReadable: true},
	}
	l.Secrets.Set(defs)
	l.SecretKeys = map[string]string{}
	for _, d := range defs {
		l.SecretKeys[d.Name] = d.Key()
	}
	l.ReadableSecrets = []string{"key", "hidden", "absent"}
	l.Caller = identity.Caller{Principal: identity.Principal{ID: "ada"}}
	return l
}

func TestSecret_grant(t *testing.T) {
	l := newReadingLab(t)
	for payload, want := range map[string]string{
		`{"name":"key"}`:    `{"name":"key","value":"` + password + `"}`,
		`{"name":"hidden"}`: scripting.Unavailable,
		`{"name":"absent"}`: scripting.Unavailable,
		`{"name":"other"}`:  scripting.NotGranted,
		`{"name":""}`:       scripting.NotGranted,
		`null`:              scripting.NotGranted,
		`[]`:                scripting.Invalid,
	} {
		if got := l.do(t, scripting.OpSecret, payload); got != want {
			t.Errorf("%s: got %s, want %s", payload, got, want)
		}
	}
	if got := newLab(t).do(t, scripting.OpSecret, `{"name":"token"}`); got != scripting.NotGranted {
		t.Errorf("without a grant: got %s", got)
	}
}

func TestSecret_audit(t *testing.T) {
	l := newReadingLab(t)
	l.do(t, scripting.OpSecret, `{"name":"key"}`)
	l.do(t, scripting.OpSecret, `{"name":"hidden"}`)
	want := `level=WARN msg="script read secret" tool=t call_id=c-1 secret=key principal=ada` + "\n" +
		`level=WARN msg="read secret for script" tool=t call_id=c-1 secret=hidden principal=ada error="secret \"hidden\" is not revealed to scripts"` + "\n"
	if got := l.log.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestSecret_auditFails(t *testing.T) {
	l := newReadingLab(t)
	l.do(t, scripting.OpSecret, `{"name":"hidden"}`)
	l.do(t, scripting.OpSecret, `{"name":"other"}`)
	l.do(t, scripting.OpSecret, `{"name":"key"}`)
	l.full = errors.New("the disk is full")
	if got := l.do(t, scripting.OpSecret, `{"name":"key"}`); got != scripting.Unavailable {
		t.Errorf("without an audit record the answer is %s", got)
	}
	const event = "secret.revealedmap[call_id:c-1 name:key principal:ada tool:t]"
	if diff := cmp.Diff([]string{event, event}, l.events); diff != "" {
		t.Errorf("events (-want +got)\n%s", diff)
	}
	if !strings.Contains(l.log.String(), `msg="read secret for script" tool=t call_id=c-1 secret=key principal=ada error="the disk is full"`) {
		t.Errorf("the log:\n%s", &l.log)
	}
}

func TestRequestInput_secret(t *testing.T) {
	l := newReadingLab(t)
	l.InputPolicy = host.InputPolicy{Grant: &grant.Ask{Elicit: true}, Client: call.Capabilities{Form: true}}
	l.do(t, scripting.OpSecret, `{"name":"key"}`)
	_, err := l.Do(t.Context(), 1, "ask", []byte(`{"requests":[{"key":"elicit","method":"elicitation/create","params":{"message":"is it `+password+`?"}}]}`))
	var refused *scripting.HostError
	if !errors.As(err, &refused) || refused.Code != scripting.Denied || strings.Contains(err.Error(), password) {
		t.Errorf("got %v", err)
	}
}

func TestRedactJSON_number(t *testing.T) {
	l := newLab(t)
	store := secrets.New(secrets.Options{LookupEnv: func(string) (string, bool) { return "123456", true }})
	store.Set([]secrets.Definition{{Name: "pin", Env: "PIN"}})
	if _, err := store.Resolve(t.Context(), "pin"); err != nil {
		t.Fatal(err)
	}
	l.Secrets = store
	l.do(t, "log", `{"level":"info","message":"m","fields":{"a":123456,"b":[1234567,1.5,"x123456",true],"123456":null}}`)
	if got := strings.Join(l.told, "\n"); !strings.Contains(got, `{"[secret:pin]":null,"a":"[secret:pin]","b":["[secret:pin]7",1.5,"x[secret:pin]",true]}`) {
		t.Errorf("got %s", got)
	}
}
