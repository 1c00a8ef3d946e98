package mcp

import (
	"regexp"
	"testing"
)

// keyForm is a prefix of labels, a slash and a name (2026-07-28 basic/index,
// _meta).
var keyForm = regexp.MustCompile(`\A[a-zA-Z](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?(?:\.[a-zA-Z](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*/[a-zA-Z0-9](?:[a-zA-Z0-9._-]*[a-zA-Z0-9])?\z`)

func TestTheKeysOfMetadataHaveTheFormOfKeys(t *testing.T) {
	for _, key := range []string{keyServerInfo, keySubscriptionID, keyTasks, keyAgent, keyError, keyRevision, keyTimeout} {
		if !keyForm.MatchString(key) {
			t.Errorf("%q is no key", key)
		}
	}
}
