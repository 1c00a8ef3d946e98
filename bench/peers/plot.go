package main

import (
	"bytes"
	"fmt"
	"math"
	"text/template"
)

// chart is a chart of horizontal bars: for each server one bar per series.
type chart struct {
	File, Title, Unit string
	Log               bool // logarithmic lengths
	Series            []string
	Groups            []group
}

// group holds the bars of a server. A NaN is no bar.
type group struct {
	Label  string
	Values []float64
}

// The size of the parts of a chart in pixels.
const (
	labelWidth = 210
	plotWidth  = 560
	valueWidth = 70
	barHeight  = 14
	groupGap   = 10
	headHeight = 58
)

var none = math.NaN()

// charts returns the charts of all scenarios that ran.
func (r *results) charts() []chart {
	all := []chart{
		r.callChart("calls.svg", "Processor time of add(a, b), 8 connections (stdio: 1 call)", "× bare handler",
			[]string{"add/http/8", "add/http-session/8", "add/stdio/1"}, []string{"HTTP 2026-07-28", "HTTP 2025-11-25, session", "stdio"}, false, func(o row) float64 { return o.Ratio }),
		r.callChart("latency.svg", "99th percentile of the latency of add(a, b), 64 connections", "ms",
			[]string{"add/http/64", "add/http-session/64"}, []string{"HTTP 2026-07-28", "HTTP 2025-11-25, session"}, false, func(o row) float64 { return o.P99 / 1000 }),
		r.callChart("list.svg", "Processor time of tools/list", "µs",
			[]string{"list/http/8/10", "list/http/8/100", "list/http/8/1000"}, []string{"10 tools", "100 tools", "1,000 tools"}, true, func(o row) float64 { return o.CPU }),
		r.callChart("blob.svg", "Processor time of a result of 100 KB", "× bare handler",
			[]string{"blob/http/8", "blob/stdio/1"}, []string{"HTTP 2026-07-28", "stdio"}, false, func(o row) float64 { return o.Ratio }),
		r.startupChart("memory.svg", "Memory of an idle server with 10 tools", "MiB", func(o startup) float64 { return float64(o.Idle) / (1 << 20) }),
		r.startupChart("start.svg", "From the start of a server to its first tools/list on stdio", "ms", func(o startup) float64 { return o.Cold }),
	}
	var drawn []chart
	for _, c := range all {
		if len(c.Groups) > 0 {
			drawn = append(drawn, c)
		}
	}
	return drawn
}

// callChart returns a chart of a figure in several scenarios.
func (r *results) callChart(file, title, unit string, scenarios, series []string, log bool, figure func(row) float64) chart {
	c := chart{File: file, Title: title, Unit: unit, Log: log}
	var ran []string
	for i, name := range scenarios {
		if r.scenario(name) != nil {
			ran, c.Series = append(ran, name), append(c.Series, series[i])
		}
	}
	for _, v := range servers {
		g, any := group{Label: v.title}, false
		for _, name := range ran {
			value := none
			if one := r.scenario(name).row(v.name); one != nil {
				value, any = figure(*one), true
			}
			g.Values = append(g.Values, value)
		}
		if any {
			c.Groups = append(c.Groups, g)
		}
	}
	return c
}

func (r *results) startupChart(file, title, unit string, figure func(startup) float64) chart {
	c := chart{File: file, Title: title, Unit: unit, Series: []string{""}}
	for _, one := range r.Startups {
		c.Groups = append(c.Groups, group{one.Title, []float64{figure(one)}})
	}
	return c
}

// bar is a rectangle with its value.
type bar struct {
	Series            int
	X, Y              float64
	Width, TextX      float64
	TextY             float64
	Text, Description string
}

// drawing is the content of the template.
type drawing struct {
	chart
	Width, Height float64
	Labels        []bar
	Bars          []bar
	Legend        []bar
	Axis          float64
}

// svg draws a chart.
func (c chart) svg() ([]byte, error) {
	d := drawing{chart: c, Width: labelWidth + plotWidth + valueWidth, Axis: labelWidth}
	least, most := math.Inf(1), 0.0
	for _, g := range c.Groups {
		for _, v := range g.Values {
			if v > 0 {
				least, most = min(least, v), max(most, v)
			}
		}
	}
	least /= 2 // the shortest bar of a logarithmic chart
	y := float64(headHeight)
	if len(c.Series) < 2 {
		y -= 18 // no legend
	}
	for _, g := range c.Groups {
		top := y
		for i, v := range g.Values {
			if math.IsNaN(v) {
				continue
			}
			length := plotWidth * v / most
			if c.Log {
				length = plotWidth * math.Log(v/least) / math.Log(most/least)
			}
			length = max(1, length)
			d.Bars = append(d.Bars, bar{Series: i, X: labelWidth, Y: y, Width: length, TextX: labelWidth + length + 6, TextY: y + barHeight - 3, Text: number(v)})
			y += barHeight
		}
		d.Labels = append(d.Labels, bar{X: labelWidth - 10, Y: (top+y)/2 + 4, Text: g.Label})
		y += groupGap
	}
	d.Height = y
	for i, name := range c.Series {
		if len(c.Series) > 1 {
			d.Legend = append(d.Legend, bar{Series: i, X: float64(labelWidth + 190*i), Y: 34, TextX: float64(labelWidth + 190*i + 18), Text: name})
		}
	}
	var out bytes.Buffer
	if err := drawn.Execute(&out, d); err != nil {
		return nil, fmt.Errorf("draw %s: %w", c.File, err)
	}
	return out.Bytes(), nil
}

// drawn has the colors of the other pictures of the documentation, light and dark.
var drawn = template.Must(template.New("chart").Parse(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {{.Width}} {{.Height}}" width="{{.Width}}" height="{{.Height}}" role="img" aria-label="{{html .Title}}">
<style>
text{font:12px system-ui,-apple-system,"Segoe UI",Roboto,Helvetica,Arial,sans-serif;fill:#1f2328}
.t{font-size:14px;font-weight:600}.l{text-anchor:end}.v{font-size:11px;fill:#59636e}.a{stroke:#8c959f}
.s0{fill:#0969da}.s1{fill:#8250df}.s2{fill:#1a7f37}
@media (prefers-color-scheme:dark){text{fill:#e6edf3}.v{fill:#9198a1}.a{stroke:#656c76}.s0{fill:#58a6ff}.s1{fill:#bc8cff}.s2{fill:#3fb950}}
</style>
<text class="t" x="10" y="20">{{html .Title}} ({{html .Unit}}{{if .Log}}, logarithmic{{end}})</text>
{{range .Legend}}<rect class="s{{.Series}}" x="{{.X}}" y="{{.Y}}" width="12" height="12"/><text x="{{.TextX}}" y="44.5">{{html .Text}}</text>
{{end}}{{range .Labels}}<text class="l" x="{{.X}}" y="{{.Y}}">{{html .Text}}</text>
{{end}}{{range .Bars}}<rect class="s{{.Series}}" x="{{.X}}" y="{{.Y}}" width="{{printf "%.1f" .Width}}" height="12"/><text class="v" x="{{printf "%.1f" .TextX}}" y="{{.TextY}}">{{.Text}}</text>
{{end}}<path class="a" d="M{{.Axis}} 30V{{.Height}}"/>
</svg>
`))
