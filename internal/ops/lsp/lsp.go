// Package lsp is a server of the Language Server Protocol for the files of a project. An editor that
// runs it shows the diagnostics of mcpd check while its user types.
//
// A session has documents, which the editor has opened, and a [Project], which checks the files on
// disk with the documents laid over them. Messages change documents. One goroutine checks the
// project after changes, and publishes the diagnostics of all files. Changes that arrive during a
// check are checked together by the next one. Requests are answered from the text of a document and
// an [outline], which also understands files with syntax errors.
//
// Package jrpc2 frames and dispatches messages (JSON-RPC 2.0). The types of
// the protocol are in protocol.go.
package lsp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/creachadair/jrpc2"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/loader"
)

// Options configure a session.
type Options struct {
	Name, Version string
	// Root is the directory of the project if the client has none.
	Root string
	// Open returns the project in a directory. Its files have the texts of the overlay.
	Open func(root string, files *loader.Overlay) (*Project, error)
	// Logger receives the stack traces of panics.
	Logger *slog.Logger
}

// Project checks the files of a server.
type Project struct {
	// Tools is the absolute path of the tools directory, and Config of the config file. They start
	// the names of files in diagnostics.
	Tools, Config string
	// Check returns all diagnostics after a change.
	Check func(Change) diag.List
	// Close releases the project.
	Close func()
}

// Change says which files to read again.
type Change struct {
	// Paths are files relative to the tools directory, with forward slashes.
	Paths []string
	// Config is set if the config file or a file beside it may have changed, and All if any file may
	// have changed.
	Config, All bool
}

// ErrNoShutdown reports that a session ended without the shutdown request.
var ErrNoShutdown = errors.New("the client left without shutdown")

// Serve runs a session until the client ends it or ctx ends. It returns [ErrNoShutdown] if the client
// sent exit before shutdown, and nil if it closed in.
func Serve(ctx context.Context, in io.Reader, out io.Writer, o Options) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &session{options: o, unit: utf16, documents: map[string]*document{}, checker: newChecker()}
	s.rpc = jrpc2.NewServer(s, &jrpc2.ServerOptions{AllowPush: true, DisableBuiltin: true, Concurrency: handlers})
	s.rpc.Start(newFraming(in, out))
	stop := context.AfterFunc(ctx, s.rpc.Stop)
	err := s.rpc.Wait()
	stop()
	s.checker.close()
	s.background.Wait()
	if s.project != nil && s.project.Close != nil {
		s.project.Close()
	}
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil // the client ended within a message
	case err != nil:
		return fmt.Errorf("language server: %w", err)
	case s.exited && !s.closing:
		return ErrNoShutdown
	}
	return nil
}

// handlers bounds the requests that are handled at once.
const handlers = 4

// session is the connection of one client.
type session struct {
	// Fixed at creation.
	options Options
	rpc     *jrpc2.Server
	checker *checker
	files   loader.Overlay
	// background are the goroutines of the session besides the goroutines of rpc.
	background sync.WaitGroup

	// indexing guards sources, the sources of the last index by path.
	indexing sync.Mutex
	sources  map[string]*source

	// renames lets one rename at a time check the files.
	renames sync.Mutex

	mu        sync.Mutex
	documents map[string]*document // by path
	size      int                  // of all documents, in bytes
	// started and closing are set by initialize and shutdown, exited by exit.
	started, closing, exited bool
	// initializing is set while an initialize request is handled.
	initializing bool
	// Set by initialize.
	unit    encoding
	client  initializeParams
	root    string // the directory of the project
	project *Project
	// fixes belong to the published diagnostics, by path.
	fixes map[string]fixes
}

// Errors of the protocol.
var (
	errNotInitialized = jrpc2.Errorf(-32002, "the session is not initialized")
	errShutDown       = jrpc2.Errorf(jrpc2.InvalidRequest, "the session was shut down")
	errPanic          = jrpc2.Errorf(jrpc2.InternalError, "mcpd failed, which is a bug in mcpd; its log has the stack trace")
)

// Assign returns the handler of a method; nil if there is none.
func (s *session) Assign(_ context.Context, method string) jrpc2.Handler {
	h := map[string]func(*session, context.Context, *jrpc2.Request) (any, error){
		"initialize":                        (*session).initialize,
		"initialized":                       (*session).initialized,
		"shutdown":                          (*session).shutdown,
		"exit":                              (*session).exit,
		"$/cancelRequest":                   (*session).cancel,
		"textDocument/didOpen":              (*session).didOpen,
		"textDocument/didChange":            (*session).didChange,
		"textDocument/didClose":             (*session).didClose,
		"textDocument/didSave":              (*session).didSave,
		"workspace/didChangeWatchedFiles":   (*session).didChangeWatchedFiles,
		"textDocument/formatting":           (*session).formatting,
		"textDocument/documentSymbol":       (*session).symbols,
		"textDocument/completion":           (*session).completion,
		"textDocument/hover":                (*session).hover,
		"textDocument/definition":           (*session).definition,
		"textDocument/references":           (*session).references,
		"textDocument/codeAction":           (*session).codeActions,
		"textDocument/prepareRename":        (*session).prepareRename,
		"textDocument/rename":               (*session).rename,
		"textDocument/semanticTokens/full":  (*session).semanticTokens,
		"textDocument/semanticTokens/range": (*session).semanticTokens,
		"textDocument/codeLens":             (*session).codeLenses,
	}[method]
	if h == nil {
		return nil
	}
	return func(ctx context.Context, r *jrpc2.Request) (result any, err error) {
		defer func() {
			if recover() != nil {
				s.options.Logger.Error("recover panic in editor request", slog.String("method", method), slog.String("stack", string(debug.Stack())))
				result, err = nil, errPanic
			}
		}()
		if err := s.allowed(method); err != nil {
			return nil, err
		}
		return h(s, ctx, r)
	}
}

// allowed returns an error if a method may not be called now.
func (s *session) allowed(method string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case method == "exit":
		return nil
	case s.closing:
		return errShutDown
	case method == "initialize" && (s.started || s.initializing):
		return jrpc2.Errorf(jrpc2.InvalidRequest, "the session is initialized already")
	case method != "initialize" && !s.started:
		return errNotInitialized
	}
	s.initializing = method == "initialize"
	return nil
}

// initialize opens the project, and starts to check it.
func (s *session) initialize(_ context.Context, r *jrpc2.Request) (any, error) {
	defer func() {
		s.mu.Lock()
		s.initializing = false
		s.mu.Unlock()
	}()
	var params initializeParams
	if err := r.UnmarshalParams(&params); err != nil {
		return nil, err
	}
	root := s.options.Root
	uri := params.RootURI
	if len(params.WorkspaceFolders) > 0 {
		uri = &params.WorkspaceFolders[0].URI
	}
	if uri != nil {
		path, err := pathOf(*uri)
		if err != nil {
			return nil, jrpc2.Errorf(jrpc2.InvalidParams, "the root folder: %v", err)
		}
		root = path
	}
	project, err := s.options.Open(root, &s.files)
	if err != nil {
		return nil, jrpc2.Errorf(jrpc2.InvalidRequest, "open project: %v", err)
	}
	unit := utf16
	if slices.Contains(params.Capabilities.General.PositionEncodings, string(utf8s)) {
		unit = utf8s
	}
	var rename any = true
	if params.Capabilities.TextDocument.Rename.PrepareSupport {
		rename = renameOptions{Prepare: true}
	}
	s.mu.Lock()
	s.started, s.client, s.root, s.project, s.unit = true, params, root, project, unit
	s.mu.Unlock()
	s.background.Go(func() { s.checker.run(s.check) })
	s.checker.add("", Change{All: true})
	return initializeResult{
		Capabilities: serverCapabilities{
			PositionEncoding: string(unit), TextDocumentSync: syncOptions{OpenClose: true, Change: incremental},
			Formatting: true, DocumentSymbol: true, Hover: true, Definition: true, References: true, Rename: rename,
			CodeAction: codeActionOptions{[]string{quickFix}}, CompletionProvider: completionOptions{[]string{".", `"`}},
			SemanticTokens: semanticOptions{Legend: semanticLegend{tokenTypes, []string{}}, Full: true, Range: true},
		},
		ServerInfo: serverInfo{s.options.Name, s.options.Version},
	}, nil
}

// initialized asks the client to watch the files of the project, if it can.
func (s *session) initialized(context.Context, *jrpc2.Request) (any, error) {
	s.mu.Lock()
	able := s.client.Capabilities.Workspace.DidChangeWatchedFiles.DynamicRegistration
	s.mu.Unlock()
	if !able {
		return nil, nil
	}
	s.background.Go(func() {
		// A client that refuses sends no changes. Then a saved document makes the server read all files.
		_, _ = s.rpc.Callback(context.Background(), "client/registerCapability", registrationParams{[]registration{{
			ID: "files", Method: "workspace/didChangeWatchedFiles", RegisterOptions: watchers{[]watcher{{"**/*"}}},
		}}})
	})
	return nil, nil
}

func (s *session) shutdown(context.Context, *jrpc2.Request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closing = true
	return nil, nil
}

// exit ends the session: no message is read after it.
func (s *session) exit(context.Context, *jrpc2.Request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.exited = true
	return nil, nil
}

// cancel cancels the context of a request.
func (s *session) cancel(_ context.Context, r *jrpc2.Request) (any, error) {
	var params cancelParams
	if err := r.UnmarshalParams(&params); err != nil {
		return nil, err
	}
	s.rpc.CancelRequest(string(params.ID))
	return nil, nil
}

// notify sends a notification. A client that is gone gets none.
func (s *session) notify(method string, params any) {
	_ = s.rpc.Notify(context.Background(), method, params)
}
