package examples_test

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// directives holds every directive of the unit by section and name. Another test checks
// a value of "*".
var directives = map[string]string{
	"Unit.Description": "*", "Unit.Documentation": "*", "Unit.Wants": "network-online.target", "Unit.After": "network-online.target",
	"Unit.StartLimitIntervalSec": "60", "Unit.StartLimitBurst": "5",
	"Install.WantedBy": "multi-user.target",

	"Service.Type": "notify-reload", "Service.NotifyAccess": "main", "Service.WatchdogSec": "60", "Service.ExecStart": "*",
	"Service.TimeoutStartSec": "60", "Service.TimeoutStopSec": "20", "Service.KillMode": "mixed",
	"Service.Restart": "on-failure", "Service.RestartSec": "1", "Service.RestartPreventExitStatus": "2", "Service.OOMPolicy": "continue",

	"Service.DynamicUser": "yes", "Service.UMask": "0077",
	"Service.StateDirectory": "mcpd", "Service.StateDirectoryMode": "0700", "Service.RuntimeDirectory": "mcpd", "Service.RuntimeDirectoryMode": "0700",
	"Service.MemoryMax": "4G", "Service.TasksMax": "512", "Service.LimitNOFILE": "16384",

	"Service.NoNewPrivileges": "yes", "Service.CapabilityBoundingSet": "", "Service.AmbientCapabilities": "",
	"Service.ProtectSystem": "strict", "Service.ProtectHome": "yes", "Service.PrivateTmp": "yes", "Service.PrivateDevices": "yes", "Service.PrivateIPC": "yes",
	"Service.ProtectClock": "yes", "Service.ProtectControlGroups": "yes", "Service.ProtectHostname": "yes", "Service.ProtectKernelLogs": "yes",
	"Service.ProtectKernelModules": "yes", "Service.ProtectKernelTunables": "yes", "Service.LockPersonality": "yes", "Service.MemoryDenyWriteExecute": "yes",
	"Service.RemoveIPC": "yes", "Service.RestrictAddressFamilies": "AF_UNIX AF_INET AF_INET6", "Service.RestrictNamespaces": "yes",
	"Service.RestrictRealtime": "yes", "Service.RestrictSUIDSGID": "yes", "Service.SystemCallArchitectures": "native",
	"Service.SystemCallFilter":      "@system-service seccomp landlock_create_ruleset landlock_add_rule landlock_restrict_self",
	"Service.SystemCallErrorNumber": "EPERM",
}

// parseUnit returns the directives of a unit by section and name.
func parseUnit(t *testing.T, text []byte) map[string]string {
	t.Helper()
	read, section := map[string]string{}, ""
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		line := lines.Text()
		name, value, assigned := strings.Cut(line, "=")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "[") && strings.HasSuffix(line, "]"):
			section = strings.Trim(line, "[]")
		case !assigned:
			t.Errorf("%q is not a directive", line)
		default:
			if _, twice := read[section+"."+name]; twice {
				t.Errorf("%s occurs twice", name)
			}
			read[section+"."+name] = value
		}
	}
	return read
}

func unitFile(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile("systemd/mcpd.service")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestUnit_restrictions(t *testing.T) {
	got := parseUnit(t, unitFile(t))
	for name, value := range directives {
		if value == "*" && got[name] != "" {
			got[name] = "*"
		}
	}
	if diff := cmp.Diff(directives, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestUnit_systemdAnalyze checks with systemd that the unit is valid, and its exposure
// score of 100.
func TestUnit_systemdAnalyze(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("SKIPPED: systemd-analyze is not installed")
	}
	// The program is not installed here, and some machines have a systemd older than
	// Type=notify-reload.
	text := bytes.ReplaceAll(unitFile(t), []byte("ExecStart=mcpd serve"), []byte("ExecStart=/bin/true serve"))
	text = bytes.ReplaceAll(text, []byte("Type=notify-reload"), []byte("Type=notify"))
	path := filepath.Join(t.TempDir(), "mcpd.service")
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"verify", path}, {"security", "--offline=true", "--threshold=20", "--no-pager", path}} {
		out, err := exec.Command(analyze, args...).CombinedOutput()
		if err != nil || args[0] == "verify" && len(out) > 0 {
			t.Errorf("systemd-analyze %s: %v\n%s", args[0], err, out)
		}
	}
}
