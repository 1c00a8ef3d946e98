package overlay

import (
	"slices"
	"testing"
)

func TestProgramsGetWhatTheyNeedToTrustACompanysCertificates(t *testing.T) {
	set := map[string]string{
		"PATH": "/bin", "NODE_EXTRA_CA_CERTS": "/etc/ca.pem", "SSL_CERT_FILE": "/etc/all.pem", "SSL_CERT_DIR": "/etc/certs",
		"HTTPS_PROXY": "http://me:hunter2@proxy", "NODE_OPTIONS": "--require x", "MCPD_UPSTREAM_DEPTH": "2",
	}
	env, depth := environment(func(name string) (string, bool) {
		value, ok := set[name]
		return value, ok
	})
	slices.Sort(env)
	want := []string{"NODE_EXTRA_CA_CERTS=/etc/ca.pem", "PATH=/bin", "SSL_CERT_DIR=/etc/certs", "SSL_CERT_FILE=/etc/all.pem"}
	if !slices.Equal(env, want) || depth != 2 {
		t.Errorf("got %q at depth %d, want %q", env, depth, want)
	}
}
