package hclfile

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// maxCalls bounds the calls of a rate and of a burst.
const maxCalls = 1_000_000

// rateForms says how a rate is written.
const rateForms = `write calls and a time, such as "10/s", "60/m" or "1000/h"`

// limit decodes a limit block.
func (d *decoder) limit(b *hclsyntax.Block) Limit {
	at, nameAt := d.definition(b, "the limit")
	l := Limit{
		Name: b.Labels[0], Range: at, NameRange: nameAt,
		Targets: d.targets(b.Body, rules["limit"]), Key: d.cel(b.Body, "key"),
	}
	l.Calls, l.Per = d.rate(b.Body)
	l.Burst = l.Calls
	if burst, ok := d.whole(b.Body, "burst", 1, maxCalls); ok {
		l.Burst = burst
	}
	l.Concurrency, _ = d.whole(b.Body, "concurrency", 1, maxConcurrency)
	l.Reason = d.limitReason(b.Body)
	switch {
	case !d.meant(b.Body, rules["limit"], "rate", "concurrency"):
		d.fail("missing-argument", d.f.rng(b.DefRange()), "the limit limits nothing", "write rate = \"60/m\", concurrency = 4, or both")
	case b.Body.Attributes["burst"] != nil && !d.meant(b.Body, rules["limit"], "rate"):
		d.fail("missing-argument", d.f.rng(b.Body.Attributes["burst"].NameRange), "a burst is one of a rate, and there is none", "write a rate beside it, such as rate = \"60/m\", or remove it")
	}
	l.Hashes = d.hashes()
	return l
}

// limitReason decodes what a refused caller is told, "" when the limit does not say.
func (d *decoder) limitReason(body *hclsyntax.Body) string {
	text, ok := d.text(body, "reason")
	if ok && text == "" {
		d.fail("bad-value", d.f.rng(body.Attributes["reason"].Expr.Range()), "the reason is empty", "say why a call is refused, or remove it; the wait is told in any case")
	}
	return text
}

// rate decodes a rate, 0 when there is none or it was reported.
func (d *decoder) rate(body *hclsyntax.Body) (calls int, per time.Duration) {
	text, where, ok := d.word(body, "rate", "a string", func(cty.Value) string { return rateForms })
	if !ok {
		return 0, 0
	}
	count, unit, _ := strings.Cut(text, "/")
	per = map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour}[unit]
	calls, err := strconv.Atoi(count)
	switch {
	case per == 0 || err != nil || strings.Trim(count, "0123456789") != "":
		d.fail("bad-value", where, "this is not a rate", meantRate(text))
	case calls < 1 || calls > maxCalls:
		d.fail("bad-value", where, "\"rate\" is out of bounds", fmt.Sprintf("write 1 to %d calls", maxCalls))
	default:
		return calls, per
	}
	return 0, 0
}

// meantRate asks whether a rate was meant by what is none, such as "60 per minute".
func meantRate(written string) string {
	text := strings.NewReplacer(" ", "", "per", "/", "rps", "/s", "rpm", "/m", "rph", "/h").Replace(strings.ToLower(written))
	count, unit, _ := strings.Cut(text, "/")
	unit = strings.TrimPrefix(unit, "1")
	n, err := strconv.ParseUint(count, 10, 32)
	if err != nil || unit == "" {
		return rateForms
	}
	for _, word := range []string{"seconds", "minutes", "hours"} {
		if strings.HasPrefix(word, unit) || unit == "hr" && word == "hours" {
			return fmt.Sprintf("did you mean \"%d/%s\"?", n, word[:1])
		}
	}
	return rateForms
}
