package builtins

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/dop251/goja"

	"github.com/mcpd/mcpd/internal/js/jsvalue"
)

// parseCSV is csv.parse(text, { header, separator }).
func (r *Realm) parseCSV(c goja.FunctionCall) goja.Value {
	const what = "csv.parse"
	text := r.textArgument(what, c.Argument(0))
	options := r.options(what, c.Argument(1), "header", "separator")
	t := csvTable{r: r, reader: newCSVReader(text, r.separator(what, options))}
	if Option(options, "header").ToBoolean() && t.reader.more() {
		t.head()
	}
	var rows []any
	for t.reader.more() {
		rows = append(rows, t.row())
	}
	return r.Runtime.NewArray(rows...)
}

// separator returns the character between fields.
func (r *Realm) separator(what string, options goja.Value) string {
	v := Option(options, "separator")
	if goja.IsUndefined(v) {
		return ","
	}
	text := TextOf(v)
	switch _, size := utf8.DecodeRuneInString(text); {
	case size == 0 || size != len(text), text == `"`, text == "\n", text == "\r", text == ByteOrderMark:
		panic(r.TypeError(what + `: separator must be one character, and neither a quote nor the end of a line`))
	}
	return text
}

type csvTable struct {
	r      *Realm
	reader *csvReader
	// names are the names of the columns. order is the order in which their members are defined:
	// array indexes first, ascending, then the others in the order of the columns.
	names  []string
	order  []int
	fields int
}

func (t *csvTable) cells() []string {
	var cells []string
	for {
		t.r.Proceed()
		if t.fields++; t.fields > jsvalue.MaxDecodeValues {
			panic(t.r.RangeError("csv.parse: more than 1,000,000 fields"))
		}
		text, last, err := t.reader.field()
		if err != nil {
			panic(t.r.SyntaxError("csv.parse: " + err.Error()))
		}
		if cells = append(cells, text); last {
			return cells
		}
	}
}

func (t *csvTable) head() {
	line := t.reader.line
	t.names = t.cells()
	seen := map[string]bool{}
	for i, name := range t.names {
		if seen[name] {
			panic(t.r.SyntaxError(fmt.Sprintf("csv.parse: line %d has two columns of one name; parse it without header", line)))
		}
		seen[name] = true
		t.order = append(t.order, i)
	}
	slices.SortStableFunc(t.order, func(a, b int) int { return cmp.Compare(indexOrder(t.names[a]), indexOrder(t.names[b])) })
}

// indexOrder sorts array indexes in ascending order before all other names.
func indexOrder(name string) uint64 {
	if index, ok := jsvalue.ArrayIndex(name); ok {
		return uint64(index)
	}
	return 1 << 32
}

func (t *csvTable) row() goja.Value {
	line := t.reader.line
	cells := t.cells()
	if t.names == nil {
		items := make([]any, len(cells))
		for i, text := range cells {
			items[i] = t.r.Runtime.ToValue(text)
		}
		return t.r.Runtime.NewArray(items...)
	}
	if len(cells) != len(t.names) {
		panic(t.r.SyntaxError(fmt.Sprintf("csv.parse: line %d has %d fields, and the header %d", line, len(cells), len(t.names))))
	}
	o := t.r.Runtime.NewObject()
	for _, i := range t.order {
		_ = jsvalue.Define(o, t.names[i], t.r.Runtime.ToValue(cells[i]))
	}
	return o
}

// printCSV is csv.print(rows, { header, separator }).
func (r *Realm) printCSV(c goja.FunctionCall) goja.Value {
	const what = "csv.print"
	options := r.options(what, c.Argument(1), "header", "separator")
	p := csvPrinter{r: r, separator: r.separator(what, options)}
	rows := r.listOf(what+": rows", c.Argument(0))
	p.columns(Option(options, "header"), rows)
	for i := range jsvalue.LengthOf(rows) {
		r.Proceed()
		p.row(rows.Get(Index(i)))
	}
	return r.Runtime.ToValue(string(p.out))
}

func (r *Realm) listOf(what string, v goja.Value) *goja.Object {
	o, ok := v.(*goja.Object)
	if !ok || jsvalue.KindOf(o) != jsvalue.Array {
		panic(r.TypeError(what + " must be an array"))
	}
	return o
}

type csvPrinter struct {
	r         *Realm
	separator string
	names     []string // nil if rows are arrays
	out       []byte
	rows      int
}

// columns determines the columns of rows that are objects: those that header lists, or the members
// of the first row. It writes them unless header is false.
func (p *csvPrinter) columns(header goja.Value, rows *goja.Object) {
	_, listed := header.(*goja.Object)
	first, _ := rows.Get("0").(*goja.Object)
	switch {
	case listed:
		list := p.r.listOf("csv.print: header", header)
		p.names = []string{}
		for i := range jsvalue.LengthOf(list) {
			p.r.Proceed()
			p.names = append(p.names, p.cell(list.Get(Index(i))))
		}
	case first != nil && jsvalue.KindOf(first) == jsvalue.Plain:
		p.names = first.Keys()
	default:
		return
	}
	if listed || goja.IsUndefined(header) || header.ToBoolean() {
		p.line(len(p.names), func(i int) string { return p.names[i] })
	}
}

func (p *csvPrinter) row(v goja.Value) {
	p.rows++
	o, ok := v.(*goja.Object)
	switch {
	case ok && jsvalue.KindOf(o) == jsvalue.Array:
		p.line(int(jsvalue.LengthOf(o)), func(i int) string { return p.cell(o.Get(Index(int64(i)))) })
	case ok && jsvalue.KindOf(o) == jsvalue.Plain && p.names != nil:
		p.line(len(p.names), func(i int) string { return p.cell(o.Get(p.names[i])) })
	default:
		panic(p.r.TypeError(fmt.Sprintf("csv.print: row %d must be an array, or an object like the first", p.rows)))
	}
}

func (p *csvPrinter) line(n int, cell func(int) string) {
	if n == 0 {
		panic(p.r.TypeError(fmt.Sprintf("csv.print: row %d has no fields, which CSV cannot represent", p.rows)))
	}
	for i := range n {
		p.r.Proceed()
		if i > 0 {
			p.out = append(p.out, p.separator...)
		}
		p.out = appendCSV(p.out, cell(i), p.separator, n == 1)
		if len(p.out) > maxText {
			panic(p.r.tooLong())
		}
	}
	p.out = append(p.out, "\r\n"...)
}

func (p *csvPrinter) cell(v goja.Value) string {
	if IsNothing(v) {
		return ""
	}
	if _, object := v.(*goja.Object); object {
		panic(p.r.TypeError(fmt.Sprintf("csv.print: row %d holds an object; write JSON.stringify(x), or String(x)", p.rows)))
	}
	return p.r.bounded(v).String()
}

// csvReader splits CSV into fields according to RFC 4180: a field may be quoted, with two quotes
// for one. Lines end with \r\n, \n or \r; empty lines are ignored. It reads each byte once.
//
// encoding/csv is not used because it changes \r\n to \n in a quoted field, refuses a quote in an
// unquoted field, and does not end a line at a lone \r.
type csvReader struct {
	src       string
	separator string
	at, line  int
}

// csvError has the position of a syntax error. It repeats none of the text.
type csvError struct {
	line    int
	message string
}

func (e *csvError) Error() string { return fmt.Sprintf("line %d %s", e.line, e.message) }

func newCSVReader(text, separator string) *csvReader {
	return &csvReader{src: strings.TrimPrefix(text, ByteOrderMark), separator: separator, line: 1}
}

// more skips empty lines, and reports whether there is another line.
func (c *csvReader) more() bool {
	for c.at < len(c.src) && c.ended() {
		c.end()
	}
	return c.at < len(c.src)
}

func (c *csvReader) ended() bool {
	return c.at >= len(c.src) || c.src[c.at] == '\n' || c.src[c.at] == '\r'
}

func (c *csvReader) end() {
	if c.at < len(c.src) {
		c.at += lineEndLength(c.src[c.at:])
		c.line++
	}
}

func lineEndLength(s string) int {
	if strings.HasPrefix(s, "\r\n") {
		return 2
	}
	return 1
}

// field returns the next field, and whether it was the last one of its line.
func (c *csvReader) field() (text string, last bool, err error) {
	if strings.HasPrefix(c.src[c.at:], `"`) {
		text, err = c.quoted()
	} else {
		text = c.plain()
	}
	switch {
	case err != nil:
		return "", false, err
	case c.ended():
		c.end()
		return text, true, nil
	case strings.HasPrefix(c.src[c.at:], c.separator):
		c.at += len(c.separator)
		return text, false, nil
	}
	return "", false, &csvError{c.line, "has text after a quoted field; double a quote inside of a field"}
}

func (c *csvReader) plain() string {
	start := c.at
	for !c.ended() && !strings.HasPrefix(c.src[c.at:], c.separator) {
		c.at++
	}
	return c.src[start:c.at]
}

func (c *csvReader) quoted() (string, error) {
	opened := c.line
	var b strings.Builder
	for c.at++; ; c.at += 2 {
		n := strings.IndexByte(c.src[c.at:], '"')
		if n < 0 {
			return "", &csvError{opened, "opens a quote that nothing closes"}
		}
		piece := c.src[c.at : c.at+n]
		c.line += strings.Count(piece, "\n")
		c.at += n
		if !strings.HasPrefix(c.src[c.at:], `""`) {
			c.at++
			if b.Len() == 0 {
				return piece, nil
			}
			b.WriteString(piece)
			return b.String(), nil
		}
		b.WriteString(piece)
		b.WriteByte('"')
	}
}

// appendCSV appends a field, quoted if necessary.
func appendCSV(out []byte, text, separator string, alone bool) []byte {
	switch {
	case alone && text == "", strings.ContainsAny(text, "\"\r\n"), strings.Contains(text, separator), strings.HasPrefix(text, ByteOrderMark):
		out = append(out, '"')
		out = append(out, strings.ReplaceAll(text, `"`, `""`)...)
		return append(out, '"')
	}
	return append(out, text...)
}
