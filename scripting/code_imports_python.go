package scripting

import "strings"

// modulesOfPython returns where os, numpy as np ends; 0 where there is no such list.
func (i *leftOut) modulesOfPython(at int) int {
	for ; ; at++ {
		if at = i.dotted(at); at == 0 {
			return 0
		}
		at = i.renamed(at)
		if i.token(at).kind != tokenComma || i.token(at).newline {
			return at
		}
	}
}

// fromOfPython returns where tools import a, b ends; 0 where there is no such thing.
func (i *leftOut) fromOfPython(at int) int {
	relative := at
	for i.token(at).kind == tokenOperator && !i.token(at).newline && strings.Trim(i.token(at).text, ".") == "" {
		at++
	}
	if at == relative || i.token(at).text != "import" {
		if at = i.dotted(at); at == 0 {
			return 0
		}
	}
	t := i.token(at)
	if t.text != "import" || t.newline {
		return 0
	}
	at++
	closing := ""
	switch t := i.token(at); {
	case t.newline:
		return 0
	case t.text == "*":
		return at + 1
	case t.text == "(":
		closing = ")"
		at++
	}
	return i.listed(at, closing)
}

// listed returns where a list of names ends: at the bracket that closes it, unless
// there is none, or with its line.
func (i *leftOut) listed(at int, closing string) int {
	for ; ; at++ {
		t := i.token(at)
		if closing != "" && t.text == closing {
			return at + 1
		}
		if t.kind != tokenWord || t.newline && closing == "" {
			return 0
		}
		at = i.renamed(at + 1)
		switch t := i.token(at); {
		case t.kind == tokenComma && (closing != "" || !t.newline):
		case closing != "" && t.text == closing:
			return at + 1
		case closing == "":
			return at
		default:
			return 0
		}
	}
}

// dotted returns the position behind a name such as os.path on this line; 0 where
// there is none.
func (i *leftOut) dotted(at int) int {
	for ; ; at += 2 {
		if t := i.token(at); t.kind != tokenWord || t.newline {
			return 0
		}
		if t := i.token(at + 1); t.text != "." || t.newline {
			return at + 1
		}
	}
}

// renamed returns the position behind as name, which may be missing.
func (i *leftOut) renamed(at int) int {
	if t := i.token(at); t.text == "as" && !t.newline && i.token(at+1).kind == tokenWord {
		return at + 2
	}
	return at
}
