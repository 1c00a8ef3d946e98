// Package configcheck checks what the definitions of several files say of each
// other: that names are defined once, that what is named exists, and that no
// tool file grants more than the operator's ceiling. It compiles nothing.
package configcheck
