package execs

import (
	"encoding/base64"
	"encoding/json"
	"unicode/utf8"
)

// Answer returns what a script is told of a program that has ended: {"code"}, and
// each of the outputs as "stdout" and "stderr", or where it is no text in
// standard base64 as "stdout64" and "stderr64".
func Answer(code int, stdout, stderr []byte) []byte {
	answer := map[string]any{"code": code}
	for name, output := range map[string][]byte{"stdout": stdout, "stderr": stderr} {
		if utf8.Valid(output) {
			answer[name] = string(output)
		} else {
			answer[name+"64"] = base64.StdEncoding.EncodeToString(output)
		}
	}
	// Plain data always encodes.
	encoded, _ := json.Marshal(answer)
	return encoded
}
