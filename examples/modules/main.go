// Command modules serves tool files that use a module of the program that embeds mcpd.
// Each file may use it only as far as its grants allow.
package main

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"slices"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/scripting"
	"github.com/mcpd/mcpd/serve"
)

//go:embed tools.d
var files embed.FS

// stock is data of the program that scripts cannot reach: the number of each article by
// warehouse.
var stock = map[string]map[string]int{
	"north": {"lamp": 4, "chair": 11},
	"south": {"lamp": 7},
	"vault": {"crown": 1},
}

// terms are the arguments of a grant.
type terms struct {
	Warehouses []string `json:"warehouses"`
}

// granted reads the arguments of a grant. The author of the file sees its error at the
// line of the block.
func granted(options json.RawMessage) (t terms, err error) {
	if err := json.Unmarshal(options, &t); err != nil || len(t.Warehouses) == 0 {
		return t, errors.New(`warehouses must be a list of names, such as ["north"]`)
	}
	for _, name := range t.Warehouses {
		if stock[name] == nil {
			return t, fmt.Errorf("there is no warehouse %q", name)
		}
	}
	return t, nil
}

// place is the argument of scripts.
type place struct {
	Warehouse string `json:"warehouse"`
	Article   string `json:"article"`
}

// count implements modules.stock.count. The grant decides what the script may see,
// never the script's arguments.
func count(_ context.Context, call engine.HostCall, in place) (int, error) {
	t, err := granted(call.Options)
	if err != nil {
		return 0, err
	}
	if !slices.Contains(t.Warehouses, in.Warehouse) {
		return 0, &scripting.HostError{Code: "DENIED", Message: "this warehouse is not granted"}
	}
	return stock[in.Warehouse][in.Article], nil
}

func newServer(tools fs.FS) (*engine.Server, error) {
	return engine.New(engine.Options{Name: "stock", Files: engine.Files{Tools: tools}, Scripts: engine.Scripts{Modules: []engine.HostModule{{
		Name:      "stock",
		Functions: []engine.HostFunc{engine.NewHostFunc("count", count)},
		Check:     func(options json.RawMessage) error { _, err := granted(options); return err },
	}}}})
}

func run(ctx context.Context, o serve.Options) error {
	tools, err := fs.Sub(files, "tools.d")
	if err != nil {
		return err
	}
	server, err := newServer(tools)
	if err != nil {
		return err
	}
	return serve.New(server, o).Run(ctx)
}

func main() { log.Fatal(run(context.Background(), serve.Options{})) }
