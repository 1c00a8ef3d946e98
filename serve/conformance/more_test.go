package conformance_test

var moreScenarios = []scenario{
	{"a client asks for its log with each request", modernOnly, logsByRequest},
	{"what cannot be served is refused", both, refuses},
	{"arguments that are wrong are told to the model", both, tellsTheModel},
}

func logsByRequest(v *visit) {
	c := v.connect()
	c.call("test_tool_with_logging", object{"_meta": object{metaLogLevel: "info"}})
	told := c.told("notifications/message")
	if len(told) != len(steps) {
		v.Fatalf("before the result the client was told %v", told)
	}
	for i, step := range steps {
		v.same("the data", told[i]["data"], `"`+step+`"`)
	}
}

func refuses(v *visit) {
	c := v.connect()
	for _, test := range []struct {
		method string
		params object
		code   int
	}{
		{"unknown/method", nil, -32601},
		{"tools/call", object{"name": "there_is_no_such_tool"}, -32602},
		{"tools/list", object{"cursor": "nowhere"}, -32602},
		{"tools/list", object{"cursor": 5}, -32602},
		{"prompts/get", object{"name": "there_is_no_such_prompt"}, -32602},
		{"prompts/get", object{"name": "test_prompt_with_arguments", "arguments": 5}, -32602},
		{"completion/complete", object{"ref": object{"type": "ref/prompt"}}, -32602},
	} {
		if f := c.refused(test.method, test.params); f.Code != test.code || f.Message == "" {
			v.Errorf("%s %v: the error is %d %q", test.method, test.params, f.Code, f.Message)
		}
	}
}

func tellsTheModel(v *visit) {
	c := v.connect()
	result := c.call("test_sampling", object{"arguments": object{"prompts": "Hello"}})
	if content, _ := result["content"].([]any); result["isError"] != true || len(content) == 0 {
		v.Errorf("the result is %v", result)
	}
}
