package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/ops/control"
)

func newToken(e env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "List and drop the OAuth tokens of users",
		Long: `Token lists and drops the stored OAuth tokens of users, for secrets with an
authorize_url. It asks the running server; if none runs, it opens the state file, or
the database of the state block. It never prints a token.`,
		Example: `  mcpd token list
  mcpd token drop --principal ada
  mcpd token drop --principal ada --secret crm_token`,
		Args: cobra.ArbitraryArgs,
		RunE: refuseVerb("list or drop"),
	}
	cmd.AddCommand(newTokenList(e), newTokenDrop(e))
	return cmd
}

func newTokenList(e env) *cobra.Command {
	var t tokens
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the owners of stored tokens",
		Long:  `List prints the secret, the principal and the dates of each stored token.`,
		Example: `  mcpd token list
  mcpd token list --json`,
		Args: noOperand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			got, err := t.ask(cmd.Context(), e, control.Tokens)
			if err != nil {
				return err
			}
			if t.asking.asJSON {
				return printJSON(e.text(), got.Tokens)
			}
			return printTokens(e, got.Tokens)
		},
	}
	t.add(cmd)
	return cmd
}

func newTokenDrop(e env) *cobra.Command {
	var t tokens
	cmd := &cobra.Command{
		Use:   "drop",
		Short: "Drop the tokens of a principal or of a secret",
		Long: `Drop deletes the stored tokens of a principal, of a secret, or of a principal for one
secret. The users must authorize again. A running server forgets the tokens before drop
returns, and other servers with the same database within a second. The authorization server is not notified: revoke the access there too.`,
		Example: `  mcpd token drop --principal ada
  mcpd token drop --principal ada --secret crm_token`,
		Args: noOperand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if t.which.Principal == "" && t.which.Secret == "" {
				return usageError("name the tokens to drop with --principal ID, --secret NAME or both; mcpd token list shows them")
			}
			got, err := t.ask(cmd.Context(), e, control.DropTokens)
			if err != nil {
				return err
			}
			return t.dropped(e, got)
		},
	}
	t.add(cmd)
	flags := cmd.Flags()
	flags.StringVar(&t.which.Principal, "principal", "", "drop the tokens of the principal `ID`, of every kind and issuer")
	flags.StringVar(&t.which.Secret, "secret", "", "drop the tokens of the secret `NAME`, including its earlier definitions")
	flags.StringVar(&t.which.Kind, "kind", "", "drop only tokens of principals of this `KIND`: key, jwt, mtls or local")
	flags.StringVar(&t.which.Issuer, "issuer", "", "drop only tokens of principals of this `ISSUER`")
	return cmd
}

// dropped prints the dropped tokens. It returns an error if there were none.
func (t *tokens) dropped(e env, got control.TokensResult) error {
	if t.asking.asJSON {
		if err := printJSON(e.text(), got.Tokens); err != nil {
			return err
		}
	} else {
		for _, row := range got.Tokens {
			if _, err := fmt.Fprintf(e.text(), "dropped %s of %s\n", row.Secret, principalOfToken(row)); err != nil {
				return err
			}
		}
	}
	switch {
	case got.Failure != "":
		return findingsError("some tokens were not dropped: %s", got.Failure)
	case len(got.Tokens) == 0:
		return findingsError("no matching token at %s; mcpd token list shows all tokens", t.at)
	}
	return nil
}

func storedTokens(found []engine.UserToken) []control.Token {
	rows := make([]control.Token, 0, len(found))
	for _, t := range found {
		rows = append(rows, control.Token{
			Secret: t.Secret, Definition: t.Definition, Principal: t.ID, Kind: string(t.Kind), Issuer: t.Issuer,
			Given: whole(t.GrantedAt), Renewed: whole(t.RefreshedAt), Until: whole(t.ExpiresAt),
		})
	}
	return rows
}

// whole returns a time in UTC, truncated to seconds.
func whole(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }

// principalOfToken describes the principal of a token.
func principalOfToken(t control.Token) string {
	if t.Issuer != "" {
		return fmt.Sprintf("%s (%s, by %s)", t.Principal, t.Kind, t.Issuer)
	}
	return fmt.Sprintf("%s (%s)", t.Principal, t.Kind)
}

func printTokens(e env, tokens []control.Token) error {
	w := tabwriter.NewWriter(e.text(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SECRET\tPRINCIPAL\tKIND\tSINCE\tRENEWED\tISSUER")
	for _, r := range tokens {
		since := "unknown"
		if !r.Given.IsZero() {
			since = r.Given.Format(time.DateOnly)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", r.Secret, r.Principal, r.Kind, since, r.Renewed.Format(time.DateOnly), r.Issuer)
	}
	return w.Flush()
}

// tokenPatience is the timeout of a token request.
const tokenPatience = time.Minute

// tokens holds the flags of the verbs of token.
type tokens struct {
	asking controlClientFlags
	state  string
	which  control.TokenFilter
	// at is the socket, file or database that was used.
	at     string
	inFile bool
}

func (t *tokens) add(cmd *cobra.Command) {
	t.asking.add(cmd)
	cmd.Flags().StringVar(&t.state, "state", "", "open the state `FILE`, or the database postgres://…, if no server answers (default the state of these files)")
	_ = cmd.MarkFlagFilename("state")
}

// ask sends the request to the running server, or opens the stored state if none runs.
func (t *tokens) ask(ctx context.Context, e env, do control.Action) (got control.TokensResult, err error) {
	r := control.Request{Action: do, TokenFilter: t.which}
	if t.at = t.asking.control.path(e, &t.asking.files); t.at != "" {
		_, err = callControl(ctx, e.resolve(t.at), r, tokenPatience, &got)
		if err == nil {
			return got, nil
		}
		if !errors.Is(err, control.ErrNoServer) {
			return got, findingsError("%v", err)
		}
	}
	return t.open(ctx, e, r)
}

func (t *tokens) open(ctx context.Context, e env, r control.Request) (got control.TokensResult, err error) {
	got.Tokens = []control.Token{}
	s, err := t.server(ctx, e)
	if s == nil || err != nil {
		return got, err // without a server nothing was stored yet
	}
	defer func() {
		if failed := s.Close(ctx); failed != nil && err == nil {
			err = findingsError("close %s: %v", t.at, failed)
		}
	}()
	if _, err := s.Inside().State(); err != nil {
		advice := ""
		if t.inFile {
			advice = "; if a running server uses the file, name its socket with --control"
		}
		return got, findingsError("%v%s", err, advice)
	}
	got, err = tokensOf(s, r)
	if err != nil {
		return got, findingsError("%v", err)
	}
	return got, nil
}

// server returns a server with the stored state, or nil if the default file does not exist.
func (t *tokens) server(ctx context.Context, e env) (*engine.Server, error) {
	options := engine.Options{Name: "mcpd", Extensions: extensions(), StateExisting: true}
	switch {
	case isDatabase(t.state):
		t.at, options.StateURL = "the database", t.state
		return engine.New(options)
	case t.state == inMemory:
		return nil, usageError("a server with --state memory has no state file; name its socket with --control while it runs")
	case t.state != "":
		t.at = t.state
	case t.asking.files.dir != "": // whose bundle may name a database
		return nil, usageError("no server answers in %s; name the state of its bundle with --state: a file such as %s, or the database", t.asking.files.dir, t.asking.files.state(e))
	default:
		if s, err := t.fromBlock(ctx, e); s != nil || err != nil {
			return s, err
		}
		if t.at = t.asking.files.state(e); t.at == "" {
			return nil, usageError("no default directory for the state file; name the file with --state FILE")
		}
	}
	if _, err := e.disk.stat(t.at); errors.Is(err, fs.ErrNotExist) {
		if t.state != "" {
			return nil, usageError("file %s not found", t.state)
		}
		return nil, nil
	}
	t.inFile, options.StatePath, options.Now = true, e.resolve(t.at), e.now
	return engine.New(options)
}

// fromBlock returns a server with the state of the state block, or nil without a block. The files
// must be valid, since the URL of the block may contain secrets.
func (t *tokens) fromBlock(ctx context.Context, e env) (*engine.Server, error) {
	text, err := e.disk.readFile(t.asking.files.config)
	if err != nil || !bytes.Contains(text, []byte("state")) {
		return nil, nil // the state is in a file
	}
	s, err := t.asking.files.open(e, engine.Options{Mode: engine.Offline, StateExisting: true})
	if err != nil {
		return nil, err
	}
	report, err := s.Load(ctx)
	if err == nil && s.Snapshot().Inside().Definitions().Config.State != nil {
		t.at = "the database of the state block"
		return s, nil
	}
	if err != nil {
		err = errors.Join(loadError(report, t.asking.files.config, err), printProblems(e, report))
	}
	return nil, errors.Join(err, s.Close(ctx))
}

func tokensOf(s *engine.Server, r control.Request) (control.TokensResult, error) {
	if r.Action == control.Tokens {
		found, err := s.UserTokens()
		return control.TokensResult{Tokens: storedTokens(found)}, err
	}
	found, err := s.DropUserTokens(engine.UserToken{Secret: r.TokenFilter.Secret, ID: r.TokenFilter.Principal, Kind: identity.Kind(r.TokenFilter.Kind), Issuer: r.TokenFilter.Issuer})
	got := control.TokensResult{Tokens: storedTokens(found)}
	if err != nil {
		got.Failure = err.Error()
	}
	return got, nil
}

func answerTokens(s *engine.Server, r control.Request) (any, error) {
	got, err := tokensOf(s, r)
	if err != nil {
		return nil, err
	}
	return answerOf(got, nil, nil, r)
}
