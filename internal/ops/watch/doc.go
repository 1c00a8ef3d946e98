// Package watch tells when folders and files on disk may have changed.
//
// A [Watcher] sees through the operating system's notifications, or by looking
// every second where there are none, waits until all is quiet, and then sends
// one [Change]: so an editor that saves by rename, a Kubernetes ConfigMap that
// swaps its ..data link, and a checkout of a thousand files are one Change each.
// Quiet is when nothing has happened for a while, which grows with the pauses
// of who writes, and git holds no lock.
//
// The package does not say what changed, only what to read again: it knows
// nothing of what the files mean, and never opens them while notifications
// work. It is the only package that may import fsnotify.
package watch
