package engine_test

import "testing"

// The error suggests the name with its prefix, if the caller may see the tool.
func TestNotFound_withoutPrefix(t *testing.T) {
	url := newTestUpstreams(t)["stateless"]
	for name, row := range map[string]struct{ config, call, want string }{
		"whole name":    {upstreamAt(url), "sum", `TOOL_NOT_FOUND: no tool named "sum"; did you mean "lab_sum"?`},
		"misspelled":    {upstreamAt(url), "pictre", `TOOL_NOT_FOUND: no tool named "pictre"; did you mean "lab_picture"?`},
		"other prefix":  {upstreamAt(url, `prefix = "a.very.long.prefix/"`), "sum", `TOOL_NOT_FOUND: no tool named "sum"; did you mean "a.very.long.prefix/sum"?`},
		"two upstreams": {upstreamAt(url) + upstreamNamed("kit", url), "sum", `TOOL_NOT_FOUND: no tool named "sum"; did you mean "kit_sum"?`},
		"hidden from the caller": {
			upstreamAt(url) + "policy \"none\" {\n  tools  = [\"lab_sum\"]\n  deny   = \"true\"\n  reason = \"No\"\n}\n",
			"sum", `TOOL_NOT_FOUND: no tool named "sum"`,
		},
		"one of two hidden": {
			upstreamAt(url) + upstreamNamed("kit", url) + "policy \"none\" {\n  tools  = [\"kit_*\"]\n  deny   = \"true\"\n  reason = \"No\"\n}\n",
			"sum", `TOOL_NOT_FOUND: no tool named "sum"; did you mean "lab_sum"?`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := federated(t, row.config)
			if got := outcomeLine(executeCall(t, s, tool(row.call, `{}`))); got != row.want {
				t.Errorf("got  %s\nwant %s", got, row.want)
			}
		})
	}
}
