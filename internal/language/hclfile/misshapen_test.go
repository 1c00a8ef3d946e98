package hclfile

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/diag"
)

// TestMisshapen_blocks: no block that is written as an argument, or with other labels than it
// has, ends the process: it is reported.
func TestMisshapen_blocks(t *testing.T) {
	for kind, top := range fileRules {
		problems := map[Kind]func(Source) diag.List{ToolsKind: toolProblems, ConfigKind: configProblems}[Kind(kind)]
		var nest func(before, after string, r *rule, depth int)
		nest = func(before, after string, r *rule, depth int) {
			for _, name := range r.blocks {
				inner := r.block(name)
				for labels := range 4 {
					open := name + strings.Repeat(` "x"`, labels)
					for _, body := range []string{open + " {\n}", open + " {\n}\n" + open + " {\n}"} {
						if found := problems(Source{Path: "x.hcl", Bytes: []byte(before + body + after)}); labels != len(inner.labels) && !found.HasErrors() {
							t.Errorf("%s%s%s: nothing is reported", before, body, after)
						}
					}
				}
				for _, value := range []string{"1", `"x"`, "{}"} {
					if found := problems(Source{Path: "x.hcl", Bytes: fmt.Appendf(nil, "%s%s = %s%s", before, name, value, after)}); inner != nil && r.arg(name) == nil && !found.HasErrors() {
						t.Errorf("%s%s = %s%s: nothing is reported", before, name, value, after)
					}
				}
				if depth < 4 {
					nest(before+name+strings.Repeat(` "x"`, len(inner.labels))+" {\n", "\n}"+after, inner, depth+1)
				}
			}
		}
		nest("", "\n", top, 0)
	}
}

// TestDecode_panic: a mistake in the decoder is reported at the file, and ends nothing.
func TestDecode_panic(t *testing.T) {
	f := &File{path: "x.hcl"} // has no body, so that both decoders panic
	_, problems := f.Decode(Scope{})
	_, more := f.DecodeConfig(nil)
	for _, found := range []diag.List{problems, more} {
		if len(found) != 1 || found[0].Code != codeInternal || found[0].Range.File != "x.hcl" || !found.HasErrors() {
			t.Errorf("got %v", found)
		}
	}
}
