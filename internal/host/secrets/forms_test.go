package secrets

import (
	"strings"
	"testing"
)

func TestRedact_urlAndHTML(t *testing.T) {
	const value = `it's <a/b> & "c"+d~!`
	v := newRedactor(map[string][]secretForms{"n": {newSecretForms(value)}})
	for _, shown := range []string{
		"it's%20%3Ca%2Fb%3E%20%26%20%22c%22%2Bd~!",                     // encodeURIComponent
		"it's%20%3Ca/b%3E%20&%20%22c%22+d~!",                           // encodeURI
		"it%27s+%3Ca%2Fb%3E+%26+%22c%22%2Bd~%21",                       // a form
		"it%27s+%3ca%2fb%3e+%26+%22c%22%2bd~%21",                       // a form, in lower case
		"it&#39;s &lt;a/b&gt; &amp; &#34;c&#34;+d~!",                   // HTML
		"dXNlcjppdCUyN3MrJTNDYSUyRmIlM0UrJTI2KyUyMmMlMjIlMkJkfiUyMQ==", // a client and its secret in a header
	} {
		if got := v.redact(shown); !strings.Contains(got, "[secret:n]") {
			t.Errorf("%s becomes %s", shown, got)
		}
	}
}

func TestRedact_json(t *testing.T) {
	for value, shown := range map[string][]string{
		"aws/Secret/Key":  {`{"a":"aws\/Secret\/Key"}`},
		`pa"ss\word-42`:   {`{"a":"pa\"ss\\word-42"}`, `"{\"a\":\"pa\\\"ss\\\\word-42\"}"`},
		"geheimß-ü":       {`{"a":"geheim\u00df-\u00fc"}`, "geheimß-ü"},
		"two\u2028\"l\"s": {"{\"a\":\"two\u2028\\\"l\\\"s\"}", `"two\u2028\"l\"s"`},
	} {
		v := newRedactor(map[string][]secretForms{"n": {newSecretForms(value)}})
		for _, text := range shown {
			if got := v.redact(text); !strings.Contains(got, "[secret:n]") {
				t.Errorf("%s becomes %s", text, got)
			}
		}
	}
}
