package telemetry

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

// answers is a collector that responds with one status after the other, repeating the
// last; 0 is a failed connection.
type answers struct {
	statuses []int
	after    string
	at       []time.Duration
	began    time.Time
}

func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	a.at = append(a.at, time.Since(a.began))
	status := a.statuses[min(len(a.at), len(a.statuses))-1]
	if status == 0 {
		return nil, io.ErrUnexpectedEOF
	}
	return &http.Response{StatusCode: status, Header: http.Header{"Retry-After": {a.after}}, Body: io.NopCloser(strings.NewReader("\xff is no protobuf"))}, nil
}

func export(ctx context.Context, a *answers) error {
	a.began = time.Now()
	o := &otlp{client: &http.Client{Transport: a}, url: "http://collector.invalid/", header: http.Header{}, timeout: 10 * time.Second}
	return o.UploadTraces(ctx, []*tracepb.ResourceSpans{{}})
}

func TestOTLP_retries(t *testing.T) {
	for name, row := range map[string]struct {
		statuses []int
		attempts int
		fails    bool
	}{
		"accepted":             {[]int{200}, 1, false},
		"a gateway that fails": {[]int{502, 503, 504, 429, 200}, 5, false},
		"no connection":        {[]int{0, 0, 200}, 3, false},
		"a bad request":        {[]int{400, 200}, 1, true},
		"not allowed":          {[]int{403, 200}, 1, true},
		"a redirect":           {[]int{307, 200}, 1, true},
		"a fault":              {[]int{500, 200}, 1, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			a := &answers{statuses: row.statuses}
			if err := export(t.Context(), a); (err != nil) != row.fails || len(a.at) != row.attempts {
				t.Errorf("%s: %d attempts, want %d; %v", name, len(a.at), row.attempts, err)
			}
		})
	}
}

func TestOTLP_retryCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		a := &answers{statuses: []int{503}}
		err := export(ctx, a)
		if err == nil || !strings.Contains(err.Error(), "status 503") || time.Since(a.began) != 30*time.Second {
			t.Errorf("after %v: %v", time.Since(a.began), err)
		}
		if len(a.at) < 4 || len(a.at) > 10 {
			t.Errorf("%d attempts in 30 s", len(a.at))
		}
	})
}

func TestOTLP_retryAfter(t *testing.T) {
	for after, least := range map[string]time.Duration{"7": 7 * time.Second, "": 0, "soon": 0, "-1": 0, "99999999999999999999": 0} {
		synctest.Test(t, func(t *testing.T) {
			a := &answers{statuses: []int{429, 200}, after: after}
			if err := export(t.Context(), a); err != nil {
				t.Fatal(err)
			}
			if a.at[1] < least || a.at[1] > max(least, 2*time.Second) {
				t.Errorf("after %q the request was repeated in %v", after, a.at[1])
			}
		})
	}
}
