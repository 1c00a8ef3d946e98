// Package container says what the containers of upstream servers may be called,
// hold and take.
//
// A container block of the operator's file and the files that are written of it
// have one grammar: images as Docker and Kubernetes know them, names that are
// DNS labels, folders that can be mounted. [Host] and [URL] are where mcpd finds
// the server of an upstream.
//
// The package only looks at texts and numbers: it knows neither the files that
// they come from nor those that they go into, and says nothing of what is wrong.
package container
