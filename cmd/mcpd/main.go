// Command mcpd serves tools that are written in HCL and JavaScript to AI
// agents over the Model Context Protocol. One file holds each verb; env.go is
// the only place where the process meets the outside world.
package main

import (
	"os"
	"time"
)

func main() {
	// Scripts, logs and tests see the same time on every machine.
	time.Local = time.UTC
	os.Exit(run(processEnv(), os.Args[1:]))
}
