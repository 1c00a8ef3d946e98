package call_test

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mcpd/mcpd/call"
)

// A failed call has one of five codes. Details are for programs, the message is for people and
// models.
func ExampleError() {
	var err error = &call.Error{
		Code: call.InvalidInput, Message: "the arguments do not fit the tool's input schema: /n is required",
		Violations: []call.Violation{{Path: "/n", Message: "is required"}},
	}
	var failed *call.Error
	if errors.As(err, &failed) && failed.Code == call.InvalidInput {
		fmt.Println(failed)
		fmt.Println(string(failed.DetailsJSON()))
	}
	// Output:
	// INVALID_INPUT: the arguments do not fit the tool's input schema: /n is required
	// [{"path":"/n","message":"is required"}]
}

// Arguments are a JSON object. The engine checks them against the schema of the tool.
func ExampleRequest() {
	request := call.Request{Kind: call.Tools, Name: "add", Arguments: json.RawMessage(`{"a": 2, "b": 3}`)}
	fmt.Println(request.Kind, request.Name, string(request.Arguments))
	// Output: tool add {"a": 2, "b": 3}
}
