package main

import (
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
		Long: `Token lists whose OAuth tokens there are, of secrets with an authorize_url, and
drops them. It asks the server that serves these files; where none runs it opens
the file in which that keeps them. It shows no token.`,
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
		Short: "List whose tokens there are, without the tokens",
		Args:  noOperand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			got, err := t.ask(cmd.Context(), e, control.Tokens)
			if err != nil {
				return err
			}
			if t.asking.asJSON {
				return printJSON(e.text(), got.Tokens)
			}
			return got.print(e)
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
		Long: `Drop has no call use the tokens of a principal any more, or those of a secret, or
those of one both name; their users are asked again. A server that runs forgets
them before drop returns. The authorization server is not told: take back there
what it has given, too.`,
		Args: noOperand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if t.which.Principal == "" && t.which.Secret == "" {
				return usage("say whose tokens are to be dropped, by --principal ID, --secret NAME or both; mcpd token list tells which there are")
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
	flags.StringVar(&t.which.Principal, "principal", "", "drop the tokens of the principal of this `ID`, of every kind and issuer")
	flags.StringVar(&t.which.Secret, "secret", "", "drop the tokens of the secret of this `NAME`, of all that it has been")
	flags.StringVar(&t.which.Kind, "kind", "", "of a principal of this `KIND` alone: key, jwt, mtls or local")
	flags.StringVar(&t.which.Issuer, "issuer", "", "of a principal of this `ISSUER` alone")
	return cmd
}

// dropped says which tokens were dropped, and fails when there was none.
func (t *tokens) dropped(e env, got tokenAnswer) error {
	if t.asking.asJSON {
		if err := printJSON(e.text(), got.Tokens); err != nil {
			return err
		}
	} else {
		for _, row := range got.Tokens {
			if _, err := fmt.Fprintf(e.text(), "dropped %s of %s\n", row.Secret, row.who()); err != nil {
				return err
			}
		}
	}
	switch {
	case got.Failure != "":
		return findings("not all was dropped: %s", got.Failure)
	case len(got.Tokens) == 0:
		return findings("there is no such token at %s; mcpd token list tells which there are", t.at)
	}
	return nil
}

// tokenAnswer is what is said of tokens, by a server or by the file itself.
type tokenAnswer struct {
	Tokens []tokenRow `json:"tokens"`
	// Failure is why not all of them could be dropped.
	Failure string `json:"failure,omitempty"`
}

// tokenRow is what a list tells of a token. It is a contract for scripts.
type tokenRow struct {
	Secret     string    `json:"secret"`
	Definition string    `json:"definition"`
	Principal  string    `json:"principal"`
	Kind       string    `json:"kind"`
	Issuer     string    `json:"issuer,omitempty"`
	Given      time.Time `json:"given,omitzero"`
	Renewed    time.Time `json:"renewed,omitzero"`
	Until      time.Time `json:"until,omitzero"`
}

func tokenRows(found []engine.UserToken) []tokenRow {
	rows := make([]tokenRow, 0, len(found))
	for _, t := range found {
		rows = append(rows, tokenRow{
			Secret: t.Secret, Definition: t.Definition, Principal: t.ID, Kind: string(t.Kind), Issuer: t.Issuer,
			Given: whole(t.Given), Renewed: whole(t.Renewed), Until: whole(t.Until),
		})
	}
	return rows
}

// whole returns a time in UTC, in whole seconds.
func whole(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }

// who names the principal of a token.
func (r tokenRow) who() string {
	if r.Issuer != "" {
		return fmt.Sprintf("%s (%s, by %s)", r.Principal, r.Kind, r.Issuer)
	}
	return fmt.Sprintf("%s (%s)", r.Principal, r.Kind)
}

func (a tokenAnswer) print(e env) error {
	w := tabwriter.NewWriter(e.text(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SECRET\tPRINCIPAL\tKIND\tSINCE\tRENEWED\tISSUER")
	for _, r := range a.Tokens {
		since := "unknown"
		if !r.Given.IsZero() {
			since = r.Given.Format(time.DateOnly)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", r.Secret, r.Principal, r.Kind, since, r.Renewed.Format(time.DateOnly), r.Issuer)
	}
	return w.Flush()
}

// tokenPatience is how long a server may take to say whose tokens it has, or to drop them.
const tokenPatience = time.Minute

// tokens are those of users, in a server that runs or in the file that it has left.
type tokens struct {
	asking asking
	state  string
	which  control.Which
	// at is where they were looked for.
	at string
}

func (t *tokens) add(cmd *cobra.Command) {
	t.asking.add(cmd)
	cmd.Flags().StringVar(&t.state, "state", "", "open this `FILE` where no server answers (default that of a server of these files)")
	_ = cmd.MarkFlagFilename("state")
}

// ask asks the server that runs, or the file where none does.
func (t *tokens) ask(ctx context.Context, e env, do control.Verb) (got tokenAnswer, err error) {
	r := control.Request{Do: do, Which: t.which}
	if t.at = t.asking.control.path(e, &t.asking.files); t.at != "" {
		_, err = reach(ctx, e.resolve(t.at), r, tokenPatience, &got)
		if err == nil {
			return got, nil
		}
		if !errors.Is(err, control.ErrNobody) {
			return got, findings("%v", err)
		}
	}
	return t.open(ctx, e, r)
}

func (t *tokens) open(ctx context.Context, e env, r control.Request) (got tokenAnswer, err error) {
	if t.at = t.state; t.at == "" {
		t.at = t.asking.files.state(e)
	}
	switch t.at {
	case inMemory:
		return got, usage("what a server keeps in memory is gone when it ends; name its socket with --control while it runs")
	case "":
		return got, usage("name the file of the server with --state FILE: there is no folder in which it would have one")
	}
	got.Tokens = []tokenRow{}
	if _, err := e.disk.stat(t.at); errors.Is(err, fs.ErrNotExist) {
		if t.state != "" {
			return got, usage("there is no file %s", t.state)
		}
		return got, nil // no server of these files has kept anything
	}
	s, err := engine.New(engine.Options{Name: "mcpd", Extensions: extensions(), StatePath: e.resolve(t.at), Now: e.now})
	if err != nil {
		return got, err
	}
	defer func() {
		if failed := s.Close(ctx); failed != nil && err == nil {
			err = findings("close %s: %v", t.at, failed)
		}
	}()
	if _, err := s.Inside().State(); err != nil {
		return got, findings("%v; a server that runs and has it is asked by its socket, which --control names", err)
	}
	got, err = tokensOf(s, r)
	if err != nil {
		return got, findings("%v", err)
	}
	return got, nil
}

func tokensOf(s *engine.Server, r control.Request) (tokenAnswer, error) {
	if r.Do == control.Tokens {
		found, err := s.UserTokens()
		return tokenAnswer{Tokens: tokenRows(found)}, err
	}
	found, err := s.DropUserTokens(engine.UserToken{Secret: r.Which.Secret, ID: r.Which.Principal, Kind: identity.Kind(r.Which.Kind), Issuer: r.Which.Issuer})
	got := tokenAnswer{Tokens: tokenRows(found)}
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
