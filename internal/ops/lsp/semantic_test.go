package lsp

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSemanticTokens_ofLanguages shows each token of a file as its text and type, a line each.
func TestSemanticTokens_ofLanguages(t *testing.T) {
	text := `# A tool.
tool "a" { // with
  run = <<JS
    // total
    const x = await tools.b(input.id, 1.5) + ` + "`n ${input.n} m`" + `;
  JS
  dry_run = <<TS
    interface I { a: string }
  TS
}
policy "p" {
  deny  = "args.id == 'x' && size(vars.y) > 2"
  tools = ["a", local.b, upper("c")] # all
  labels = { k = true }
  text = <<EOT
  not code
  EOT
}
resource "r" {
  allow {
    sql "db" {
      statement "q" {
        query = <<-SQL
          SELECT name FROM t WHERE id = $1 -- one
        SQL
      }
    }
  }
}
/* end */
`
	s := newSource("a.hcl", "a.hcl", text, &Project{})
	var got []string
	for _, found := range s.semanticTokens() {
		got = append(got, fmt.Sprintf("%s %s", tokenTypes[found.typ], strings.TrimSpace(text[found.start:found.end])))
	}
	want := strings.Split(strings.TrimSpace(`
comment # A tool.
keyword tool
type a
comment // with
property run
string <<JS
comment // total
keyword const
variable x
keyword await
variable tools
function b
variable input
property id
number 1.5
string `+"`n ${"+`
variable input
property n
string } m`+"`"+`
string JS
property dry_run
string <<TS
keyword interface
variable I
variable a
variable string
string TS
keyword policy
type p
property deny
string "
variable args
property id
string 'x'
function size
variable vars
property y
number 2
string "
property tools
string "a"
variable local
property b
function upper
string "c"
comment # all
property labels
property k
keyword true
property text
string <<EOT
  not code
  EOT
keyword resource
type r
keyword allow
keyword sql
type db
keyword statement
type q
property query
string <<-SQL
keyword SELECT
variable name
keyword FROM
variable t
keyword WHERE
variable id
number 1
comment -- one
string SQL
comment /* end */`), "\n")
	if diff := cmp.Diff(strings.Join(want, "\n"), strings.Join(got, "\n")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestEncodeTokens splits tokens by lines, and counts in the unit of the session.
func TestEncodeTokens(t *testing.T) {
	text := "😀 a\nbc\r\n\nd e"
	tokens := []semanticToken{{0, 4, 0}, {5, len("😀 a\nbc\r\n\nd"), 1}, {len(text) - 1, len(text), 2}}
	for name, test := range map[string]struct {
		unit       encoding
		start, end int
		want       []uint32
	}{
		"utf-16": {utf16, 0, len(text), []uint32{0, 0, 2, 0, 0, 0, 3, 1, 1, 0, 1, 0, 2, 1, 0, 2, 0, 1, 1, 0, 0, 2, 1, 2, 0}},
		"utf-8":  {utf8s, 0, len(text), []uint32{0, 0, 4, 0, 0, 0, 5, 1, 1, 0, 1, 0, 2, 1, 0, 2, 0, 1, 1, 0, 0, 2, 1, 2, 0}},
		"range":  {utf16, len(text) - 1, len(text), []uint32{3, 2, 1, 2, 0}},
		"empty":  {utf16, 0, 0, []uint32{}},
	} {
		if diff := cmp.Diff(test.want, test.unit.encodeTokens(text, tokens, test.start, test.end)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
