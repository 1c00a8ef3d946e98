package federation_test

import (
	"context"
	"fmt"
	"testing/fstest"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/extensions/federation"
	"github.com/mcpd/mcpd/scripting"
)

func Example() {
	files := fstest.MapFS{"add.hcl": {Data: []byte(`tool "add" { run = "return 1;" }`), Mode: 0o644}}
	server, err := engine.New(engine.Options{Name: "shop", Files: engine.Files{Tools: files}, Scripts: engine.Scripts{Executor: scripting.Inline()}, Extensions: []engine.Extension{federation.New()}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close(context.Background())
	_, err = server.Load(context.Background())
	fmt.Println(err, len(server.Status().Upstreams))
	// Output: <nil> 0
}
