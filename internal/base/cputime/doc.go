// Package cputime tells how much processor time the process has used, which a
// budget can be held to on a machine that does other things too.
package cputime
