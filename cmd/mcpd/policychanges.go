package main

import (
	"bufio"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mcpd/mcpd/internal/ops/audit"
	"github.com/mcpd/mcpd/internal/ops/replay"
)

// changes prints calls that are decided otherwise, one after the other, so that it takes
// the memory of one.
type changes struct {
	out    *bufio.Writer
	asJSON bool
	some   bool
}

func changesPrinter(e env, asJSON bool) *changes {
	return &changes{out: bufio.NewWriter(e.text()), asJSON: asJSON}
}

// change prints one call.
func (p *changes) change(c *replay.Change) error {
	if p.asJSON {
		row, err := indentedJSON(changeRowOf(c), "    ")
		if err != nil {
			return err
		}
		begin := ",\n    "
		if !p.some {
			begin = "{\n  \"changes\": [\n    "
		}
		p.some = true
		_, err = p.out.WriteString(begin + string(row))
		return err
	}
	text := fmt.Sprintf("%s  %s  %s  %s  then %s, now %s", c.Call.Began.UTC().Format(time.RFC3339), c.Call.Call, calledOf(c), c.Call.Caller.Principal.ID, c.Then, c.Now)
	if r := c.Now.Ruling; r != nil && r.Policy.Compiled != nil {
		text += fmt.Sprintf(" (%s)", r.Policy.Where)
	}
	_, err := p.out.WriteString(printable(text) + "\n")
	return err
}

// calledOf returns what was called.
func calledOf(c *replay.Change) string { return cmp.Or(c.Call.URI, c.Call.Name) }

// end prints the counts.
func (p *changes) end(n replay.Counts, strange int) error {
	if p.asJSON {
		return p.endJSON(n, strange)
	}
	fmt.Fprintf(p.out, "%s: %d decided otherwise, %d the same, %d unknown, %d of what is gone\n", count(n.Calls, "call"), n.Different, n.Same, n.Unknown, n.Gone)
	if n.OtherPolicy > 0 {
		fmt.Fprintf(p.out, "  the same: %d denied by another policy\n", n.OtherPolicy)
	}
	for _, reason := range mostFirst(n.Reasons) {
		fmt.Fprintf(p.out, "  unknown: %d, as %s\n", n.Reasons[reason], printable(reason))
	}
	for _, name := range mostFirst(n.Names) {
		fmt.Fprintf(p.out, "  gone: %d of %s\n", n.Names[name], printable(name))
	}
	if strange > 0 {
		fmt.Fprintf(p.out, "  left out: %s that are no records\n", count(strange, "line"))
	}
	return p.out.Flush()
}

// mostFirst returns the names of counts, the largest first.
func mostFirst(counts map[string]int) []string {
	return slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), strings.Compare(a, b))
	})
}

func (p *changes) endJSON(n replay.Counts, strange int) error {
	begin := "\n  ],\n"
	if !p.some {
		begin = "{\n  \"changes\": [],\n"
	}
	counts, err := indentedJSON(countsRow{
		Calls: n.Calls, Different: n.Different, Same: n.Same, OtherPolicy: n.OtherPolicy, Unknown: n.Unknown, Gone: n.Gone, Strange: strange,
		Reasons: orNone(n.Reasons), Names: orNone(n.Names),
	}, "  ")
	if err != nil {
		return err
	}
	if _, err := p.out.WriteString(begin + "  \"counts\": " + string(counts) + "\n}\n"); err != nil {
		return err
	}
	return p.out.Flush()
}

func orNone(counts map[string]int) map[string]int {
	if counts == nil {
		return map[string]int{}
	}
	return counts
}

// countsRow is what policy replay says of all calls to machines.
type countsRow struct {
	Calls       int            `json:"calls"`
	Different   int            `json:"different"`
	Same        int            `json:"same"`
	OtherPolicy int            `json:"same_by_another_policy"`
	Unknown     int            `json:"unknown"`
	Gone        int            `json:"gone"`
	Strange     int            `json:"no_records"`
	Reasons     map[string]int `json:"unknown_reasons"`
	Names       map[string]int `json:"gone_names"`
}

// changeRow is one call that is decided otherwise.
type changeRow struct {
	Seq       uint64      `json:"seq"`
	Time      time.Time   `json:"time"`
	CallID    string      `json:"call_id"`
	Kind      string      `json:"kind"`
	Name      string      `json:"name"`
	URI       *string     `json:"uri"`
	Principal string      `json:"principal"`
	Then      decisionRow `json:"then"`
	Now       decisionRow `json:"now"`
}

// decisionRow is how a call was or is decided.
type decisionRow struct {
	Verdict   string    `json:"verdict"`
	Policy    *string   `json:"policy"`
	ByDefault bool      `json:"by_default"`
	Place     *placeRow `json:"place"`
}

func changeRowOf(c *replay.Change) changeRow {
	r := c.Call
	return changeRow{r.Seq, r.Began.UTC(), r.Call, r.Kind, r.Name, orNull(r.URI), r.Caller.Principal.ID, decisionRowOf(c.Then), decisionRowOf(c.Now)}
}

func decisionRowOf(d replay.Decision) decisionRow {
	row := decisionRow{Verdict: string(d.Verdict), Policy: orNull(d.By), ByDefault: d.ByDefault}
	if d.Ruling != nil && d.Ruling.Policy.Compiled != nil {
		place := placeOf(d.Ruling.Policy.Where)
		row.Place = &place
	}
	return row
}

// logAt returns the path of an audit log: the one that is named, or the only one of a folder.
func logAt(e env, path string) (string, error) {
	info, err := e.disk.stat(path)
	if err != nil || !info.IsDir() {
		return path, nil // a log whose youngest file was put aside has none of its own name
	}
	logs, err := audit.In(e.at(path))
	switch {
	case err != nil:
		return "", usage("%v", err)
	case len(logs) != 1:
		return "", usage("there are %d audit logs in %s; name one by its file", len(logs), path)
	}
	return logs[0], nil
}
