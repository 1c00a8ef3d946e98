module github.com/mcpd/mcpd/packaging

go 1.26.0

require (
	github.com/modelcontextprotocol/registry v1.8.9
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.3
	github.com/spdx/tools-golang v0.5.7
)

require (
	github.com/anchore/go-struct-converter v0.1.0 // indirect
	golang.org/x/text v0.43.0 // indirect
)
