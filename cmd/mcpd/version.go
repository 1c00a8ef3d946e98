package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
)

const platform = runtime.GOOS + "/" + runtime.GOARCH

func versionLine() string {
	return fmt.Sprintf("mcpd %s %s %s", version(), runtime.Version(), platform)
}

func newVersion(e env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Long:  "Version prints the version of mcpd, and the Go and the platform that it was built with and for.",
		Args:  noOperand,
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return printJSON(e.stdout, struct {
					Version  string `json:"version"`
					Go       string `json:"go"`
					Platform string `json:"platform"`
				}{version(), runtime.Version(), platform})
			}
			_, err := fmt.Fprintln(e.stdout, versionLine())
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	return cmd
}
