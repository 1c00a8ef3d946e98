package reply

import (
	"encoding/base64"
	"strconv"

	"github.com/mcpd/mcpd/internal/base/jsontext"
)

// appendMember appends a name and a JSON value, behind a comma unless the
// object is still empty.
func appendMember(dst []byte, name string, value []byte) []byte {
	if dst[len(dst)-1] != '{' {
		dst = append(dst, ',')
	}
	dst = append(append(append(dst, '"'), name...), `":`...)
	return append(dst, value...)
}

func appendText(dst []byte, name, value string) []byte {
	return appendMember(dst, name, quote(value))
}

// appendOptional is appendText for a value that may be empty and is left out then.
func appendOptional(dst []byte, name, value string) []byte {
	if value == "" {
		return dst
	}
	return appendText(dst, name, value)
}

func appendInt(dst []byte, name string, value int64) []byte {
	return appendMember(dst, name, strconv.AppendInt(nil, value, 10))
}

func appendBytes(dst []byte, name string, content []byte) []byte {
	value := make([]byte, 1, base64.StdEncoding.EncodedLen(len(content))+2)
	value[0] = '"'
	value = append(base64.StdEncoding.AppendEncode(value, content), '"')
	return appendMember(dst, name, value)
}

// quote returns text as a JSON string, in which < and & stand as they are, so
// that pages of HTML do not grow. A string always encodes.
func quote(s string) []byte {
	quoted, _ := jsontext.Marshal(s)
	return quoted
}
