// Package systemd tells the service manager how the service is, as sd_notify(3)
// has it: that it is ready, reloads, stops, and is alive.
//
// A [Notifier] sends the messages; a [Pulse] sends one again and again for as
// long as a check finds that the service does its work. Both are made of
// [Variables], by which the manager says where it listens. Without them there is
// nothing to tell, and nothing is sent.
//
// The package starts no service, reads no environment, and takes no sockets from
// the manager.
//
// It is written by hand: the usual library reads the environment of the process, sets no
// deadline for a write, and has no loop for the watchdog.
package systemd
