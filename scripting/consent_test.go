package scripting

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const consentPage = `{"mode":"url","url":"https://login.example.com/a?state=s","message":"Allow it.","elicitationId":"e"}`

// guarded is a host that accepts requests after the user has approved them.
func guarded(allowed *bool) *fakeHost {
	return &fakeHost{answer: func(_ context.Context, op string, payload []byte) ([]byte, error) {
		switch {
		case op == OpAsk:
			return nil, ErrSuspended
		case !strings.Contains(string(payload), `"consented":true`):
			return nil, &HostError{Code: Consent, Message: "not yet", Details: []byte(consentPage)}
		case !*allowed:
			return nil, &HostError{Code: Consent, Message: "the user denied access"}
		}
		return []byte(`{"status":200,"headers":{},"body":"welcome","url":"https://x"}`), nil
	}}
}

// granted runs a script up to its question, and continues with a response.
func granted(t *testing.T, host *fakeHost, answer string) (result string, calls []string) {
	t.Helper()
	src := files(`try { const r = await http.crm.get("https://x"); return [r.status, r.text()] } catch (e) { return [e.name, e.code ?? e.reason, e.message] }`)
	src.Objects = append(src.Objects, Object{Kind: "http", Name: "crm"})
	c := call(compiled(t, src), `{}`)
	c.Journal = NewJournal()
	out := runWith(t, c, host)
	if len(out.Suspended) != 1 || string(out.Suspended[0].Payload) != `{"requests":[{"key":"consent","method":"elicitation/create","params":`+consentPage+`}]}` {
		t.Fatalf("got %s", shown(out))
	}
	binary, err := c.Journal.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	c.Journal = NewJournal()
	if err := errors.Join(c.Journal.UnmarshalBinary(binary), c.Journal.Answer(out.Suspended[0].Seq, []byte(`{"responses":{"consent":`+answer+`}}`))); err != nil {
		t.Fatal(err)
	}
	return shown(runWith(t, c, host)), host.calls()
}

func TestConsent_accepted(t *testing.T) {
	allowed := true
	got, calls := granted(t, guarded(&allowed), `{"action":"accept"}`)
	if got != `[200,"welcome"]` {
		t.Errorf("got %s", got)
	}
	want := []string{
		`http.request {"grant":"crm","method":"GET","url":"https://x"}`, `ask {"requests":[{"key":"consent","method":"elicitation/create","params":` + consentPage + `}]}`,
		`http.request {"grant":"crm","method":"GET","url":"https://x","consented":true}`,
	}
	if diff := cmp.Diff(want, calls); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestConsent_refused(t *testing.T) {
	allowed := false
	if got, _ := granted(t, guarded(&allowed), `{"action":"accept"}`); got != `["HostError","DENIED","the user denied access"]` {
		t.Errorf("got %s", got)
	}
	if got, calls := granted(t, guarded(&allowed), `{"action":"decline"}`); got != `["AskDenied","declined","the question to the user was declined"]` || len(calls) != 2 {
		t.Errorf("got %s; host calls %q", got, calls)
	}
}

// TestConsent_severalRounds, but not forever: the response is for the host, and no script sees it.
func TestConsent_severalRounds(t *testing.T) {
	for name, test := range map[string]struct {
		questions int
		want      string
		asked     int
	}{"a page and a form": {2, `[200,"welcome"]`, 2}, "no end of them": {100, `["HostError","DENIED","not yet"]`, maxConsentRounds}} {
		t.Run(name, func(t *testing.T) {
			questions, asked := test.questions, 0
			host := &fakeHost{answer: func(_ context.Context, op string, payload []byte) ([]byte, error) {
				if op == OpAsk {
					asked++
					return nil, ErrSuspended
				}
				if strings.Contains(string(payload), "ABCD-EFGH") {
					t.Errorf("the response is in %s", payload)
				}
				if questions--; questions >= 0 {
					return nil, &HostError{Code: Consent, Message: "not yet", Details: []byte(`{"message":"Code?","requestedSchema":{"type":"object","properties":{"code":{"type":"string"}}}}`)}
				}
				return []byte(`{"status":200,"headers":{},"body":"welcome","url":"https://x"}`), nil
			}}
			src := files(`try { const r = await http.crm.get("https://x"); return [r.status, r.text()] } catch (e) { return [e.name, e.code ?? e.reason, e.message] }`)
			src.Objects = append(src.Objects, Object{Kind: "http", Name: "crm"})
			c := call(compiled(t, src), `{}`)
			c.Journal = NewJournal()
			out := runWith(t, c, host)
			for range 2 * maxConsentRounds {
				if out.Suspended == nil {
					break
				}
				requests := regexp.MustCompile(`"key":"([^"]*)"`).FindStringSubmatch(string(out.Suspended[0].Payload))
				if err := c.Journal.Answer(out.Suspended[0].Seq, []byte(`{"responses":{"`+requests[1]+`":{"action":"accept","content":{"code":"ABCD-EFGH"}}}}`)); err != nil {
					t.Fatal(err)
				}
				out = runWith(t, c, host)
			}
			if got := shown(out); got != test.want || asked != test.asked {
				t.Errorf("got %s after %d questions, want %s after %d", got, asked, test.want, test.asked)
			}
		})
	}
}
