package scripting

import (
	"strings"
	"testing"
)

func TestTheFenceAroundAProgramIsLeftOut(t *testing.T) {
	for _, c := range []struct{ code, want string }{
		{"```js\n1 + 1\n```", "2"},
		{"\n ```javascript \r\n1 + 1\r\n```\r\n\n", "2"},
		{"~~~\nreturn 5\n~~~", "5"},
		{"````typescript\nconst n: number = 5\nn\n````", "5"},
		{"```python\nimport os\nprint(1)\n```", "nothing"},
		{"```\n`${1}`\n```", `"1"`},
		{"```js\n\n```", "nothing"},
		{"~~~js\nconst t = `\n~~~js\nx\n~~~\n`;\nt.length\n~~~", "13"},
		{"```js\nserch_web({})\n```", "throws ReferenceError: serch_web is not defined; did you mean search_web?"},
		{"```js\nconst x = ;\n```", "refused: 2:11: error: unexpected token ;; a value is missing between = and ;"},
		{"const t = `\n~~~js\nx\n~~~\n`\nt.length", "13"},
		{"'```js\\nx\\n```'", `"` + "```js\\nx\\n```" + `"`},
	} {
		if got := runCode(t, c.code).Ended; got != c.want {
			t.Errorf("%q:\ngot  %s\nwant %s", c.code, got, c.want)
		}
	}
}

func TestAFenceThatIsLeftOutIsReported(t *testing.T) {
	_, list := Compile(codeOf("\n```js\nimport x from 'y'\n1\n```"))
	var got strings.Builder
	for _, d := range list {
		got.WriteString(d.Code + " " + d.String() + "\n")
	}
	want := "fence-removed code:2:1: warning: code needs no fence of Markdown: removed the one around it; send the program alone\n" +
		"import-removed code:3:1: warning: import statements are not needed: removed line 3: import x from 'y'; the tools are there already, and nothing else can be imported\n"
	if got.String() != want {
		t.Errorf("got\n%swant\n%s", got.String(), want)
	}
}

func TestAFenceThatIsNotAroundTheWholeProgramStays(t *testing.T) {
	for _, code := range []string{
		"```js\n1 + 1", "1 + 1\n```", "Here it is:\n```js\n1\n```", "```js\n1\n```\nThat is all.", "```sql\nselect 1\n```", "~~~js\n1", "~~~~\n1\n~~~", "```js\n1\n~~~",
		"", "```", "``````", "```js```", "\n\n", "~~~", "`", "`\n`", "~~~\n",
		"\v\n0", "\f\n```js\n1\n```", "\u00a0\n1",
	} {
		if f := fenced(code); f != nil {
			t.Errorf("%q has the fence %v", code, f)
		}
	}
}
