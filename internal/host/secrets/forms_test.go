package secrets

import (
	"strings"
	"testing"
)

func TestNoWayOfWritingJSONShowsAValue(t *testing.T) {
	for value, shown := range map[string][]string{
		"aws/Secret/Key": {`{"a":"aws\/Secret\/Key"}`},
		`pa"ss\word-42`:  {`{"a":"pa\"ss\\word-42"}`, `"{\"a\":\"pa\\\"ss\\\\word-42\"}"`},
		"geheimß-ü":      {`{"a":"geheim\u00df-\u00fc"}`, "geheimß-ü"},
	} {
		v := weave(map[string][]string{"n": {value}})
		for _, text := range shown {
			if got := v.over(text); !strings.Contains(got, "[secret:n]") {
				t.Errorf("%s becomes %s", text, got)
			}
		}
	}
}
