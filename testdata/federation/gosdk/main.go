// The Go SDK's part in the federation that .ci/federation runs:
//
//	gosdk lab ADDRESS
//	gosdk tour MODULES REQUESTS REVISION HOME URL WEB LAB
//
// The first is an upstream server. The second is a client, which makes the requests of
// the file REQUESTS of each server itself and through the mcpd at URL, and wants the same
// of both. Its last line is how much was compared.
package main

import (
	"context"
	"fmt"
	"os"
	"time"
)

// patience bounds a tour, on a machine that has much to do.
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
