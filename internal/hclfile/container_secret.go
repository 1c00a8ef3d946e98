package hclfile

import (
	"fmt"
	"path"
	"slices"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/container"
	"github.com/mcpd/mcpd/internal/grant"
)

// holds reports whether a variable of a container can have a value: text, or one secret
// that comes from the environment, from where Compose and Kubernetes pass it on.
func (d *decoder) holds(x hclsyntax.Expression, parts []grant.Part, secrets []Secret) bool {
	if !slices.ContainsFunc(parts, func(p grant.Part) bool { return p.Secret != "" || p.Base64 != nil }) {
		return true
	}
	if len(parts) > 1 || parts[0].Secret == "" {
		d.fail("misplaced-secret", d.f.rng(x.Range()), "a secret stands alone in a variable of a container", "write secret.NAME, and have the secret be the whole value")
		return false
	}
	i := slices.IndexFunc(secrets, func(s Secret) bool { return s.Name == parts[0].Secret })
	if i < 0 || secrets[i].Env != "" || secrets[i].Unsaid() {
		return true
	}
	detail := "use a secret with \"env\""
	if secrets[i].File != "" {
		detail += fmt.Sprintf(", or have the container read it: reads = [%q]", secrets[i].Name)
	}
	d.fail("misplaced-secret", d.f.rng(x.Range()), fmt.Sprintf("the secret %q does not come from the environment", secrets[i].Name), detail, diag.Note{Range: secrets[i].Range, Message: "the secret"})
	return false
}

// Unsaid reports whether the block does not say where the secret comes from.
func (s *Secret) Unsaid() bool {
	return s.Env == "" && s.File == "" && s.Command == nil && s.OAuth == nil
}

// containerReads decodes the names of the secrets that a container reads as files.
func (d *decoder) containerReads(body *hclsyntax.Body, secrets []Secret) (names []string) {
	list, _ := d.strings(body, "reads")
	if !d.few(body, "reads", len(list)) {
		return nil
	}
	taken := named{}
	for _, e := range list {
		if _, known := d.secret(e.text, e.where); !known || !d.claimName(taken, e.text, e.where, "%q stands twice in \"reads\"", e.text) {
			continue
		}
		names = append(names, e.text)
		i := slices.IndexFunc(secrets, func(s Secret) bool { return s.Name == e.text })
		if i >= 0 && secrets[i].File == "" && !secrets[i].Unsaid() {
			d.fail("misplaced-secret", d.f.rng(e.where), fmt.Sprintf("the secret %q does not come from a file", e.text),
				fmt.Sprintf("write file = \"%s\" in its block, or pass it in \"env\"", path.Join(container.SecretFolder, e.text)), diag.Note{Range: secrets[i].Range, Message: "the secret"})
		}
	}
	return names
}
