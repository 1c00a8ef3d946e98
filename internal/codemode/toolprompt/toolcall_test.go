package toolprompt

import "encoding/json"

func truth(b bool) *bool { return &b }

// smallCatalog has a tool for each kind of name, and most schema keywords.
func smallCatalog() []Tool {
	return []Tool{
		{
			Name: "search_web", Title: "Web search", Description: "Search the web for information. Returns the best pages first.\n\nUse few words, such as those of a heading.",
			Input: json.RawMessage(`{"type":"object","properties":{
				"query":{"type":"string","description":"What to look for","minLength":1,"maxLength":200},
				"max_results":{"type":"integer","minimum":1,"maximum":50,"default":10},
				"site":{"anyOf":[{"type":"string","format":"hostname"},{"type":"null"}],"default":null},
				"kinds":{"type":"array","items":{"enum":["page","image","video"]},"uniqueItems":true,"description":"Only these"}},
				"required":["query"]}`),
			Output: json.RawMessage(`{"type":"object","properties":{"results":{"type":"array","items":{"type":"object","properties":{
				"title":{"type":"string"},"url":{"type":"string","format":"uri"},"score":{"type":"number","description":"From 0 to 1"}},"required":["title","url"]}}},"required":["results"]}`),
			ReadOnly: truth(true),
		},
		{
			Name: "read_file", Description: "Read contents of a file",
			Input:    json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"],"additionalProperties":false}`),
			ReadOnly: truth(true),
		},
		{
			Name: "crm_get_customer", Group: "crm", Member: "get_customer", Description: "Returns a customer by id.",
			Input: json.RawMessage(`{"type":"object","properties":{"id":{"type":"string","pattern":"^c_[0-9]+$"}},"required":["id"]}`),
			Output: json.RawMessage(`{"$defs":{"Address":{"type":"object","description":"Where somebody lives","properties":{"street":{"type":"string"},"country":{"enum":["DE","FR",null]}},"required":["street"]},
				"Person":{"type":"object","properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/Address"},"friends":{"type":"array","items":{"$ref":"#/$defs/Person"}}},"required":["name"]}},
				"$ref":"#/$defs/Person"}`),
		},
		{
			Name: "crm_delete-customer", Group: "crm", Member: "delete-customer",
			Input:       json.RawMessage(`{"type":"object","properties":{"id":{"type":"string"},"because":{"const":"asked"}},"required":["id"]}`),
			Destructive: truth(true),
		},
		{Name: "weather.now", Description: "Tells the weather of now.", Input: json.RawMessage(`{"type":"object","properties":{}}`), Output: json.RawMessage(`{"type":"object","properties":{"at":{"type":"array","prefixItems":[{"type":"number"},{"type":"number"}],"items":false},"readings":{"type":"object","additionalProperties":{"type":"number"}}}}`)},
	}
}
