// The Go SDK's part of the federation test of .ci/federation:
//
//	gosdk lab ADDRESS
//	gosdk tour MODULES REQUESTS REVISION HOME URL WEB LAB
//
// The first is an upstream server. The second is a client: it makes the
// requests of the file REQUESTS to each server directly and through the mcpd at
// URL, and compares the results. Its last line is the number of comparisons.
package main

import (
	"context"
	"fmt"
	"os"
	"time"
)

// patience is the timeout of a tour, for a busy machine.
const patience = 3 * time.Minute

func main() {
	var err error
	switch args := os.Args[1:]; {
	case len(args) == 2 && args[0] == "lab":
		err = serveLab(args[1])
	case len(args) == 8 && args[0] == "tour":
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		err = tour(ctx, setting{args[1], args[2], args[3], args[4], args[5], args[6], args[7]})
	default:
		fmt.Fprintln(os.Stderr, "usage: gosdk lab ADDRESS | tour MODULES REQUESTS REVISION HOME URL WEB LAB")
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gosdk:", err)
		os.Exit(1)
	}
}
