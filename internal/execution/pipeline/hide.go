package pipeline

import (
	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/base/redact"
)

// hides reports whether there is anything to hide.
func (x *execution) hides() bool { return len(x.entry.Sensitive) > 0 || x.catalog.Sensitive.Hides() }

// secrets finds those that the server knows. What a caller has chosen is hidden together
// with them, and not before: it would cover a part of one, and the rest would be shown.
func (x *execution) secrets() redact.Net { return x.pipeline.options.Brokers.Secrets.Net() }

// hidden returns what a policy, a limit or a failure of theirs says of the call, without
// secrets, the values of sensitive variables and those of sensitive arguments of the call.
func (x *execution) hidden(text string) string { return x.hiddenWith(redact.Text{}, text) }

func (x *execution) hiddenWith(hide redact.Text, text string) string {
	if text == "" {
		return ""
	}
	hide = hide.And(x.catalog.Sensitive)
	if x.entry != nil && len(x.entry.Sensitive) > 0 {
		hide = hide.And(x.sensitive())
	}
	return hide.Hide(text, x.secrets())
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
	var hide redact.Text
	if len(x.entry.SensitiveOutput) > 0 && text != "" {
		hide = redact.NewText(returned(result), x.entry.SensitiveOutput)
	}
	return x.hiddenWith(hide, text)
}
