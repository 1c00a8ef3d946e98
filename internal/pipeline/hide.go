package pipeline

import (
	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/redact"
)

// hides reports whether there is anything to hide.
func (x *execution) hides() bool { return len(x.entry.Sensitive) > 0 || x.catalog.Sensitive.Hides() }

// hidden returns what a policy, a limit or a failure of theirs says of the call, without
// the values of sensitive variables and of sensitive arguments of the call.
func (x *execution) hidden(text string) string {
	if text == "" {
		return ""
	}
	hide := x.catalog.Sensitive
	if x.entry != nil && len(x.entry.Sensitive) > 0 {
		hide = hide.And(x.sensitive())
	}
	return hide.Hide(text)
}

// sensitive hides the sensitive arguments, of which policies see what is filled in, and in
// the numbers of CEL.
func (x *execution) sensitive() redact.Text {
	hide := redact.NewText(x.req.Arguments, x.entry.Sensitive)
	if x.args == nil {
		return hide
	}
	return hide.And(redact.NewText(encode(x.args), x.entry.Sensitive))
}

// hiddenResult is [execution.hidden] for a policy that has seen the result, too. What a
// policy fails with holds no values.
func (x *execution) hiddenResult(text string, result call.Result) string {
	if len(x.entry.SensitiveOutput) > 0 && text != "" {
		text = redact.NewText(returned(result), x.entry.SensitiveOutput).Hide(text)
	}
	return x.hidden(text)
}
