package container

import (
	"strings"
	"testing"
)

// Each rule has a text that just passes, and one that just fails.
func TestRules(t *testing.T) {
	long, digest := strings.Repeat("a", 63), "@sha256:"+strings.Repeat("0a", 32)
	for _, c := range []struct {
		rule string
		is   func(string) bool
		good []string
		bad  []string
	}{
		{"label", IsLabel, []string{"a", "a-1", long}, []string{"", "A", "1a", "a-", "-a", "a_b", "a.b", long + "a", "a\n"}},
		{"image", IsImage,
			[]string{"a", "a:1", "a" + digest, "x.example.com:5000/a/b__c:v1" + digest},
			[]string{"", "A", "a:", "a b", "a@sha256:0a", "a//b", "http://a", "a\n", strings.Repeat("a", maxPath+1)}},
		{"image that moves", HasMutableTag,
			[]string{"a", "a:latest", "x.example.com:5000/a", "x.example.com:5000/a/b:latest"},
			[]string{"a:1", "a" + digest, "a:latest" + digest, "x.example.com:5000/a:v1", "a:latest-1"}},
		{"path of a URL", IsURLPath, []string{"/", "/mcp?a=b", "/%20"}, []string{"", "mcp", "/a b", "/a#b", "/$a", "/é", "/" + strings.Repeat("a", maxPath)}},
		{"secret", IsSecret, []string{"a", "_a.b-c", long}, []string{"", ".a", "-a", "a/b", long + "a"}},
		{"text", IsText, []string{"", "é\n", strings.Repeat("a", MaxText+1)}, []string{"\x00", "\xff"}},
		{"file", IsFile, []string{"a", "./a", "../a", "/", "/a b$"}, []string{"", "a/", "a/../b", "a\n", "\xff", strings.Repeat("a", maxPath+1)}},
		{"folder", IsFolder,
			[]string{"/a", "/a.b/@c", "/etc/x", "/run/x", "/devices"},
			[]string{"", "/", "a", "/a/", "/a/..", "/a b", "/proc", "/dev/x", "/run", "/run/secrets/x", "/etc", "/etc/mcpd", "/" + strings.Repeat("a", maxPath)}},
	} {
		for _, text := range c.good {
			if !c.is(text) {
				t.Errorf("%.80q is not a valid %s", text, c.rule)
			}
		}
		for _, text := range c.bad {
			if c.is(text) {
				t.Errorf("%.80q is a valid %s", text, c.rule)
			}
		}
	}
}

func TestURL(t *testing.T) {
	if got := URL("Git_Hub", 8082, "/mcp/x"); got != "http://git-hub:8082/mcp/x" {
		t.Errorf("got %s", got)
	}
}

func TestIsPort_privileged(t *testing.T) {
	if IsPort(MinPort-1) || !IsPort(MinPort) || !IsPort(MaxPort) || IsPort(MaxPort+1) {
		t.Error("IsPort accepts other ports")
	}
	for host, taken := range map[string]bool{"mcpd": true, "front": true, "localhost": true, "search": false} {
		if (ReservedBy(host) != "") != taken {
			t.Errorf("%s: %q", host, ReservedBy(host))
		}
	}
}
