package engine

import (
	"errors"
	"log/slog"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/base/state"
	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/loader"
	"github.com/mcpd/mcpd/internal/ops/audit"
)

// openAudit opens the audit log of the first snapshot.
func (s *Server) openAudit(block *definition.Audit) error {
	if block == nil || s.options.Mode != serving {
		return nil
	}
	if err := audit.CheckOutside(block.Path, loader.Path(s.options.Files.Tools)); err != nil {
		return diag.List{catalog.BadAudit(block, err)}
	}
	log, err := audit.Open(audit.Options{
		Path: block.Path, Mode: audit.Mode(block.Mode), MaxSize: block.MaxSize, Keep: audit.Retention{Files: block.MaxFiles, Age: block.MaxAge},
		Redactor: s.brokers.Secrets,
		Now:      s.options.Now, Logger: s.options.Logger,
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

// closeAudit closes the audit log of a first load that failed after openAudit.
func (s *Server) closeAudit() {
	log := s.audit.Swap(nil)
	s.auditBlock = nil
	if log == nil {
		return
	}
	if err := log.Close(); err != nil {
		s.options.Logger.Error("close audit log", slog.String("error", err.Error()))
	}
}

// ErrInUse is the error for a state file or audit log that another process has open.
var ErrInUse = state.ErrInUse

// auditInUse is the diagnostic for an audit log that another process has open.
type auditInUse struct{ diag.List }

// Unwrap returns the diagnostic and the sentinel errors for [errors.Is].
func (h *auditInUse) Unwrap() []error { return []error{h.List, audit.ErrInUse, ErrInUse} }

// checkAudit rejects a changed block if its log cannot be opened at the next start. It also rejects
// production mode if the server was started without an audit log, as calls would not be audited.
func (s *Server) checkAudit(c *catalog.Catalog) error {
	if c.Audit != nil && s.auditChanged(c.Audit) {
		if err := audit.CheckOutside(c.Audit.Path, loader.Path(s.options.Files.Tools)); err != nil {
			return diag.List{catalog.BadAudit(c.Audit, err)}
		}
	}
	if c.Server.Mode != definition.Production || s.options.Mode != serving || s.audit.Load() != nil {
		return nil
	}
	return diag.List{{
		Code: "production-no-audit", Range: c.Server.Range, Summary: "this server was started without an audit log, and production mode requires one",
		Detail: "restart mcpd, or undo the change of the server block",
	}}
}

// warnRestart logs and returns warnings about changed blocks that need a restart. Loading is held.
func (s *Server) warnRestart(c *catalog.Catalog) (warnings diag.List) {
	if s.auditChanged(c.Audit) {
		audited := s.audit.Load() != nil
		s.options.Logger.Warn("audit block changed, restart needed", slog.Bool("audited", audited))
		warnings = append(warnings, catalog.AuditChanged(c.Audit, audited))
	}
	if s.stateChanged(c) {
		s.options.Logger.Warn("state block changed, restart needed")
		warnings = append(warnings, catalog.StateChanged(c.Definitions.Config.State))
	}
	return warnings
}

// stateChanged reports whether a changed state block would have an effect. The first snapshot must
// have been published.
func (s *Server) stateChanged(c *catalog.Catalog) bool {
	o := s.options
	return o.Mode == serving && o.StateURL == "" && (o.StatePath == "" || o.StateOptional) && !c.Definitions.Config.State.SameStore(s.firstState)
}

// auditChanged reports whether a block differs from the block of the open log. The first snapshot
// must have been published.
func (s *Server) auditChanged(block *definition.Audit) bool {
	return s.options.Mode == serving && !block.SameLog(s.auditBlock)
}

// MarkReady writes the audit event that [Options].DeferReady delays. Only the first call counts.
func (s *Server) MarkReady() {
	s.eventMu.Lock()
	defer s.eventMu.Unlock()
	if s.ready {
		return
	}
	s.ready = true
	s.recordServerEvent(Started, s.Status().Revision)
}

// recordServerEvent audits a server event.
func (s *Server) recordServerEvent(kind EventKind, revision string) {
	s.Audit("server."+string(kind), map[string]string{"revision": revision})
}

// Audit writes an event that is not a call to the audit log. The name has dots, and attributes
// contain no secret. In strict mode it returns after the record is on disk. An error is logged.
func (s *Server) Audit(event string, attributes map[string]string) {
	if err := s.recordEvent(event, attributes); err != nil {
		s.options.Logger.Error("write audit event", slog.String("error", err.Error()))
	}
}

// recordEvent is [Server.Audit] with the error, for actions that need the record first.
func (s *Server) recordEvent(event string, attributes map[string]string) error {
	log := s.audit.Load()
	if log == nil {
		return nil
	}
	return log.Event(audit.Event{Name: event, Attributes: attributes})
}
