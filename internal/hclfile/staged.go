package hclfile

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/diag"
)

// Staged returns a mistake for each block and argument that [File.Decode] and
// [File.DecodeConfig] read and that nothing serves yet. Whoever loads files to
// serve them adds these, so that no file asks for what it does not get.
func (f *File) Staged() diag.List {
	return f.finish(f.staged(f.body, fileRules[f.kind], nil))
}

// staged adds the mistakes of a body to found. What stands inside of a staged
// block is refused with it.
func (f *File) staged(body *hclsyntax.Body, r *rule, found diag.List) diag.List {
	for i := range r.args {
		if attr := body.Attributes[r.args[i].name]; attr != nil && r.args[i].staged {
			found = append(found, f.notSupported(attr.NameRange, fmt.Sprintf("the argument %q", attr.Name)))
		}
	}
	for _, b := range blocks(body, r) {
		if br := r.block(b.Type); br.staged {
			found = append(found, f.notSupported(b.TypeRange, fmt.Sprintf("the block %q", b.Type)))
		} else {
			found = f.staged(b.Body, br, found)
		}
	}
	return found
}

func (f *File) notSupported(where hcl.Range, what string) diag.Diagnostic {
	return diag.Diagnostic{
		Code: "not-supported", Range: f.rng(where), Detail: "remove it",
		Summary: what + " is not supported by this version of mcpd",
	}
}
