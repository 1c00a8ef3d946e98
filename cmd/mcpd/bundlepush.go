package main

import (
	"fmt"
	"path/filepath"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/mcpd/mcpd/internal/ops/bundle/oci"
)

func newBundlePush(e env) *cobra.Command {
	var a registryAuth
	cmd := &cobra.Command{
		Use:   "push FILE REFERENCE",
		Short: "Push a bundle to an OCI registry",
		Long: `Push stores a bundle at a registry as an artifact, and makes the tag of REFERENCE name it.
Servers with mcpd serve --bundle REFERENCE take it from there.

Credentials come from the configuration file of Docker, or from --registry-auth FILE. A
registry on this machine is asked over plain HTTP.`,
		Example: `  mcpd bundle push shop.bundle oci://ghcr.io/acme/shop:stable`,
		Args:    needs(2, 2, "mcpd bundle push takes a bundle and a reference such as oci://ghcr.io/acme/shop:stable; see mcpd bundle push --help"),
		RunE: func(cmd *cobra.Command, args []string) error {
			data, b, err := readBundle(e, args[0])
			if err != nil {
				return err
			}
			repository, err := a.open(e, args[1])
			if err != nil {
				return err
			}
			digest, err := repository.Push(cmd.Context(), data, b.Manifest)
			if err != nil {
				return findingsError("%v", err)
			}
			_, err = fmt.Fprintf(e.stdout, "pushed %s: %s, serial %d, %s, %s\n", repository, b.Manifest.Name, b.Manifest.Serial, count(len(b.Signers()), "signature"), digest)
			return err
		},
	}
	a.add(cmd)
	return cmd
}

// registryAuth holds the flag for credentials of registries.
type registryAuth struct{ file string }

func (a *registryAuth) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.file, "registry-auth", "", "read credentials of registries from `FILE` (default the configuration file of Docker)")
	_ = cmd.MarkFlagFilename("registry-auth")
}

// open returns the repository of a reference.
func (a *registryAuth) open(e env, reference string) (*oci.Repository, error) {
	file := defaultRegistryAuth(e)
	if a.file != "" {
		file = e.resolve(a.file)
		if _, err := e.disk.stat(file); err != nil {
			return nil, usageError("--registry-auth: %v", err)
		}
	}
	r, err := oci.Open(reference, file, version())
	if err != nil {
		return nil, usageError("%v", err)
	}
	return r, nil
}

// defaultRegistryAuth returns the file with credentials that other programs use: the file of Podman, if
// its variable is set, and else the file of Docker. It returns "" if there is no home directory.
func defaultRegistryAuth(e env) string {
	if file, _ := e.vars.lookup("REGISTRY_AUTH_FILE"); file != "" {
		return e.resolve(file)
	}
	folder, _ := e.vars.lookup("DOCKER_CONFIG")
	if folder == "" {
		variable := "HOME"
		if runtime.GOOS == "windows" {
			variable = "USERPROFILE"
		}
		home, _ := e.vars.lookup(variable)
		if !filepath.IsAbs(home) {
			return ""
		}
		folder = filepath.Join(home, ".docker")
	}
	return e.resolve(filepath.Join(folder, "config.json"))
}
