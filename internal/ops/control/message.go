package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/mcpd/mcpd/internal/base/jsonguard"
)

// Version is that of the protocol. One that asks and one that answers understand
// each other when they have the same.
const Version = 1

// Verb says what a server is to do.
type Verb string

const (
	// Status asks how the server is.
	Status Verb = "status"
	// Reload has it read all files again, and asks what came of it.
	Reload Verb = "reload"
	// Tokens asks whose OAuth tokens the server has.
	Tokens Verb = "tokens"
	// DropTokens has it drop some of them, and asks which those were.
	DropTokens Verb = "drop_tokens"
)

// verbs are all that there are.
var verbs = [...]Verb{Status, Reload, Tokens, DropTokens}

// Request is what a server is asked.
type Request struct {
	Do Verb `json:"do"`
	// Color says that text for people may have the colours of a terminal.
	Color bool `json:"color,omitempty"`
	Which
}

// Which says which tokens are meant: empty members mean any. Where tokens are dropped,
// it names a secret or a principal.
type Which struct {
	Secret    string `json:"secret,omitempty"`
	Principal string `json:"principal,omitempty"`
	Kind      string `json:"kind,omitempty"`
	Issuer    string `json:"issuer,omitempty"`
}

// The bounds of what crosses.
const (
	maxRequest = 4 << 10
	maxAnswer  = 64 << 20
)

// asked is a request as it crosses.
type asked struct {
	Control int `json:"control"`
	Request
}

// told is an answer as it crosses: a result, or an error.
type told struct {
	Control int             `json:"control"`
	Error   string          `json:"error,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
}

// parseRequest reads a request. The error is for who has sent it.
func parseRequest(line []byte) (Request, error) {
	var r asked
	if err := decode(line, jsonguard.Limits{Bytes: maxRequest, Depth: 4, Tokens: 64}, &r); err != nil {
		return Request{}, fmt.Errorf("read request: %w", err)
	}
	switch {
	case r.Control != Version:
		return Request{}, fmt.Errorf("this server speaks version %d of the control protocol; use the mcpd that serves", Version)
	case !slices.Contains(verbs[:], r.Do):
		return Request{}, errors.New("there is no such request; ask for status, reload, tokens or drop_tokens")
	case r.Do == DropTokens && r.Secret == "" && r.Principal == "":
		return Request{}, errors.New("whose tokens are to be dropped is not said; name a secret or a principal")
	}
	return r.Request, nil
}

// parseAnswer reads an answer. An error that the server tells is the error.
func parseAnswer(line []byte, into any) error {
	var a told
	if err := decode(line, jsonguard.Limits{Bytes: maxAnswer, Depth: 64, Tokens: 1_000_000}, &a); err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	switch {
	case a.Error != "":
		return errors.New(a.Error)
	case a.Control != Version:
		return fmt.Errorf("the server speaks another version of the control protocol (%d); use its mcpd", a.Control)
	}
	if err := json.Unmarshal(a.Result, into); err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	return nil
}

// encodeAnswer returns the line that answers a request.
func encodeAnswer(result any, err error) []byte {
	a := told{Control: Version}
	if err == nil {
		a.Result, err = json.Marshal(result)
	}
	if err != nil {
		a.Error, a.Result = err.Error(), nil
	}
	line, err := json.Marshal(a)
	if err != nil {
		return nil // a number, a text and JSON that was just made have no such error
	}
	return append(line, '\n')
}

func decode(line []byte, limits jsonguard.Limits, into any) error {
	if err := jsonguard.Check(line, limits); err != nil {
		return err
	}
	return json.Unmarshal(line, into)
}
