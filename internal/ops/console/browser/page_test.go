package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// patience bounds each wait for a condition.
const patience = 20 * time.Second

// chromium returns the context of a browser that all journeys share.
var chromium = sync.OnceValues(func() (context.Context, error) {
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.Flag("force-prefers-reduced-motion", true))
	allocator, _ := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, _ := chromedp.NewContext(allocator)
	return ctx, chromedp.Do(ctx)
})

// TestMain closes the browser.
func TestMain(m *testing.M) {
	code := m.Run()
	if ctx, err := chromium(); err == nil {
		_ = chromedp.Cancel(ctx)
	}
	os.Exit(code)
}

// page is a tab with cookies of its own.
type page struct {
	t       *testing.T
	ctx     context.Context
	journey string
	base    string // the origin and the first part of the path

	mu       sync.Mutex
	problems []string // of the console of the browser, guarded by mu
	expected []string // parts of messages that are no problems, guarded by mu
}

// newPage opens a tab. When the test ends, it fails if the browser reported a problem: an
// exception, a request that failed, a violation of the content security policy.
func newPage(t *testing.T) *page {
	t.Helper()
	shared, err := chromium()
	if err != nil {
		t.Fatalf("start Chromium: %v", err)
	}
	ctx, cancel := chromedp.NewContext(shared, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	p := &page{t: t, ctx: ctx, journey: strings.TrimPrefix(t.Name(), "TestJourney_")}
	if err := chromedp.Listen(ctx, p.event); err != nil {
		t.Fatal(err)
	}
	p.do(chromedp.EmulateViewport(1280, 800))
	t.Cleanup(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, problem := range p.problems {
			t.Errorf("the browser reports: %s", problem)
		}
		if t.Failed() {
			p.shoot("failed")
		}
	})
	return p
}

// event collects problems. It runs on the goroutine that reads from the browser.
func (p *page) event(event any) {
	var problem string
	switch e := event.(type) {
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			problem = fmt.Sprintf("%s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL)
		}
	case *runtime.EventExceptionThrown:
		problem = "exception: " + e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			problem += " " + e.ExceptionDetails.Exception.Description
		}
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			problem = "console." + string(e.Type)
			for _, arg := range e.Args {
				problem += " " + string(arg.Value) + arg.Description
			}
		}
	}
	if problem == "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, text := range p.expected {
		if strings.Contains(problem, text) {
			return
		}
	}
	p.problems = append(p.problems, problem)
}

// expect declares parts of messages that are no problems.
func (p *page) expect(parts ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.expected = append(p.expected, parts...)
}

func (p *page) do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		p.t.Fatal(err)
	}
}

// open loads a page: a path of the console, or at first a whole URL.
func (p *page) open(path string) {
	p.t.Helper()
	p.do(chromedp.Navigate(p.base + path))
}

// evaluate decodes the value of a JavaScript expression, a promise too, into result.
func (p *page) evaluate(expression string, result any) {
	p.t.Helper()
	if err := p.tryEvaluate(expression, result); err != nil {
		p.t.Fatalf("evaluate %.80s: %v", expression, err)
	}
}

func (p *page) tryEvaluate(expression string, result any) error {
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](
		"(async () => JSON.stringify((await ("+expression+")) ?? null))()", chromedp.EvalAwaitPromise))
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(text), result)
}

// wait waits until a JavaScript expression is true. A navigation in between is no error.
func (p *page) wait(what, expression string) {
	p.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		var met bool
		err := p.tryEvaluate("Boolean("+expression+")", &met)
		if err == nil && met {
			return
		}
		if time.Now().After(deadline) {
			var text string
			_ = p.tryEvaluate("location.pathname + '\\n' + document.body.innerText.slice(0, 3000)", &text)
			p.t.Fatalf("waited %s for %s (%v); the page shows %s", patience, what, err, text)
		}
		<-time.After(20 * time.Millisecond)
	}
}

// see waits until the page shows a text, as a person reads it.
func (p *page) see(text string) {
	p.t.Helper()
	p.wait(fmt.Sprintf("the text %q", text), shows(text))
}

// unsee waits until the page does not show a text.
func (p *page) unsee(text string) {
	p.t.Helper()
	p.wait(fmt.Sprintf("the end of the text %q", text), "!"+shows(text))
}

func shows(text string) string {
	return "document.body.innerText.replace(/\\s+/g, ' ').includes(" + literal(text) + ")"
}

func literal(text string) string {
	encoded, _ := json.Marshal(text)
	return string(encoded)
}

// finder defines find(kind, name): the first visible control or field with this accessible name.
const finder = `
const clean = s => (s ?? '').replace(/\s+/g, ' ').trim();
const visible = e => e.checkVisibility({visibilityProperty: true}) && !e.closest('[inert], [aria-hidden=true]');
const named = {
  control: e => [e.getAttribute('aria-label'), e.textContent, e.value],
  row: e => [e.closest('tr').querySelector('th').textContent],
  field: e => [e.getAttribute('aria-label'), ...[...(e.labels ?? [])].map(l => l.textContent),
    ...(e.getAttribute('aria-labelledby') ?? '').split(' ').map(id => document.getElementById(id)?.textContent)],
};
const selectors = {
  control: 'a[href], button, label, summary, [role=tab], [role=button], input[type=submit]',
  row: 'tr a[href]',
  field: 'input, select, textarea',
};
const find = (kind, name) => {
  const all = [...document.querySelectorAll(selectors[kind])].filter(visible);
  const names = e => named[kind](e).map(clean);
  return all.find(e => names(e).includes(name)) ?? all.find(e => names(e).some(n => n.startsWith(name)));
};
`

func find(kind, name, then string) string {
	return "(() => {" + finder + "const e = find(" + literal(kind) + ", " + literal(name) + "); return " + then + ";})()"
}

// click clicks the control with this name where a person would, once nothing covers it.
func (p *page) click(name string) {
	p.t.Helper()
	p.clickOn("control", name)
}

func (p *page) clickOn(kind, name string) {
	p.t.Helper()
	p.wait(fmt.Sprintf("the %s %q", kind, name), find(kind, name, `e && !e.disabled && (e.scrollIntoView({block: 'center'}),
		(r => e.contains(document.elementFromPoint(r.x + r.width / 2, r.y + r.height / 2)))(e.getClientRects()[0]))`))
	var at struct{ X, Y float64 }
	p.evaluate(find(kind, name, "(r => ({X: r.x + r.width / 2, Y: r.y + r.height / 2}))(e.getClientRects()[0])"), &at)
	var leaves bool // the page, for that of a link
	p.evaluate(find(kind, name, "(e => window.left = e !== null && !e.download && e.href.split('#')[0] !== location.href.split('#')[0])(e.closest('a[href]:not([hx-get])'))"), &leaves)
	p.do(chromedp.MouseClickXY(at.X, at.Y))
	if leaves {
		p.wait("the page of "+name, "!window.left && document.readyState === 'complete'")
	}
}

// fill types a text into the field with this label.
func (p *page) fill(label, text string) {
	p.t.Helper()
	p.clickOn("field", label)
	p.wait("the focus of "+label, find("field", label, "e === document.activeElement"))
	p.evaluate(find("field", label, "e.select?.()"), new(any))
	p.do(chromedp.KeyEvent(text))
}

// append types a text at the end of the field with this label.
func (p *page) append(label, text string) {
	p.t.Helper()
	p.clickOn("field", label)
	p.wait("the focus of "+label, find("field", label, "e === document.activeElement"))
	p.evaluate(find("field", label, "e.setSelectionRange(e.value.length, e.value.length)"), new(any))
	p.do(chromedp.KeyEvent(text))
}

// choose selects an option of the field with this label.
func (p *page) choose(label, option string) {
	p.t.Helper()
	p.wait("the option "+option, find("field", label, `e && [...e.options].some(o => clean(o.textContent) === `+literal(option)+`)`))
	p.evaluate(find("field", label, `(e.value = [...e.options].find(o => clean(o.textContent) === `+literal(option)+`).value,
		e.dispatchEvent(new Event('input', {bubbles: true})), e.dispatchEvent(new Event('change', {bubbles: true})))`), new(any))
}

// downloadsTo keeps downloads in a folder.
func (p *page) downloadsTo(folder string) {
	p.t.Helper()
	_, err := chromedp.CallBrowser(p.ctx, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{
		Behavior: browser.SetDownloadBehaviorBehaviorAllow, BrowserContextID: chromedp.FromContext(p.ctx).BrowserContextID, DownloadPath: folder,
	})
	if err != nil {
		p.t.Fatal(err)
	}
}

// prefers emulates a preference of the user, such as prefers-color-scheme.
func (p *page) prefers(feature, value string) {
	p.t.Helper()
	_, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: feature, Value: value}},
	})
	if err != nil {
		p.t.Fatal(err)
	}
}

// check fails if the page has a serious or critical finding of axe-core, or is wider than the
// window. It keeps a screenshot.
func (p *page) check(name string) {
	p.t.Helper()
	p.shoot(name)
	var loaded bool
	p.evaluate("typeof axe === 'object'", &loaded)
	if !loaded {
		if err := chromedp.Do(p.ctx, chromedp.Evaluate[chromedp.Void](axe(p.t))); err != nil {
			p.t.Fatal(err)
		}
	}
	var findings []struct {
		ID, Impact, Help string
		Nodes            []string
	}
	p.evaluate(`axe.run(document, {resultTypes: ['violations']}).then(r => r.violations
		.filter(v => v.impact === 'serious' || v.impact === 'critical')
		.map(v => ({ID: v.id, Impact: v.impact, Help: v.help, Nodes: v.nodes.slice(0, 5).map(n => n.html.slice(0, 200) + ' ' + n.failureSummary)})))`, &findings)
	for _, f := range findings {
		p.t.Errorf("%s: %s finding %s: %s\n\t%s", name, f.Impact, f.ID, f.Help, strings.Join(f.Nodes, "\n\t"))
	}
	var width [2]int
	p.evaluate("[document.scrollingElement.scrollWidth, innerWidth]", &width)
	if width[0] > width[1] {
		p.t.Errorf("%s: the page is %d pixels wide in a window of %d", name, width[0], width[1])
	}
}

// shoot writes a screenshot of the whole page into the folder of MCPD_SCREENSHOTS, if set.
func (p *page) shoot(name string) {
	folder := os.Getenv("MCPD_SCREENSHOTS")
	if folder == "" {
		return
	}
	image, err := chromedp.Run(p.ctx, chromedp.FullScreenshot(100))
	if err == nil {
		err = os.MkdirAll(folder, 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, p.journey+"-"+name+".png"), image, 0o644)
	}
	if err != nil {
		p.t.Errorf("keep the screenshot %s: %v", name, err)
	}
}

// axe returns the source of axe-core.
func axe(t *testing.T) string {
	t.Helper()
	file := os.Getenv("MCPD_AXE")
	if file == "" {
		t.Fatal("MCPD_AXE must be the path of axe.min.js of the npm package axe-core")
	}
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(source) + "; undefined"
}
