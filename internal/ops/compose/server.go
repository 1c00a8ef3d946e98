package compose

import (
	"fmt"

	"github.com/mcpd/mcpd/internal/language/container"
)

// Where mcpd finds its files in a container. The folders of the state and the
// socket are made by mcpd below what is mounted, since nobody else may write
// there.
const (
	configFolder = "/etc/mcpd/config"
	configPath   = configFolder + "/" + configFile
	lockPath     = configFolder + "/" + lockFile
	configFile   = "mcpd.hcl"
	lockFile     = "mcpd.lock" // mcpd looks for it in the folder of the former
	toolsFolder  = "/etc/mcpd/tools.d"
	stateFolder  = "/var/lib/mcpd"
	statePath    = stateFolder + "/state/mcpd.db"
	runFolder    = "/run/mcpd"
	controlPath  = runFolder + "/control/mcpd.sock"
	stateVolume  = container.StateVolume
)

const (
	// grace is what mcpd is given to stop: longer than its --grace, which is 10 s.
	grace = 20 // seconds
	// tasks are the processes and threads of mcpd, and of an upstream.
	serverTasks, upstreamTasks = 512, 256
)

// arguments returns those of mcpd in a container.
func (d *Deployment) arguments() []string {
	state := "memory"
	if d.State {
		state = statePath
	}
	list := []string{
		"serve", "--config", configPath, "--tools", toolsFolder, "--state", state, "--control", controlPath,
		"--listen", fmt.Sprintf("0.0.0.0:%d", d.Port), "--log-format", "json",
	}
	if d.Insecure {
		list = append(list, "--insecure-listen")
	}
	return list
}
