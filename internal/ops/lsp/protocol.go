package lsp

import "encoding/json"

// The types below are the parts of the protocol that the server uses, named as in the
// specification. The maintained Go modules with all types depend on a logger and on a JSON encoder
// of their own, which mcpd does not link for a few structs.
//
// See https://microsoft.github.io/language-server-protocol/specifications/lsp/3.17/specification/

// position counts lines and the code units of a line from 0. The unit is the negotiated encoding.
type position struct {
	Line      uint32 `json:"line"`
	Character uint32 `json:"character"`
}

// span is a Range of the specification; End is exclusive.
type span struct {
	Start position `json:"start"`
	End   position `json:"end"`
}

type location struct {
	URI   string `json:"uri"`
	Range span   `json:"range"`
}

type initializeParams struct {
	RootURI          *string `json:"rootUri"`
	WorkspaceFolders []struct {
		URI string `json:"uri"`
	} `json:"workspaceFolders"`
	Capabilities struct {
		General struct {
			PositionEncodings []string `json:"positionEncodings"`
		} `json:"general"`
		TextDocument struct {
			PublishDiagnostics struct {
				RelatedInformation bool `json:"relatedInformation"`
			} `json:"publishDiagnostics"`
			DocumentSymbol struct {
				Hierarchical bool `json:"hierarchicalDocumentSymbolSupport"`
			} `json:"documentSymbol"`
			Rename struct {
				PrepareSupport bool `json:"prepareSupport"`
			} `json:"rename"`
			Completion struct {
				CompletionItem struct {
					SnippetSupport bool `json:"snippetSupport"`
				} `json:"completionItem"`
			} `json:"completion"`
		} `json:"textDocument"`
		Workspace struct {
			WorkspaceEdit struct {
				DocumentChanges bool `json:"documentChanges"`
			} `json:"workspaceEdit"`
			DidChangeWatchedFiles struct {
				DynamicRegistration bool `json:"dynamicRegistration"`
			} `json:"didChangeWatchedFiles"`
		} `json:"workspace"`
	} `json:"capabilities"`
}

type initializeResult struct {
	Capabilities serverCapabilities `json:"capabilities"`
	ServerInfo   serverInfo         `json:"serverInfo"`
}

type serverInfo struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

type serverCapabilities struct {
	PositionEncoding   string            `json:"positionEncoding"`
	TextDocumentSync   syncOptions       `json:"textDocumentSync"`
	Formatting         bool              `json:"documentFormattingProvider"`
	DocumentSymbol     bool              `json:"documentSymbolProvider"`
	Hover              bool              `json:"hoverProvider"`
	Definition         bool              `json:"definitionProvider"`
	References         bool              `json:"referencesProvider"`
	Rename             any               `json:"renameProvider"` // renameOptions, or true
	CodeAction         codeActionOptions `json:"codeActionProvider"`
	CompletionProvider completionOptions `json:"completionProvider"`
	SemanticTokens     semanticOptions   `json:"semanticTokensProvider"`
	CodeLens           struct{}          `json:"codeLensProvider"`
}

type semanticOptions struct {
	Legend semanticLegend `json:"legend"`
	Full   bool           `json:"full"`
	Range  bool           `json:"range"`
}

type semanticLegend struct {
	TokenTypes     []string `json:"tokenTypes"`
	TokenModifiers []string `json:"tokenModifiers"`
}

// semanticParams has no range if the tokens of the whole document are meant.
type semanticParams struct {
	documentParams
	Range *span `json:"range"`
}

type semanticTokens struct {
	Data []uint32 `json:"data"`
}

type codeLens struct {
	Range   span    `json:"range"`
	Command command `json:"command"`
}

type command struct {
	Title     string `json:"title"`
	Command   string `json:"command"`
	Arguments []any  `json:"arguments"`
}

type syncOptions struct {
	OpenClose bool        `json:"openClose"`
	Change    int         `json:"change"`
	Save      saveOptions `json:"save"`
}

type saveOptions struct {
	IncludeText bool `json:"includeText"`
}

type codeActionOptions struct {
	CodeActionKinds []string `json:"codeActionKinds"`
}

// quickFix is the CodeActionKind of fixes.
const quickFix = "quickfix"

type codeActionParams struct {
	documentParams
	Range   span `json:"range"`
	Context struct {
		Only []string `json:"only"`
	} `json:"context"`
}

type codeAction struct {
	Title       string        `json:"title"`
	Kind        string        `json:"kind"`
	Diagnostics []diagnostic  `json:"diagnostics"`
	IsPreferred bool          `json:"isPreferred"`
	Edit        workspaceEdit `json:"edit"`
}

type workspaceEdit struct {
	Changes         map[string][]textEdit `json:"changes,omitempty"`
	DocumentChanges []documentChange      `json:"documentChanges,omitempty"`
}

type documentChange struct {
	TextDocument versionedDocument `json:"textDocument"`
	Edits        []textEdit        `json:"edits"`
}

// versionedDocument has no version if the document is not open.
type versionedDocument struct {
	URI     string `json:"uri"`
	Version *int32 `json:"version"`
}

type renameOptions struct {
	Prepare bool `json:"prepareProvider"`
}

type renameParams struct {
	positionParams
	NewName string `json:"newName"`
}

type renameRange struct {
	Range       span   `json:"range"`
	Placeholder string `json:"placeholder"`
}

type completionOptions struct {
	TriggerCharacters []string `json:"triggerCharacters,omitempty"`
}

// incremental is TextDocumentSyncKind.Incremental.
const incremental = 2

type textDocumentItem struct {
	URI     string `json:"uri"`
	Version int32  `json:"version"`
	Text    string `json:"text"`
}

type didOpenParams struct {
	TextDocument textDocumentItem `json:"textDocument"`
}

type documentParams struct {
	TextDocument struct {
		URI     string `json:"uri"`
		Version int32  `json:"version"`
	} `json:"textDocument"`
}

type didChangeParams struct {
	documentParams
	ContentChanges []contentChange `json:"contentChanges"`
}

// contentChange replaces a range, or the whole text if Range is nil.
type contentChange struct {
	Range *span  `json:"range"`
	Text  string `json:"text"`
}

type positionParams struct {
	documentParams
	Position position `json:"position"`
}

type watchedFilesParams struct {
	Changes []struct {
		URI string `json:"uri"`
	} `json:"changes"`
}

type publishParams struct {
	URI         string       `json:"uri"`
	Version     *int32       `json:"version,omitempty"`
	Diagnostics []diagnostic `json:"diagnostics"`
}

type diagnostic struct {
	Range              span                 `json:"range"`
	Severity           int                  `json:"severity"`
	Code               string               `json:"code,omitempty"`
	Source             string               `json:"source"`
	Message            string               `json:"message"`
	RelatedInformation []relatedInformation `json:"relatedInformation,omitempty"`
}

// Values of DiagnosticSeverity.
const (
	severityError   = 1
	severityWarning = 2
)

type relatedInformation struct {
	Location location `json:"location"`
	Message  string   `json:"message"`
}

type showMessageParams struct {
	Type    int    `json:"type"`
	Message string `json:"message"`
}

type registrationParams struct {
	Registrations []registration `json:"registrations"`
}

type registration struct {
	ID              string `json:"id"`
	Method          string `json:"method"`
	RegisterOptions any    `json:"registerOptions"`
}

type watchers struct {
	Watchers []watcher `json:"watchers"`
}

type watcher struct {
	GlobPattern string `json:"globPattern"`
}

type textEdit struct {
	Range   span   `json:"range"`
	NewText string `json:"newText"`
}

type documentSymbol struct {
	Name           string           `json:"name"`
	Detail         string           `json:"detail,omitempty"`
	Kind           int              `json:"kind"`
	Range          span             `json:"range"`
	SelectionRange span             `json:"selectionRange"`
	Children       []documentSymbol `json:"children,omitempty"`
}

// symbolInformation is for clients without hierarchical symbols.
type symbolInformation struct {
	Name     string   `json:"name"`
	Kind     int      `json:"kind"`
	Location location `json:"location"`
}

type hover struct {
	Contents markup `json:"contents"`
	Range    span   `json:"range"`
}

type markup struct {
	Kind  string `json:"kind"`
	Value string `json:"value"`
}

type completionList struct {
	IsIncomplete bool             `json:"isIncomplete"`
	Items        []completionItem `json:"items"`
}

type completionItem struct {
	Label            string    `json:"label"`
	Kind             int       `json:"kind"`
	Detail           string    `json:"detail,omitempty"`
	Documentation    *markup   `json:"documentation,omitempty"`
	SortText         string    `json:"sortText,omitempty"`
	InsertTextFormat int       `json:"insertTextFormat,omitempty"`
	TextEdit         *textEdit `json:"textEdit,omitempty"`
}

type cancelParams struct {
	ID json.RawMessage `json:"id"`
}
