package engine

import (
	"errors"
	"io/fs"
	"log/slog"
	"path/filepath"
	"reflect"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/base/state"
	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/loader"
	"github.com/mcpd/mcpd/internal/ops/audit"
)

// openAudit opens the log that the first snapshot wants calls to be written to.
func (s *Server) openAudit(block *definition.Audit) error {
	if block == nil || s.options.Mode != serving {
		return nil
	}
	if err := checkAuditPath(block.Path, s.options.Files.Tools); err != nil {
		return diag.List{catalog.BadAudit(block, err)}
	}
	log, err := audit.Open(audit.Options{
		Path: block.Path, Mode: audit.Mode(block.Mode), MaxSize: block.MaxSize, Keep: audit.Retention{Files: block.Keep, Age: block.MaxAge},
		Veil: s.brokers.Secrets,
		Now:  s.options.Now, Logger: s.options.Logger,
	})
	if errors.Is(err, audit.ErrInUse) {
		return &auditInUse{diag.List{catalog.AuditInUse(block, err)}}
	}
	if err != nil {
		return diag.List{catalog.BadAudit(block, err)}
	}
	s.audit.Store(log)
	s.auditBlock = block
	return nil
}

// ErrInUse is the error for a state file or an audit log that another process has open.
var ErrInUse = state.ErrInUse

// heldLog is the mistake of an audit block whose log another process has.
type auditInUse struct{ diag.List }

// Unwrap returns the mistake, and what [errors.Is] knows it by.
func (h *auditInUse) Unwrap() []error { return []error{h.List, audit.ErrInUse, ErrInUse} }

// checkAuditPath returns why no log can be opened at a path, or should not be: among the
// tools, each of its records would be taken for a change of them.
func checkAuditPath(path string, tools fs.FS) error {
	if err := audit.Check(path); err != nil {
		return err
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	if folder := loader.Path(tools); folder != "" {
		if between, err := filepath.Rel(folder, path); err == nil && filepath.IsLocal(between) {
			return errors.New("the log is in the folder of the tools, where each record is a change")
		}
	}
	return nil
}

// checkAudit refuses a block that has changed and whose log the next start could not open,
// and production mode in a server that has begun without one: it would run calls that
// nobody writes down.
func (s *Server) checkAudit(c *catalog.Catalog) error {
	if c.Audit != nil && s.auditChanged(c.Audit) {
		if err := checkAuditPath(c.Audit.Path, s.options.Files.Tools); err != nil {
			return diag.List{catalog.BadAudit(c.Audit, err)}
		}
	}
	if c.Server.Mode != definition.Production || s.options.Mode != serving || s.audit.Load() != nil {
		return nil
	}
	return diag.List{{
		Code: "production-no-audit", Range: c.Server.Range, Summary: "this server has begun without an audit log, and production mode demands one",
		Detail: "restart mcpd, or put back what the server block said",
	}}
}

// keepAudit tells when a later snapshot wants calls to be written down otherwise, and
// returns the warning: only a restart makes it so. Loading is held.
func (s *Server) warnAuditChange(block *definition.Audit) diag.List {
	if !s.auditChanged(block) {
		return nil
	}
	audited := s.audit.Load() != nil
	s.options.Logger.Warn("the audit block has changed; restart mcpd to make it take effect", slog.Bool("audited", audited))
	warning := diag.Diagnostic{
		Severity: diag.Warning, Code: "restart-needed", Summary: "the audit block has changed, which takes effect when mcpd is restarted; until then calls are not written down",
		Detail: "restart mcpd, or put back what the file said",
	}
	if audited {
		warning.Summary = "the audit block has changed, which takes effect when mcpd is restarted; until then calls are written down as before"
	}
	if block != nil {
		warning.Range = block.Range
	}
	return diag.List{warning}
}

// auditOutdated reports whether a block wants calls to be written down otherwise than
// they are. The first snapshot has been made.
func (s *Server) auditChanged(block *definition.Audit) bool {
	return s.options.Mode == serving && !sameAudit(block, s.auditBlock)
}

// sameAudit reports whether two blocks open one log in the same way, wherever they stand.
func sameAudit(a, b *definition.Audit) bool {
	if a == nil || b == nil {
		return a == b
	}
	x, y := *a, *b
	x.Range, x.PathRange, x.Capture, y.Range, y.PathRange, y.Capture = diag.Range{}, diag.Range{}, nil, diag.Range{}, diag.Range{}, nil
	return reflect.DeepEqual(x, y)
}

// Began says that clients can come in now, where [Options.Pending] has the audit log wait
// for that. Only the first time counts.
func (s *Server) MarkReady() {
	s.eventMu.Lock()
	defer s.eventMu.Unlock()
	if s.ready {
		return
	}
	s.ready = true
	s.recordServerEvent(Started, s.Status().Revision)
}

// audits writes down what happens to the server.
func (s *Server) recordServerEvent(kind EventKind, revision string) {
	s.Audit("server."+string(kind), map[string]string{"revision": revision})
}

// Audit writes down what is no call, where calls are written down: a name with dots,
// and what there is to say of it, none of which is a secret. In strict mode it returns
// when the disk has it. That it cannot be written down is told in the log.
func (s *Server) Audit(event string, attributes map[string]string) {
	if err := s.recordEvent(event, attributes); err != nil {
		s.options.Logger.Error("what happens to the server cannot be written down", slog.String("error", err.Error()))
	}
}

// writeEvent is [Server.Audit] for what must not happen unless it is written down.
func (s *Server) recordEvent(event string, attributes map[string]string) error {
	log := s.audit.Load()
	if log == nil {
		return nil
	}
	return log.Event(audit.Event{Name: event, Attributes: attributes})
}
