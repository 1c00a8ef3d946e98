package compose

import (
	_ "embed"
	"strings"
)

//go:embed mcpd.service.tmpl
var unitText string

// unit returns the unit of systemd for an mcpd that runs on this machine without
// a container. It is the one of examples/systemd, with the credentials, the
// variables and the memory of the deployment.
func unit(d *Deployment) (File, error) {
	state := "memory"
	if d.State {
		state = "%S/mcpd/mcpd.db"
	}
	var assignments, withheld []string
	for _, v := range d.Env {
		if v.Secret != "" {
			withheld = append(withheld, v.Name)
			continue
		}
		assignments = append(assignments, assigned(v))
	}
	var elsewhere []string
	for i := range d.Upstreams {
		elsewhere = append(elsewhere, d.Upstreams[i].host())
	}
	return filled(unitFile, unitText, map[string]any{
		"Written": written, "State": state, "Reads": d.Reads, "Environment": assignments, "Withheld": strings.Join(withheld, ", "),
		"Memory": unitAmount(d.Memory), "Locked": d.LockText != nil, "Elsewhere": strings.Join(elsewhere, ", "),
	})
}

// unitAmount returns bytes as systemd has them: in GiB or MiB where these are
// whole.
func unitAmount(bytes int64) string {
	if bytes%(1<<30) == 0 {
		return amount(bytes>>10, "G", "")
	}
	return amount(bytes, "M", "")
}

// assigned returns a variable as one word of Environment= (systemd.exec(5)): in
// quotes, with the escapes of C, and without specifiers. Its only control characters
// are tabs and line ends.
func assigned(v Variable) string {
	var b strings.Builder
	b.WriteString(`"` + v.Name + "=")
	for _, c := range v.Value {
		switch c {
		case '"', '\\':
			b.WriteString(`\` + string(c))
		case '\n':
			b.WriteString(`\n`)
		case '%':
			b.WriteString("%%")
		default:
			b.WriteRune(c)
		}
	}
	return b.String() + `"`
}
