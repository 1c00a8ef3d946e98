package crossref

import (
	"fmt"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/hclfile"
)

// checkEncryption tells of upstreams whose headers bring a secret to where others can read
// it, which production mode does not allow.
func (c *checker) checkEncryption() {
	d := diag.Diagnostic{Severity: diag.Warning, Code: "unencrypted-secret", Detail: "write https://; where its host is one of your own network, say so with private_networks = true"}
	demanded := ""
	if c.config.Server.Mode == hclfile.Production {
		d.Severity, demanded = diag.Error, ", and production mode demands https"
	}
	for i := range c.config.Upstreams {
		u := &c.config.Upstreams[i]
		if header := u.Unencrypted(); header != "" {
			d.Range, d.Summary = u.PlaceRange, fmt.Sprintf("the header %q brings a secret to this server unencrypted%s", header, demanded)
			c.report(d)
		}
	}
}
