//go:build !unix

package supervisor

import "os"

func codeOf(state *os.ProcessState) int { return state.ExitCode() }
