package main

import (
	"errors"
	"fmt"
	"strings"
)

// keyVariable names the variable that holds what proves to a server who calls.
const keyVariable = "MCPD_API_KEY"

// remote returns the server of --url, and what proves to it who calls. That is
// no argument of a verb: all users of a machine can see those.
func (f *callFlags) remote(e env) (remote, error) {
	r := remoteOf(f.url)
	if f.keyFile != "" {
		text, err := e.disk.readFile(f.keyFile)
		if err != nil {
			return r, usage("--key-file: %v", err)
		}
		r.credential, r.from = strings.TrimSpace(string(text)), f.keyFile
	} else if text, _ := e.lookup(keyVariable); text != "" {
		r.credential, r.from = strings.TrimSpace(text), keyVariable
	}
	if r.from != "" && !isCredential(r.credential) {
		return r, usage("%s holds no API key or token, which is one line without spaces", r.from)
	}
	return r, nil
}

// isCredential reports whether a text may stand behind Bearer in a header.
func isCredential(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(c rune) bool { return c <= ' ' || c > '~' })
}

// turnedAway is the error of a server that does not know who calls.
type turnedAway struct{ server, from string }

// Error says what to do. It holds no credential.
func (t *turnedAway) Error() string {
	if t.from == "" {
		return fmt.Sprintf("%s wants to know who calls, and no credential was sent; name the file of an API key with --key-file, or set %s (mcpd key new makes keys)", t.server, keyVariable)
	}
	return fmt.Sprintf("%s does not accept the credential of %s; mcpd key list tells which keys of its file are active", t.server, t.from)
}

// unanswered returns the error of a verb whose server gave no answer, or none to
// this caller.
func (f *callFlags) unanswered(e env, err error) error {
	var refused *turnedAway
	if errors.As(err, &refused) {
		return printAnswer(e, answer{Error: "POLICY_DENIED", Message: refused.Error()}, f.raw)
	}
	return findings("%v", err)
}
