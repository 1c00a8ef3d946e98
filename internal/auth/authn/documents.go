package authn

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/mcpd/mcpd/internal/base/jsonguard"
)

// documents lets JSON documents through alone; see [documentsOnly].
type documents struct{ inner http.RoundTripper }

// maxDocument bounds a document of a provider in bytes.
const maxDocument = 1 << 20

// documentLimits bound what a provider sends.
var documentLimits = jsonguard.Limits{Bytes: maxDocument, Depth: 16, Tokens: 50_000}

// RoundTrip sends a request, and reads the whole answer.
func (d documents) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := d.inner.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the status is %d", resp.StatusCode)
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxDocument+1))
	if err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	if err := jsonguard.Check(text, documentLimits); err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	if !jsonguard.IsObject(text) {
		return nil, errors.New("read answer: it is no JSON object")
	}
	whole := *resp
	whole.Body = io.NopCloser(bytes.NewReader(text))
	whole.ContentLength = int64(len(text))
	return &whole, nil
}

// documentsOnly returns a client whose answers are JSON documents of a bounded
// size that have passed the gate, with status 200: whatever else comes is an error
// that repeats nothing of it.
func documentsOnly(c *http.Client) *http.Client {
	only := *c
	only.Transport = documents{c.Transport}
	if c.Transport == nil {
		only.Transport = documents{http.DefaultTransport}
	}
	return &only
}
