package pipeline

import (
	"errors"

	"github.com/mcpd/mcpd/internal/base/jsonguard"
)

// CheckArguments reports what keeps bytes from being the arguments of a call:
// they must be a JSON object within the bounds of the JSON gate. Arguments from
// outside pass it before [Pipeline.Execute].
func CheckArguments(raw []byte) error {
	if err := jsonguard.Check(raw, jsonguard.Client()); err != nil || jsonguard.IsObject(raw) {
		return err
	}
	return errors.New("the arguments must be a JSON object")
}
