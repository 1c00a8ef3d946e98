package hclfile

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/big"
	"mime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/mcpd/mcpd/diag"
)

// The functions here decode one argument of a block. They return false if the argument is
// missing or was reported.

func (d *decoder) attrValue(body *hclsyntax.Body, name string, k kind) (cty.Value, bool) {
	attr := body.Attributes[name]
	if attr == nil {
		return cty.NilVal, false
	}
	v, ok := d.eval.value(attr.Expr)
	if !ok {
		return v, false
	}
	t := valueType{kind: k}
	if !hasKind(v, k) {
		d.fail("wrong-type", d.f.rng(attr.Expr.Range()), fmt.Sprintf("%q must be %s, not %s", name, t.describe(), describeValue(v, k)), asKind(v, k))
		return v, false
	}
	return v, true
}

// rejectAttr reports an argument that contradicts the rest of the block. It returns false if
// the argument is missing.
func (d *decoder) rejectAttr(body *hclsyntax.Body, name, summary, detail string) bool {
	attr := body.Attributes[name]
	if attr != nil {
		d.fail("contradiction", d.f.rng(attr.NameRange), summary, detail)
	}
	return attr != nil
}

// maxText bounds the text of an argument, in bytes.
const maxText = 64 << 10

func (d *decoder) text(body *hclsyntax.Body, name string) (string, bool) {
	v, ok := d.attrValue(body, name, stringKind)
	if !ok {
		return "", false
	}
	s := v.AsString()
	if len(s) > maxText {
		d.fail("too-large", d.f.rng(body.Attributes[name].Expr.Range()), fmt.Sprintf("%q is longer than %d KiB", name, maxText>>10), "make it shorter")
		return "", false
	}
	return s, true
}

// boolean returns fallback if the argument is missing or was reported.
func (d *decoder) boolean(body *hclsyntax.Body, name string, fallback bool) (value, ok bool) {
	v, ok := d.attrValue(body, name, boolKind)
	if !ok {
		return fallback, false
	}
	return v.True(), true
}

// flag returns nil if the argument is missing.
func (d *decoder) flag(body *hclsyntax.Body, name string) *bool {
	if v, ok := d.boolean(body, name, false); ok {
		return &v
	}
	return nil
}

// intAttr decodes an integer from low to high. It returns 0 if the argument is missing or was
// reported.
func (d *decoder) intAttr(body *hclsyntax.Body, name string, low, high int) int {
	n, _ := d.optionalInt(body, name, low, high)
	return n
}

// optionalInt is intAttr where 0 is a valid value.
func (d *decoder) optionalInt(body *hclsyntax.Body, name string, low, high int) (int, bool) {
	v, ok := d.attrValue(body, name, integerKind)
	if !ok {
		return 0, false
	}
	n, accuracy := v.AsBigFloat().Int64()
	if accuracy != big.Exact || n < int64(low) || n > int64(high) {
		d.fail("bad-value", d.f.rng(body.Attributes[name].Expr.Range()), fmt.Sprintf("%q is out of range", name), fmt.Sprintf("write a whole number from %d to %d", low, high))
		return 0, false
	}
	return int(n), true
}

// word decodes a string with a certain meaning, such as "a duration". write returns how to
// write another value as such a string.
func (d *decoder) word(body *hclsyntax.Body, name, what string, write func(v cty.Value) string) (word string, where diag.Range, ok bool) {
	attr := body.Attributes[name]
	if attr == nil {
		return "", where, false
	}
	v, ok := d.eval.value(attr.Expr)
	if !ok {
		return "", where, false
	}
	if where = d.f.rng(attr.Expr.Range()); !hasKind(v, stringKind) {
		d.fail("wrong-type", where, fmt.Sprintf("%q must be %s, not %s", name, what, typeOf(v)), write(v))
		return "", where, false
	}
	return v.AsString(), where, true
}

// enumAttr decodes a string that must be one of words. It returns "" if the argument is missing
// or was reported.
func (d *decoder) enumAttr(body *hclsyntax.Body, name string, words ...string) string {
	s, where, ok := d.word(body, name, "a string", func(cty.Value) string { return "write " + quoted(words) })
	if !ok || slices.Contains(words, s) {
		return s
	}
	d.fail("bad-value", where, fmt.Sprintf("%q cannot be %s", name, d.eval.show(s)), cmp.Or(diag.DidYouMean(s, words), "write "+quoted(words)))
	return ""
}

// quoted returns `"a", "b" or "c"`.
func quoted(words []string) string {
	q := make([]string, len(words))
	for i, w := range words {
		q[i] = strconv.Quote(w)
	}
	return orOf(q)
}

// orOf returns `a, b or c`.
func orOf(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// maxDuration bounds every duration in a file.
const maxDuration = 24 * time.Hour

// duration decodes a duration such as "1s", at most maxDuration. It returns fallback if the
// argument is missing or was reported.
func (d *decoder) duration(body *hclsyntax.Body, name string, fallback time.Duration) time.Duration {
	return d.durationWithin(body, name, fallback, maxDuration)
}

// durationWithin is duration with another maximum.
func (d *decoder) durationWithin(body *hclsyntax.Body, name string, fallback, limit time.Duration) time.Duration {
	text, where, ok := d.word(body, name, "a duration", func(cty.Value) string { return "write a string with a unit, such as \"5s\", \"500ms\" or \"2m\"" })
	if !ok {
		return fallback
	}
	t, err := parseDuration(text)
	if err != nil {
		d.fail("bad-value", where, fmt.Sprintf("%q is not a duration", name), "write a number with a unit, such as \"5s\", \"500ms\" or \"2m\"")
		return fallback
	}
	if t <= 0 || t > limit {
		d.fail("bad-value", where, fmt.Sprintf("%q is out of range", name), fmt.Sprintf("write a duration above 0s and at most %s", formatDuration(limit)))
		return fallback
	}
	return t
}

// parseDuration is time.ParseDuration with days.
func parseDuration(text string) (time.Duration, error) {
	days, inDays := strings.CutSuffix(text, "d")
	if n, err := strconv.ParseUint(days, 10, 16); inDays && err == nil {
		return time.Duration(n) * day, nil
	}
	return time.ParseDuration(text)
}

const day = 24 * time.Hour

// formatDuration formats a duration without zero units.
func formatDuration(t time.Duration) string {
	if t > day && t%day == 0 {
		return strconv.FormatInt(int64(t/day), 10) + "d"
	}
	return strings.Replace(strings.Replace(t.String(), "m0s", "m", 1), "h0m", "h", 1)
}

// units of sizes, in bytes.
var units = map[string]int64{
	"": 1, "b": 1, "kb": 1e3, "mb": 1e6, "gb": 1e9, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30,
}

// size decodes a number of bytes such as "1MiB", at most limit.
func (d *decoder) size(body *hclsyntax.Body, name string, limit int64) int64 {
	s, where, ok := d.word(body, name, "a size", func(v cty.Value) string { return "write a string with a unit, such as " + sizeLike(v, limit) })
	if !ok {
		return 0
	}
	digits := strings.TrimRight(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ ")
	unit, known := units[strings.ToLower(strings.TrimSpace(s[len(digits):]))]
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || !known || n <= 0 {
		d.fail("bad-value", where, fmt.Sprintf("%q is not a size", name), "write a whole number with a unit, such as \"256KiB\" or \"1MiB\"")
		return 0
	}
	if n > limit/unit {
		d.fail("bad-value", where, fmt.Sprintf("%q is out of range", name), fmt.Sprintf("write at most %dMiB", limit>>20))
		return 0
	}
	return n * unit
}

// sizeLike guesses the size for a number without a unit, or returns examples.
func sizeLike(v cty.Value, limit int64) string {
	if hasKind(v, integerKind) {
		if n, _ := v.AsBigFloat().Int64(); n > 0 && n <= limit>>20 {
			return fmt.Sprintf("\"%dMiB\"", n)
		}
	}
	return `"256KiB" or "1MiB"`
}

// stringItem is a string in a list, with its range.
type stringItem struct {
	text  string
	where hcl.Range
}

// stringList decodes a list of strings. If some items are invalid, it returns the valid ones
// and false.
func (d *decoder) stringList(body *hclsyntax.Body, name string) ([]stringItem, bool) {
	v, ok := d.attrValue(body, name, listKind)
	if !ok {
		return nil, false
	}
	x := body.Attributes[name].Expr
	if !d.checkSize(x, v) {
		return nil, false
	}
	list := make([]stringItem, 0, v.LengthInt())
	i := 0
	for it := v.ElementIterator(); it.Next(); i++ {
		_, item := it.Element()
		where := itemExpr(x, i).Range()
		if !hasKind(item, stringKind) {
			d.fail("wrong-type", d.f.rng(where), fmt.Sprintf("an item of %q must be a string, not %s", name, typeOf(item)), asKind(item, stringKind))
			ok = false
			continue
		}
		list = append(list, stringItem{item.AsString(), where})
	}
	return list, ok
}

// listOf decodes a list of strings and checks each. An invalid item is reported and stays in
// the list.
func (d *decoder) listOf(body *hclsyntax.Body, name string, fits func(string) bool, problem, detail string) []string {
	list, _ := d.stringList(body, name)
	for _, e := range list {
		if !fits(e.text) {
			d.fail("bad-value", d.f.rng(e.where), problem, detail)
		}
	}
	return textsOf(list)
}

// wrongWord describes an invalid word in a list: summary with %s for the word, and the lead of
// the valid words.
type wrongWord struct{ code, summary, lead string }

// choices decodes a list of distinct items from words.
func (d *decoder) choices(body *hclsyntax.Body, argument string, words []string, wrong wrongWord) (found []stringItem) {
	list, _ := d.stringList(body, argument)
	taken := declaredNames{}
	for _, e := range list {
		if !slices.Contains(words, e.text) {
			d.fail(wrong.code, d.f.rng(e.where), fmt.Sprintf(wrong.summary, d.eval.show(e.text)), orList(diag.DidYouMean(e.text, words), wrong.lead, words))
		} else if d.declareName(taken, e.text, e.where, "%q occurs twice in \""+argument+"\"", e.text) {
			found = append(found, e)
		}
	}
	return found
}

func textsOf(list []stringItem) []string {
	if list == nil {
		return nil
	}
	texts := make([]string, len(list))
	for i, e := range list {
		texts[i] = e.text
	}
	return texts
}

// members decodes an object with values of one type.
func (d *decoder) members(body *hclsyntax.Body, name string, elem *valueType) (cty.Value, bool) {
	v, ok := d.attrValue(body, name, objectKind)
	if !ok {
		return v, false
	}
	x := body.Attributes[name].Expr
	return v, d.checkSize(x, v) && d.checkType(x, v, &valueType{kind: mapKind, elem: elem}, strconv.Quote(name))
}

// stringMap decodes an object with string values.
func (d *decoder) stringMap(body *hclsyntax.Body, name string) map[string]string {
	v, ok := d.members(body, name, &valueType{kind: stringKind})
	if !ok {
		return nil
	}
	m := make(map[string]string, v.LengthInt())
	for it := v.ElementIterator(); it.Next(); {
		key, value := it.Element()
		m[key.AsString()] = value.AsString()
	}
	return m
}

// matchingText decodes a text that must satisfy fits. It returns "" if the argument is missing
// or was reported.
func (d *decoder) matchingText(body *hclsyntax.Body, name string, fits func(string) bool, problem, detail string) string {
	text, ok := d.text(body, name)
	if ok && !fits(text) {
		d.fail("bad-value", d.f.rng(body.Attributes[name].Expr.Range()), problem, detail)
		return ""
	}
	return text
}

func isFilled(s string) bool { return s != "" }

// nonEmptyText decodes a non-empty text. It returns "" if the argument is missing or was
// reported.
func (d *decoder) nonEmptyText(body *hclsyntax.Body, name, detail string) string {
	return d.matchingText(body, name, func(s string) bool { return strings.TrimSpace(s) != "" }, fmt.Sprintf("%q is empty", name), detail)
}

// objectArg decodes an argument that is an object of a known type.
func (d *decoder) objectArg(body *hclsyntax.Body, name string, t *valueType) (cty.Value, bool) {
	attr := body.Attributes[name]
	if attr == nil {
		return cty.NilVal, false
	}
	v, ok := d.eval.value(attr.Expr)
	if !ok || !d.checkSize(attr.Expr, v) || !d.checkType(attr.Expr, v, t, fmt.Sprintf("%q", name)) {
		return cty.NilVal, false
	}
	return v, true
}

// jsonObject decodes an object argument as JSON.
func (d *decoder) jsonObject(body *hclsyntax.Body, name string) json.RawMessage {
	raw := d.json(body, name)
	if raw == nil {
		return nil
	}
	if raw[0] != '{' {
		d.fail("wrong-type", d.f.rng(body.Attributes[name].Expr.Range()), fmt.Sprintf("%q must be an object", name), "write it in braces: { key = value }")
		return nil
	}
	return raw
}

// json decodes an argument of any type as JSON, or returns nil.
func (d *decoder) json(body *hclsyntax.Body, name string) json.RawMessage {
	attr := body.Attributes[name]
	if attr == nil {
		return nil
	}
	raw, ok := d.eval.jsonOf(attr.Expr, nil)
	if !ok {
		return nil
	}
	return raw
}

// optional returns an object type with only optional attributes.
func optional(attrs map[string]*valueType, order ...string) *valueType {
	t := &valueType{kind: objectKind}
	for _, name := range order {
		t.attrs = append(t.attrs, attrType{name: name, typ: attrs[name], optional: true})
	}
	return t
}

// mimeType decodes "mime_type". It returns "" if the argument is missing or was reported.
func (d *decoder) mimeType(body *hclsyntax.Body) string {
	return d.matchingText(body, "mime_type", isMIMEType, "this is not a MIME type", "write a type and a subtype, such as \"text/markdown\"")
}

// maxMIMEType bounds a media type, in bytes.
const maxMIMEType = 128

// isMIMEType reports whether s is a media type (RFC 9110 section 8.3.1).
func isMIMEType(s string) bool {
	base, _, err := mime.ParseMediaType(s)
	return err == nil && strings.Contains(base, "/") && len(s) <= maxMIMEType
}
