package console

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/mcpd/mcpd/internal/base/safetext"
	"github.com/mcpd/mcpd/internal/ops/control"
)

//go:embed templates/*.html
var templateFiles embed.FS

// pageNames are the templates of pages. Each fills in layout.html and may use parts.html.
var pageNames = []string{"overview", "items", "item", "calls", "call", "policies", "upstreams", "access", "confirm", "problem", "signin"}

// parsedPages returns the templates of all pages, by name. All consoles of a process share them.
var parsedPages = sync.OnceValues(parsePages)

func parsePages() (map[string]*template.Template, error) {
	pages := map[string]*template.Template{}
	for _, name := range pageNames {
		t, err := template.New("layout.html").Funcs(functions).ParseFS(templateFiles, "templates/layout.html", "templates/parts.html", "templates/"+name+".html")
		if err != nil {
			return nil, fmt.Errorf("parse the pages of the console: %w", err)
		}
		pages[name] = t
	}
	return pages, nil
}

// Bounds of text in a page, in bytes.
const (
	maxName = 300
	maxText = 4 << 10
	maxLong = 128 << 10
	maxLink = 4 << 10
)

// functions are the functions of templates. A template passes text of the server through name, text
// or long, which cut it, and values of fields through line or area, which do not.
var functions = template.FuncMap{
	"name":        func(s string) string { return cut(s, maxName) },
	"text":        func(s string) string { return cut(s, maxText) },
	"long":        func(s string) string { return cut(s, maxLong) },
	"line":        func(value string) string { return fieldText(value, oneLine) },
	"area":        func(value string) string { return fieldText(value, anyLines) },
	"escapedline": func(name, value string) string { return ifHides(name, value, oneLine) },
	"escapedarea": func(name, value string) string { return ifHides(name, value, anyLines) },
	"diff":        func(s string) []diffLine { return diffLines(cut(s, maxLong)) },
	"json":        func(j json.RawMessage) string { return cut(prettyJSON(j), maxLong) },
	"link":        link,
	"join":        strings.Join,
	"when":        func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") },
	"iso":         func(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) },
	"ms":          milliseconds,
	"percent":     percent,
	"key":         keyText,
	"one": func(n int, noun string) string {
		if n == 1 {
			return "1 " + noun
		}
		return fmt.Sprintf("%d %ss", n, noun)
	},
	"place": func(p *control.Place) string {
		if p == nil {
			return ""
		}
		return fmt.Sprintf("%s:%d", cut(p.File, maxName), p.Line)
	},
	"dict": func(pairs ...any) map[string]any {
		m := map[string]any{}
		for i := 0; i+1 < len(pairs); i += 2 {
			m[pairs[i].(string)] = pairs[i+1]
		}
		return m
	},
}

// ifHides returns the name of a field if its value needs escapes.
func ifHides(name, value string, lines fieldLines) string {
	if hides(value, lines) {
		return name
	}
	return ""
}

// diffLine is a line of a unified diff, with its end. Sign is + or - for a line that changed.
type diffLine struct{ Sign, Text string }

// maxDiffLines bounds the lines of a diff that have colors. No diff of the server has more.
const maxDiffLines = 2100

// diffLines splits a diff into lines. What follows the first lines is one text. The first two lines
// name what is compared. A later line is one of the definitions, even if it looks like such a name.
func diffLines(rest string) (lines []diffLine) {
	for len(lines) < maxDiffLines && rest != "" {
		line, after, ended := strings.Cut(rest, "\n")
		if ended {
			line += "\n"
		}
		sign := ""
		heading := len(lines) == 0 && strings.HasPrefix(line, "--- ") || len(lines) == 1 && strings.HasPrefix(line, "+++ ")
		if c := line[0]; (c == '+' || c == '-') && !heading {
			sign = string(c)
		}
		lines, rest = append(lines, diffLine{sign, line}), after
	}
	if rest != "" {
		lines = append(lines, diffLine{"", rest})
	}
	return lines
}

// link returns a path with query parameters, given as names and values. It is empty if it is too
// long for a link.
func link(path string, pairs ...string) string {
	query, size := url.Values{}, 0
	for i := 0; i+1 < len(pairs); i += 2 {
		if size += len(pairs[i+1]); pairs[i+1] != "" {
			query.Set(pairs[i], pairs[i+1])
		}
	}
	switch {
	case size > maxLink:
		return ""
	case len(query) > 0:
		return path + "?" + query.Encode()
	}
	return path
}

// cut shortens text to about n bytes, with a note.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	end := n
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return fmt.Sprintf("%s… (%d more bytes)", s[:end], len(s)-end)
}

// milliseconds formats a duration for people.
func milliseconds(ms float64) string {
	switch {
	case ms < 10:
		return fmt.Sprintf("%.1f ms", ms)
	case ms < 10_000:
		return fmt.Sprintf("%.0f ms", ms)
	}
	return fmt.Sprintf("%.1f s", ms/1000)
}

// prettyJSON indents JSON, and writes characters that cannot be seen as escapes. JSON that is too
// deep or too long to read stays as it is, and so does other text.
func prettyJSON(j json.RawMessage) string {
	out := string(j)
	var indented bytes.Buffer
	if len(j) <= maxLong && depthOf(j) <= 64 && json.Indent(&indented, j, "", "  ") == nil {
		out = indented.String()
	}
	if strings.IndexFunc(out, unseen) < 0 {
		return out
	}
	var b strings.Builder
	for _, r := range out {
		switch {
		case !unseen(r):
			b.WriteRune(r)
		case r > 0xffff:
			b.WriteString(fmt.Sprintf(`\u%04x\u%04x`, 0xd800+(r-0x10000)>>10, 0xdc00+(r-0x10000)&0x3ff))
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// depthOf returns the nesting of JSON, as far as brackets outside of strings tell.
func depthOf(j []byte) int {
	depth, deepest, quoted := 0, 0, false
	for i := 0; i < len(j); i++ {
		switch c := j[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && (c == '{' || c == '['):
			depth++
			deepest = max(deepest, depth)
		case !quoted && (c == '}' || c == ']'):
			depth--
		}
	}
	return deepest
}

// unseen reports whether a character is invisible, or changes the order of others. The line end, the
// tab, and the joiners of emoji and scripts are shown as they are.
func unseen(r rune) bool {
	switch r {
	case '\n', '\t', '\u200c', '\u200d':
		return false
	}
	return safetext.Invisible(r)
}

// visible replaces characters that cannot be seen by their numbers, such as \u{1B}. It is applied
// to each page as a whole, so that no text of a server escapes it. Markup has no such characters.
func visible(page []byte) []byte {
	if bytes.IndexFunc(page, unseen) < 0 && utf8.Valid(page) {
		return page
	}
	page = bytes.ReplaceAll(page, []byte("\r\n"), []byte("\n"))
	out := make([]byte, 0, len(page)+len(page)/8)
	for _, r := range string(page) { // an invalid byte is U+FFFD
		if unseen(r) {
			out = fmt.Appendf(out, `\u{%X}`, r)
		} else {
			out = utf8.AppendRune(out, r)
		}
	}
	return out
}

// view is the data of a page.
type view struct {
	Title   string
	Section string // the entry of the navigation
	CSRF    string
	Notice  string
	Body    any
	// SignedIn and SignedOut are for pages of a listener.
	SignedIn, SignedOut bool
	assets              map[string]*asset
}

// Asset returns the path of an asset.
func (v view) Asset(name string) (string, error) {
	a := v.assets[name]
	if a == nil {
		return "", fmt.Errorf("no asset %q", name)
	}
	return a.path, nil
}

// Nav lists the pages of the navigation.
func (v view) Nav() [][2]string {
	return [][2]string{{"/", "Overview"}, {"/items", "Items"}, {"/calls", "Calls"}, {"/policies", "Policies"}, {"/upstreams", "Upstreams"}, {"/access", "Access"}}
}

// notices are the messages after a redirect, by the value of the parameter done.
var notices = map[string]string{
	"accept":     "The tool is accepted. If the server does not reload by itself, reload it.",
	"revoke_key": "The key is revoked.",
	"drop_token": "The token is dropped.",
	"cancel":     "The task is cancelled.",
	"reload":     "The server has loaded all files.",
	"broken":     "The files had errors, so the server kept the revision before.",
}

// show writes a page with a status.
func (c *Console) show(w http.ResponseWriter, r *http.Request, status int, page, title, section string, body any) {
	v := view{Title: title, Section: section, Notice: notices[r.URL.Query().Get("done")], Body: body, assets: c.assets, SignedIn: c.options.SignOut != nil, SignedOut: page == "signin"}
	if s := c.sessionOf(r); s != nil {
		v.CSRF = s.csrf
	}
	content, err := c.render(page, "layout.html", v)
	if err != nil {
		http.Error(w, "The page cannot be shown: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(content) // a browser that is gone needs no page
}

// render executes a template of a page.
func (c *Console) render(page, name string, data any) ([]byte, error) {
	var b bytes.Buffer
	if err := c.pages[page].ExecuteTemplate(&b, name, data); err != nil {
		return nil, err
	}
	return rebase(visible(b.Bytes()), c.base), nil
}

// fail shows that the server did not do what a page asked for.
func (c *Console) fail(w http.ResponseWriter, r *http.Request, section string, err error) {
	if isForbidden(err) {
		c.problem(w, r, http.StatusForbidden, section, "You may not do this", err.Error())
		return
	}
	c.problem(w, r, http.StatusBadGateway, section, "The server did not answer as expected", err.Error())
}

// isForbidden reports whether the caller lacked a right.
func isForbidden(err error) bool {
	_, forbidden := errors.AsType[ForbiddenError](err)
	return forbidden
}

// problem shows a page with a message.
func (c *Console) problem(w http.ResponseWriter, r *http.Request, status int, section, title, message string) {
	c.show(w, r, status, "problem", title, section, message)
}
