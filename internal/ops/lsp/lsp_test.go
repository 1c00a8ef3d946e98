package lsp

import (
	"errors"
	"testing"

	"github.com/creachadair/jrpc2"

	"github.com/mcpd/mcpd/internal/language/loader"
)

// TestSession_initializesOnce refuses a second initialize request until the first one has failed.
func TestSession_initializesOnce(t *testing.T) {
	s := &session{unit: utf16, documents: map[string]*document{}, checker: newChecker()}
	opened := 0
	s.options.Open = func(string, *loader.Overlay) (*Project, error) {
		opened++
		if s.allowed("initialize") == nil {
			t.Error("initialize is allowed during initialize")
		}
		return nil, errors.New("no project")
	}
	requests, err := jrpc2.ParseRequests([]byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := s.Assign(t.Context(), "initialize")(t.Context(), requests[0].ToRequest()); err == nil {
			t.Error("initialize without a project succeeds")
		}
	}
	if opened != 2 {
		t.Errorf("%d projects opened, want another one after a failure", opened)
	}
}
