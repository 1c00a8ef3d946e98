package mcptest

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// ids are the ids that a server made up, in the order in which it told them.
type ids struct{ told []string }

var (
	madeUp = regexp.MustCompile(`"(id|requestId|elicitationId)":"([A-Z2-7]{26})"`)
	// ofRequest is the request_id of a request that claims none.
	ofRequest = regexp.MustCompile(`"request_id":"[0-9a-v]{16,26}"`)
)

// named returns a line of the server with names in place of made-up ids.
func (i *ids) named(line string) string {
	line = ofRequest.ReplaceAllLiteralString(line, `"request_id":"$REQUEST"`)
	return madeUp.ReplaceAllStringFunc(line, func(member string) string {
		parts := madeUp.FindStringSubmatch(member)
		at := slices.Index(i.told, parts[2])
		if at < 0 {
			at = len(i.told)
			i.told = append(i.told, parts[2])
		}
		return fmt.Sprintf(`"%s":"$ASK%d"`, parts[1], at+1)
	})
}

// real returns a line of the client with ids in place of their names.
func (i *ids) real(line string) string {
	for at, id := range i.told {
		line = strings.ReplaceAll(line, fmt.Sprintf(`"$ASK%d"`, at+1), `"`+id+`"`)
	}
	return line
}
