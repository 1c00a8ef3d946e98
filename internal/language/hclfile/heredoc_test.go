package hclfile

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFormat_keepsRawHeredocs(t *testing.T) {
	const source = `tool   "t" {
description="x"
   read_only  =   true
  input "a" {type=string}
run = <<JS
if(  x   ) {
	return   ` + "`${ a }`" + `
 }
      JS
}


policy "p" {
deny = <<-CEL
        a   ==   1
    CEL
reason="no" # why
}`
	const want = `tool "t" {
  description = "x"
  read_only   = true
  input "a" { type = string }
  run = <<JS
if(  x   ) {
	return   ` + "`${ a }`" + `
 }
      JS
}


policy "p" {
  deny   = <<-CEL
        a   ==   1
    CEL
  reason = "no" # why
}
`
	got, problems := Format(Source{Path: "x.hcl", Bytes: []byte(source)})
	if diff := cmp.Diff(want, string(got)); diff != "" || len(problems) > 0 {
		t.Error(diff, problems)
	}
}

func TestFormat_syntaxErrorAndJSON(t *testing.T) {
	if out, problems := Format(Source{Path: "x.hcl", Bytes: []byte("tool {")}); out != nil || !problems.HasErrors() {
		t.Errorf("%q %v", out, problems)
	}
	if out, problems := Format(Source{Path: "x.hcl.json", Bytes: []byte(`{ }`)}); string(out) != `{ }` || len(problems) > 0 {
		t.Errorf("%q %v", out, problems)
	}
}
