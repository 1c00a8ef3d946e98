package console

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/mcpd/mcpd/internal/ops/control"
)

// status is what the console reads of the response to [control.Status].
type status struct {
	control.StatusResult
	Scripts control.ScriptState `json:"bodies"`
}

// Healthy reports whether nothing is wrong.
func (s status) Healthy() bool { return s.Status == "healthy" }

// overviewBody is the data of the overview.
type overviewBody struct {
	Status      status
	Diagnostics string
	Errors      int // the number of diagnostics that are errors
	Warnings    int
	Summary     summary
	Feed        string // why the feed is not current
	Limits      limitUses
}

// overviewOf asks the server for the data of the overview.
func (c *Console) overviewOf(r *http.Request) (overviewBody, error) {
	c.feed.start(r.Context())
	var b overviewBody
	var err error
	if b.Diagnostics, err = c.ask(r, control.Request{Action: control.Status}, &b.Status); err != nil {
		return b, err
	}
	var problems []struct{ Severity string }
	if err := json.Unmarshal(b.Status.Problems, &problems); err != nil {
		return b, errUnknownResponse
	}
	for _, p := range problems {
		if p.Severity == "error" {
			b.Errors++
		} else {
			b.Warnings++
		}
	}
	maps.DeleteFunc(b.Status.Sessions, func(_ string, n int) bool { return n == 0 })
	b.Summary, b.Limits = c.feed.summary(), c.limitsOf(r)
	_, b.Feed, _ = c.feed.after(0)
	return b, nil
}

// overview shows what the server serves and what is broken.
func (c *Console) overview(w http.ResponseWriter, r *http.Request) {
	body, err := c.overviewOf(r)
	if err != nil {
		c.fail(w, r, "/", err)
		return
	}
	c.show(w, r, http.StatusOK, "overview", "Overview", "/", body)
}

// overviewEvents keeps an overview current: "health", "problems", "summary", "near", "limits" and "status" have the
// content of its parts, and "series" the data of its charts.
func (c *Console) overviewEvents(w http.ResponseWriter, r *http.Request) {
	c.poll(w, r, func(e *events) error { return c.sendOverview(e, r) })
}

// sendOverview sends the parts of an overview that have changed.
func (c *Console) sendOverview(e *events, r *http.Request) error {
	body, err := c.overviewOf(r)
	if err != nil {
		content, err := c.render("overview", "unreachable", err.Error())
		return cmp.Or(err, e.sendChanged("health", string(content)))
	}
	for _, part := range []string{"health", "problems", "summary", "near", "limits", "status"} {
		if err := c.sendRendered(e, "overview", part, body); err != nil {
			return err
		}
	}
	data, err := body.Summary.JSON()
	if err != nil {
		return err
	}
	return e.sendChanged("series", data)
}

// reload makes the server load all files.
func (c *Console) reload(w http.ResponseWriter, r *http.Request) {
	var row struct {
		OK bool `json:"ok"`
	}
	_, err := c.ask(r, control.Request{Action: control.Reload}, &row)
	switch {
	case err != nil:
		c.fail(w, r, "/", err)
	case row.OK:
		c.redirect(w, r, "/?done=reload")
	default:
		c.redirect(w, r, "/?done=broken")
	}
}

// The charts have a point for each bucket of the last seriesBuckets.
const (
	seriesBucket  = 10 * time.Second
	seriesBuckets = 90
)

// outcome groups the outcomes of calls.
type outcome string

const (
	succeeded outcome = "ok"
	waiting   outcome = "waiting"
	denied    outcome = "denied"
	failed    outcome = "failed"
)

// outcomeOf returns the group of an outcome in a [control.Call].
func outcomeOf(code string) outcome {
	switch code {
	case "ok", "rehearsed":
		return succeeded
	case "input_required":
		return waiting
	case "POLICY_DENIED":
		return denied
	}
	return failed
}

// summary describes the calls of the last minutes: as numbers, and as series for charts.
type summary struct {
	Minutes            int
	OK, Denied, Failed int
	P50, P95           float64
	Refusals           []refusal
	series             series
}

// Calls is the number of all calls.
func (s summary) Calls() int { return s.OK + s.Denied + s.Failed }

// refusal counts the calls that a policy or limit refused.
type refusal struct {
	By    string
	Calls int
}

// series are the columns of the charts: time in seconds, calls by outcome, and latency in
// milliseconds, which is null without calls.
type series struct {
	Time   []int64    `json:"time"`
	OK     []int      `json:"ok"`
	Denied []int      `json:"denied"`
	Failed []int      `json:"failed"`
	P50    []*float64 `json:"p50"`
	P95    []*float64 `json:"p95"`
}

// summary returns the summary of the calls until now.
func (f *feed) summary() summary {
	calls, _, _ := f.after(0)
	end := f.now().Truncate(seriesBucket).Add(seriesBucket)
	first := end.Add(-seriesBuckets * seriesBucket)
	s := summary{Minutes: int((seriesBuckets * seriesBucket).Minutes()), series: series{
		Time: make([]int64, seriesBuckets), OK: make([]int, seriesBuckets), Denied: make([]int, seriesBuckets), Failed: make([]int, seriesBuckets),
		P50: make([]*float64, seriesBuckets), P95: make([]*float64, seriesBuckets),
	}}
	for i := range s.series.Time {
		s.series.Time[i] = first.Add(time.Duration(i) * seriesBucket).Unix()
	}
	var all []float64
	latencies, refusals := make([][]float64, seriesBuckets), map[string]int{}
	for _, c := range calls {
		i := int(c.Time.Sub(first) / seriesBucket)
		if c.Time.Before(first) || i >= seriesBuckets {
			continue
		}
		switch outcomeOf(c.Outcome) {
		case succeeded, waiting:
			s.OK++
			s.series.OK[i]++
		case denied:
			s.Denied++
			s.series.Denied[i]++
			refusals[c.DeniedBy]++
		case failed:
			s.Failed++
			s.series.Failed[i]++
		}
		latencies[i], all = append(latencies[i], c.DurationMS), append(all, c.DurationMS)
	}
	for i, l := range latencies {
		if len(l) > 0 {
			p50, p95 := quantiles(l)
			s.series.P50[i], s.series.P95[i] = &p50, &p95
		}
	}
	s.P50, s.P95 = quantiles(all)
	for by, n := range refusals {
		s.Refusals = append(s.Refusals, refusal{by, n})
	}
	slices.SortFunc(s.Refusals, func(a, b refusal) int {
		if a.Calls != b.Calls {
			return b.Calls - a.Calls
		}
		return strings.Compare(a.By, b.By)
	})
	s.Refusals = s.Refusals[:min(len(s.Refusals), 8)]
	return s
}

// JSON returns the series for the charts.
func (s summary) JSON() (string, error) {
	encoded, err := json.Marshal(s.series)
	return string(encoded), err
}

// quantiles sorts durations and returns their median and 95th percentile, 0 without durations.
func quantiles(ms []float64) (p50, p95 float64) {
	if len(ms) == 0 {
		return 0, 0
	}
	slices.Sort(ms)
	return ms[len(ms)/2], ms[min(len(ms)-1, len(ms)*95/100)]
}

// nearBound is the share of a limit from which a key is near its bound.
const nearBound = 0.8

// limitUses are the limits of the overview.
type limitUses struct {
	Near  []nearKey
	All   []control.LimitUse
	Error string
}

// nearKey is a key that is near the bound of a limit.
type nearKey struct {
	control.LimitUse
	Key control.KeyUse
}

// maxNear bounds the keys near their bound in a page.
const maxNear = 50

// limitsOf asks the server how much of its limits is in use.
func (c *Console) limitsOf(r *http.Request) (l limitUses) {
	if err := c.do(r, control.Limits, nil, &l.All); err != nil {
		return limitUses{Error: err.Error()}
	}
	for _, u := range l.All {
		for _, k := range u.Most {
			if k.Share >= nearBound && len(l.Near) < maxNear {
				l.Near = append(l.Near, nearKey{u, k})
			}
		}
	}
	return l
}

// percent formats a share. It rounds down, so that only a share of all is 100 %.
func percent(share float64) string { return fmt.Sprintf("%d %%", int(share*100)) }

// keyText describes a key of a limit.
func keyText(k control.KeyUse) string {
	switch {
	case k.Rest:
		return "all further keys"
	case k.Hash != "" && k.AuthKind != "":
		return cut(fmt.Sprintf("key %s of a principal (%s)", k.Hash, k.AuthKind), maxName)
	case k.Hash != "":
		return cut("key "+k.Hash, maxName)
	case k.AuthKind != "" && k.Issuer != "":
		return fmt.Sprintf("%s (%s of %s)", cut(k.Key, maxName), cut(k.AuthKind, maxName), cut(k.Issuer, maxName))
	case k.AuthKind != "":
		return fmt.Sprintf("%s (%s)", cut(k.Key, maxName), cut(k.AuthKind, maxName))
	case k.Key != "":
		return cut(k.Key, maxName)
	}
	return "all calls"
}
