package main

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpd/mcpd/internal/auth/apikey"
)

// keysFile is the default file of keys.
const keysFile = "./keys.json"

func newKey(e env) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "key",
		Short: "Create, list and revoke API keys",
		Long: `Key edits the file of API keys that auth "api_key" blocks of mcpd.hcl name. A running
server applies the change within a second.`,
		Example: `  mcpd key new ci --scopes crm:read --expires 90d
  mcpd key list
  mcpd key revoke ID`,
		Args: cobra.ArbitraryArgs,
		RunE: refuseVerb("new, list or revoke"),
	}
	cmd.PersistentFlags().StringVar(&file, "file", keysFile, "read and write the keys in `FILE`")
	_ = cmd.MarkPersistentFlagFilename("file")
	cmd.AddCommand(newKeyNew(e, &file), newKeyList(e, &file), newKeyRevoke(e, &file))
	return cmd
}

func newKeyNew(e env, file *string) *cobra.Command {
	var r apikey.Record
	var expires string
	cmd := &cobra.Command{
		Use:   "new NAME",
		Short: "Create a key and print it once",
		Long: `New creates a key, adds its record to the file and prints the key on standard output.
This is the only time that the key is shown: the file stores a hash.`,
		Example: `  mcpd key new ci --scopes crm:read --expires 90d
  mcpd key new desktop --principal ada --groups leads`,
		Args: oneOperand("NAME"),
		RunE: func(_ *cobra.Command, args []string) error {
			r.Name, r.Principal = args[0], cmp.Or(r.Principal, args[0])
			r.Created = e.now().UTC().Truncate(time.Second)
			if expires != "" {
				life, err := parseLife(expires)
				if err != nil {
					return err
				}
				r.Expires = r.Created.Add(life)
			}
			k, err := apikey.Add(e.resolve(*file), r)
			if err != nil {
				return findingsError("%v", err)
			}
			fmt.Fprintf(e.stderr, "stored key %s in %s; it is shown only once:\n", k.ID, sanitize(*file))
			if _, err := fmt.Fprintln(e.stdout, k.Plaintext()); err != nil {
				return err
			}
			return tellNamesakes(e, *file, k.ID, r.Name)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&r.Principal, "principal", "", "authenticate as the principal `ID` (default NAME)")
	flags.StringSliceVar(&r.Scopes, "scopes", nil, "grant `SCOPES`, separated by commas")
	flags.StringSliceVar(&r.Groups, "groups", nil, "put the principal in `GROUPS`, separated by commas")
	flags.StringVar(&r.Agent, "agent", "", "bind the key to the agent `ID`")
	flags.StringVar(&expires, "expires", "", "let the key expire after `TIME`, such as 90d or 12h (default never)")
	return cmd
}

// tellNamesakes prints the active keys with the same name as a new key. The user may
// have meant to replace them.
func tellNamesakes(e env, file, id, name string) error {
	ring, err := apikey.Load(e.resolve(file))
	if err != nil {
		return findingsError("%v", err)
	}
	for _, row := range keyRows(ring.Records(), e.now()) {
		if row.Name != name || row.ID == id || row.State != "active" {
			continue
		}
		revoke := "mcpd key revoke " + row.ID
		if file != keysFile {
			revoke += " --file " + sanitize(file)
		}
		fmt.Fprintf(e.stderr, "another key named %s is still active; to revoke it: %s\n", sanitize(name), revoke)
	}
	return nil
}

// maxLife is the longest validity of a key that expires.
const maxLife = 10 * 365 * 24 * time.Hour

// parseLife parses the validity of a key: a Go duration or a number of days.
func parseLife(text string) (time.Duration, error) {
	life, err := time.ParseDuration(text)
	if number, ok := strings.CutSuffix(text, "d"); ok {
		days, wrong := strconv.ParseUint(number, 10, 16)
		life, err = time.Duration(days)*24*time.Hour, wrong
	}
	if err != nil || life < time.Second || life > maxLife {
		return 0, usageError("--expires takes a duration from 1s to 3650d, such as 90d or 12h")
	}
	return life, nil
}

func newKeyRevoke(e env, file *string) *cobra.Command {
	return &cobra.Command{
		Use:   "revoke ID",
		Short: "Revoke a key",
		Long: `Revoke makes the server reject a key from now on. It cannot be undone. Run mcpd key
list to find the ID.`,
		Example: `  mcpd key revoke ID
  mcpd key revoke ID --file ./keys.json`,
		Args: oneOperand("ID"),
		RunE: func(_ *cobra.Command, args []string) error {
			id := args[0]
			if k, err := apikey.Parse(id); err == nil {
				id = k.ID // the key itself is accepted too
			}
			r, err := apikey.Revoke(e.resolve(*file), id, e.now().UTC().Truncate(time.Second))
			if errors.Is(err, apikey.ErrUnknown) {
				return findingsError("no key with that ID in %s; find the ID with mcpd key list", *file)
			}
			if err != nil {
				return findingsError("%v", err)
			}
			_, err = fmt.Fprintf(e.text(), "revoked %s (%s)\n", r.ID, r.Name)
			return err
		},
	}
}

func newKeyList(e env, file *string) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the keys without their secrets",
		Long:  `List prints the ID, the name, the principal and the state of each key.`,
		Example: `  mcpd key list
  mcpd key list --json`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			ring, err := apikey.Load(e.resolve(*file))
			if err != nil {
				return findingsError("%v", err)
			}
			rows := keyRows(ring.Records(), e.now())
			if asJSON {
				return printJSON(e.text(), rows)
			}
			return printKeys(e, rows)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print all fields of each key as JSON")
	return cmd
}

// keyRow is the JSON output for a key. It is a contract for scripts.
type keyRow struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Principal string    `json:"principal"`
	State     string    `json:"state"` // active, expired or revoked
	Scopes    []string  `json:"scopes"`
	Groups    []string  `json:"groups"`
	Agent     string    `json:"agent,omitempty"`
	Created   time.Time `json:"created"`
	Expires   time.Time `json:"expires,omitzero"`
	Revoked   time.Time `json:"revoked,omitzero"`
}

func keyRows(records []apikey.Record, now time.Time) []keyRow {
	rows := make([]keyRow, 0, len(records))
	for _, r := range records {
		rows = append(rows, keyRow{
			ID: r.ID, Name: r.Name, Principal: r.Principal, State: keyState(&r, now), Scopes: append([]string{}, r.Scopes...),
			Groups: append([]string{}, r.Groups...), Agent: r.Agent, Created: r.Created, Expires: r.Expires, Revoked: r.Revoked,
		})
	}
	return rows
}

// keyState returns active, expired or revoked.
func keyState(r *apikey.Record, now time.Time) string {
	switch {
	case !r.Revoked.IsZero():
		return "revoked"
	case !r.Expires.IsZero() && !now.Before(r.Expires):
		return "expired"
	}
	return "active"
}

func printKeys(e env, rows []keyRow) error {
	w := tabwriter.NewWriter(e.text(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tNAME\tPRINCIPAL\tSTATE\tEXPIRES")
	for _, r := range rows {
		expires := "never"
		if !r.Expires.IsZero() {
			expires = r.Expires.Format(time.DateOnly)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", r.ID, r.Name, r.Principal, r.State, expires)
	}
	return w.Flush()
}

// oneOperand requires exactly one operand.
func oneOperand(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 || args[0] == "" {
			return usageError("%s takes one %s; see %[1]s --help", cmd.CommandPath(), name)
		}
		return nil
	}
}

// needs requires between least and most operands. Otherwise the error is text.
func needs(least, most int, text string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			return usageError("%s", text)
		}
		return nil
	}
}

// refuseVerb rejects a command without one of its verbs.
func refuseVerb(names string) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return usageError("%s has no verb %q; use %s", cmd.CommandPath(), args[0], names)
		}
		return usageError("%s needs a verb; use %s", cmd.CommandPath(), names)
	}
}
