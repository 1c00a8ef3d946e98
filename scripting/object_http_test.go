package scripting

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHTTP_payload(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{`await http.crm.get("https://a/b")`, `{"grant":"crm","method":"GET","url":"https://a/b"}`},
		{`await http.crm.delete(new URL("https://a/b"))`, `{"grant":"crm","method":"DELETE","url":"https://a/b"}`},
		{`await http.crm.post("u", { json: { a: [1, "ä"] } })`, `{"grant":"crm","method":"POST","url":"u","headers":{"content-type":"application/json"},"body":"{\"a\":[1,\"ä\"]}"}`},
		{`await http.crm.put("u", { headers: { "Content-Type": "x/y", A: 1 }, json: null, body: "raw" })`, `{"grant":"crm","method":"PUT","url":"u","headers":{"a":"1","content-type":"x/y"},"body":"raw"}`},
		{`await http.crm.patch("u", { headers: { "Content-Type": "x/y" }, json: 1 })`, `{"grant":"crm","method":"PATCH","url":"u","headers":{"content-type":"x/y"},"body":"1"}`},
		{`await http.crm.request("query", "u", { body: new Uint8Array([255, 0]), timeout: 250 })`, `{"grant":"crm","method":"QUERY","url":"u","body64":"/wA=","timeout_ms":250}`},
		{`await http.crm.post("u", { body: new URLSearchParams({ a: "b c" }) })`, `{"grant":"crm","method":"POST","url":"u","headers":{"content-type":"application/x-www-form-urlencoded;charset=UTF-8"},"body":"a=b+c"}`},
		{`await http["crm"]["get"]("u")`, `{"grant":"crm","method":"GET","url":"u"}`},
		{`const { crm: { get } } = http; await get("u")`, `{"grant":"crm","method":"GET","url":"u"}`},
	} {
		host := &fakeHost{answer: func(context.Context, string, []byte) ([]byte, error) {
			return []byte(`{"status":204,"headers":{}}`), nil
		}}
		out := runWith(t, call(compiled(t, tool(c.body)), `{}`), host)
		if diff := cmp.Diff([]string{"http.request " + c.want}, host.calls()); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", c.body, shown(out), diff)
		}
	}
}

func TestHTTP_response(t *testing.T) {
	for _, c := range []struct{ answer, expression, want string }{
		{`{"status":200,"headers":{"etag":"x","a":"1, 2"},"body":"hi","url":"https://a/"}`, `[r.status, r.ok, r.url, r.headers, r.text()]`, `[200,true,"https://a/",{"a":"1, 2","etag":"x"},"hi"]`},
		{`{"status":404,"headers":{},"body":"{\"a\":[1]}"}`, `[r.ok, r.json().a[0]]`, `[false,1]`},
		{`{"status":200,"headers":{},"body64":"/wBh"}`, `[Array.from(r.bytes()), r.text()]`, `[[255,0,97],"�\u0000a"]`},
		{`{"status":200,"headers":{},"body":"\ufeff{}"}`, `r.json()`, `{}`},
		{`{"status":204,"headers":{}}`, `[r.text(), r.bytes().length]`, `["",0]`},
		{`{"status":200,"headers":{"__proto__":"x"},"body":""}`, `Object.keys(r.headers)`, `["__proto__"]`},
		{`{"status":200,"headers":{},"body":"<html>"}`, `r.json()`, `failure Thrown: the response is not JSON: unexpected character at byte 0 of the JSON text`},
		{`not JSON`, `r.status`, `failure Thrown: the response of the host cannot be decoded`},
		{`{"status":200,"headers":{},"body64":"*"}`, `r.status`, `failure Thrown: the response of the host cannot be decoded`},
	} {
		host := &fakeHost{answer: func(context.Context, string, []byte) ([]byte, error) { return []byte(c.answer), nil }}
		body := `const r = await http.crm.get("u"); return ` + c.expression
		if got := shown(runWith(t, call(compiled(t, tool(body)), `{}`), host)); got != c.want {
			t.Errorf("%s: got %s, want %s", c.answer, got, c.want)
		}
	}
}

func TestHTTP_invalidArguments(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{`http.crm.get()`, `failure Thrown: http.crm: the url is missing`},
		{`http.crm.get("u", 1)`, `failure Thrown: http.crm: the options must be an object`},
		{`http.crm.get("u", { header: {} })`, `failure Thrown: http.crm: there is no option header; there are headers, json, body, timeout and signal`},
		{`http.crm.get("u", { headers: 1 })`, `failure Thrown: http.crm: headers must be an object`},
		{`http.crm.get("u", { timeout: 0 })`, `failure Thrown: http.crm: timeout must be a number of milliseconds`},
		{`http.crm.get("u", { body: {} })`, `failure Thrown: http.crm: body must be a string or bytes; use json for objects`},
	} {
		host := &fakeHost{}
		if got := shown(runWith(t, call(compiled(t, tool(c.body)), `{}`), host)); got != c.want || len(host.calls()) > 0 {
			t.Errorf("%s: got %s, want %s; host calls %q", c.body, got, c.want, host.calls())
		}
	}
}

func TestHTTP_errorStack(t *testing.T) {
	host := &fakeHost{answer: func(context.Context, string, []byte) ([]byte, error) {
		return nil, &HostError{Code: NotGranted, Message: "no such host"}
	}}
	out := runWith(t, call(compiled(t, tool("const a = 1;\nasync function f() { return await http.crm.get('u') }\nawait f()")), `{}`), host)
	if out.Failure == nil || out.Failure.Message != "no such host" {
		t.Fatal(shown(out))
	}
	if diff := cmp.Diff([]string{"f tools.d/t.hcl:6:44-47", " tools.d/t.hcl:7:7-8"}, framesOf(out.Failure)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestHTTP_tooLarge(t *testing.T) {
	host := &fakeHost{answer: echo}
	body := `const at = 'x'.repeat(1 << 20); try { await http.crm.post("u", { body: at.repeat(24) }) } catch (e) { return [e.code, e.message] }`
	got := shown(runWith(t, call(compiled(t, tool(body)), `{}`), host))
	if want := `["TOO_LARGE","the arguments exceed 23 MiB of JSON"]`; got != want || len(host.calls()) > 0 {
		t.Errorf("got %s with %d host calls, want %s", got, len(host.calls()), want)
	}
}

func TestNotifications_order(t *testing.T) {
	body := `
		log.debug("a"); log.info("b", { n: 1, u: undefined }); log.error({ d: 1 });
		console.log("x", 1, { a: [1] }, undefined, null, Symbol("s")); console.error(); console.trace("t");
		progress(1); progress(1, 2, "half"); progress(3, NaN);`
	host := &fakeHost{}
	if out := runWith(t, call(compiled(t, tool(body)), `{}`), host); out.Failure != nil {
		t.Fatal(shown(out))
	}
	want := []string{
		`log {"level":"debug","message":"a"}`,
		`log {"level":"info","message":"b","fields":{"n":1}}`,
		`log {"level":"error","message":"{\"d\":1}"}`,
		`console {"level":"info","message":"x 1 {\"a\":[1]} undefined null s"}`,
		`console {"level":"error","message":""}`,
		`console {"level":"debug","message":"t"}`,
		`progress {"done":1}`,
		`progress {"done":1,"total":2,"message":"half"}`,
		`progress {"done":3}`,
	}
	if diff := cmp.Diff(want, host.calls()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
