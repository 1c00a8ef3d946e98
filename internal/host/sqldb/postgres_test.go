package sqldb

import "errors"

// secretOf returns the secrets of the tests.
func secretOf(name string) (string, error) { return "", errors.New("there is no secret " + name) }
