package lsp

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/creachadair/jrpc2"
)

// Limits of the open documents.
const (
	// maxDocument bounds a document, in bytes. The server reads no larger file for positions.
	maxDocument = 4 << 20
	// maxDocuments bounds their number, and maxDocumentsTotal their size.
	maxDocuments      = 2000
	maxDocumentsTotal = 64 << 20
	// maxChanges bounds the changes of one notification, and maxCopied the size of all texts that they
	// give one after the other.
	maxChanges = 10_000
	maxCopied  = 256 << 20
)

var (
	errDocumentTooLarge = fmt.Errorf("the document is larger than %d MiB", maxDocument>>20)
	errTooManyDocuments = fmt.Errorf("more than %d documents or %d MiB are open", maxDocuments, maxDocumentsTotal>>20)
	errTooManyChanges   = fmt.Errorf("one notification has more than %d changes, or changes of a large document", maxChanges)
	errNotOpen          = errors.New("the document is not open")
)

// document is an open document. It is replaced and never changed.
type document struct {
	uri     string // as the client writes it
	path    string
	version int32
	text    string
}

// open returns an open document.
func (s *session) open(uri string) (*document, encoding, error) {
	path, err := pathOf(uri)
	if err != nil {
		return nil, "", jrpc2.Errorf(jrpc2.InvalidParams, "%v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.documents[path]
	if d == nil {
		return nil, "", jrpc2.Errorf(jrpc2.InvalidParams, "%v", errNotOpen)
	}
	return d, s.unit, nil
}

// put adds or replaces a document. The caller holds mu.
func (s *session) put(d *document) error {
	before := 0
	if old := s.documents[d.path]; old != nil {
		before = len(old.text)
	} else if len(s.documents) >= maxDocuments {
		return errTooManyDocuments
	}
	switch {
	case len(d.text) > maxDocument:
		return errDocumentTooLarge
	case s.size-before+len(d.text) > maxDocumentsTotal:
		return errTooManyDocuments
	}
	s.size += len(d.text) - before
	s.documents[d.path] = d
	return nil
}

// drop removes a document, so that the file on disk is checked again.
func (s *session) drop(path string) {
	s.mu.Lock()
	if d := s.documents[path]; d != nil {
		s.size -= len(d.text)
		delete(s.documents, path)
	}
	s.mu.Unlock()
	s.changed(path)
}

// refuse drops a document that exceeds a limit, and says so.
func (s *session) refuse(path string, err error) {
	s.drop(path)
	s.notify("window/showMessage", showMessageParams{Type: severityWarning, Message: fmt.Sprintf("mcpd checks %s as it is on disk: %v", filepath.Base(path), err)})
}

func (s *session) didOpen(_ context.Context, r *jrpc2.Request) (any, error) {
	var params didOpenParams
	if err := r.UnmarshalParams(&params); err != nil {
		return nil, err
	}
	item := params.TextDocument
	path, err := pathOf(item.URI)
	if err != nil {
		return nil, nil // an unnamed document, or the scheme of another program
	}
	s.mu.Lock()
	err = s.put(&document{item.URI, path, item.Version, item.Text})
	s.mu.Unlock()
	if err != nil {
		s.refuse(path, err)
		return nil, nil
	}
	s.changed(path)
	return nil, nil
}

func (s *session) didChange(_ context.Context, r *jrpc2.Request) (any, error) {
	var params didChangeParams
	if err := r.UnmarshalParams(&params); err != nil {
		return nil, err
	}
	path, err := pathOf(params.TextDocument.URI)
	if err != nil {
		return nil, nil
	}
	if err := s.edit(path, params); errors.Is(err, errNotOpen) {
		return nil, nil
	} else if err != nil {
		s.refuse(path, err)
		return nil, nil
	}
	s.changed(path)
	return nil, nil
}

// edit applies the changes to a document.
func (s *session) edit(path string, params didChangeParams) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.documents[path]
	if d == nil {
		return errNotOpen
	}
	text, err := s.unit.apply(d.text, params.ContentChanges, maxDocument)
	if err != nil {
		return err
	}
	return s.put(&document{d.uri, path, params.TextDocument.Version, text})
}

func (s *session) didClose(_ context.Context, r *jrpc2.Request) (any, error) {
	var params documentParams
	if err := r.UnmarshalParams(&params); err != nil {
		return nil, err
	}
	if path, err := pathOf(params.TextDocument.URI); err == nil {
		s.drop(path)
	}
	return nil, nil
}

// didSave reads all files again, because other programs may have changed them, too.
func (s *session) didSave(context.Context, *jrpc2.Request) (any, error) {
	s.checker.add("", Change{All: true})
	return nil, nil
}

func (s *session) didChangeWatchedFiles(_ context.Context, r *jrpc2.Request) (any, error) {
	var params watchedFilesParams
	if err := r.UnmarshalParams(&params); err != nil {
		return nil, err
	}
	for _, change := range params.Changes {
		if path, err := pathOf(change.URI); err == nil {
			s.changed(path)
		}
	}
	return nil, nil
}

// changed checks the project after a change of a file or document.
func (s *session) changed(path string) {
	s.mu.Lock()
	tools, config := s.project.Tools, s.project.Config
	s.mu.Unlock()
	change := Change{}
	if below, err := filepath.Rel(tools, path); err == nil && filepath.IsLocal(below) {
		change.Paths = []string{filepath.ToSlash(below)}
	}
	if filepath.Dir(path) == filepath.Dir(config) {
		switch {
		case path == config, strings.HasSuffix(path, ".mcpdvars"):
			change.Config = true
		case strings.HasSuffix(path, ".lock"):
			change.All = true
		}
	}
	if path == tools {
		change.All = true
	}
	s.checker.add(path, change)
}
