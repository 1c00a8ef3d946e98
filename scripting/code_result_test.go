package scripting

import (
	"testing"
)

func TestContentOfToolsPassesThroughCode(t *testing.T) {
	const text, image = `{"type":"text","text":"a page"}`, `{"type":"image","data":"AAAA","mimeType":"image/png"}`
	for _, c := range []struct{ code, want string }{
		{"await screenshot()", "content [" + text + "," + image + "] "},
		{"screenshot()", "content [" + text + "," + image + "] "},
		{"(await screenshot())[1]", "content [" + image + "] "},
		{"(await screenshot()).filter((b) => b.type === 'image')", "content [" + image + "] "},
		{"const s = await screenshot();\n[...s, ...s]", "content [" + text + "," + image + "," + text + "," + image + "] "},
		{"({ title: 'x', shot: await screenshot() })", "content [" + image + `] {"title":"x","shot":[` + text + `,{"type":"image","block":0}]}`},
		{"const [, a] = await screenshot();\n({ a, b: a, n: null, u: undefined })", "content [" + image + "," + image + `] {"a":{"type":"image","block":0},"b":{"type":"image","block":1},"n":null}`},
		{"const [, a] = await screenshot();\n[1, a]", "content [" + image + `] [1,{"type":"image","block":0}]`},
		{"(await screenshot())[0].text", `"a page"`},
		{"({ deep: { shot: (await screenshot())[1] } })", `{"deep":{"shot":` + image + `}}`},
		{"({ note: (await screenshot())[0] })", `{"note":` + text + `}`},
		{"({ copy: { ...(await screenshot())[1] } })", `{"copy":` + image + `}`},
		{"[{ type: 'text', text: 'mine' }]", `[{"type":"text","text":"mine"}]`},
		{"await parallel([screenshot(), crm.list()])", "content [" + image + "] [[" + text + `,{"type":"image","block":0}],{"tool":"crm_list","arguments":{}}]`},
		{"[[await screenshot()]]", "[[[" + text + "," + image + "]]]"},
	} {
		if got := runCode(t, c.code).Ended; got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.code, got, c.want)
		}
	}
}

func TestOnlyBlocksOfMCPAreContent(t *testing.T) {
	for _, c := range []struct {
		answer string
		want   bool
	}{
		{`[{"type":"text","text":"a"}]`, true},
		{`[{"type":"audio","data":"AA","mimeType":"audio/wav"}]`, true},
		{`[{"type":"resource","resource":{"uri":"a:b","text":"c"}},{"type":"resource","resource":{"uri":"a:b","blob":"AA"}}]`, true},
		{`[{"type":"resource_link","uri":"a:b","name":"c"}]`, true},
		{`[{"type":"text","text":"a"},{"title":"b"}]`, false},
		{`[{"type":"text"}]`, false},
		{`[{"type":"image","data":"AA"}]`, false},
		{`[{"type":"resource","resource":{"uri":"a:b"}}]`, false},
		{`[{"type":"resource_link","uri":"a:b"}]`, false},
		{`[{"type":"dog","text":"a"}]`, false},
		{`[{"type":1}]`, false},
		{`[]`, false},
		{`{"type":"text","text":"a"}`, false},
		{`["text"]`, false},
	} {
		out := runWith(t, call(compiled(t, codeOf("await crm.list()")), ``), &staticHost{[]byte(c.answer)})
		if got := out.Result != nil && out.Result.Kind == Content; got != c.want {
			t.Errorf("%s: content %t", c.answer, got)
		}
	}
}
