package mcp

import (
	"context"
	"slices"
)

// tools lists the tools and calls them (2026-07-28 server/tools).
func tools() feature {
	return feature{
		capability: "tools", settings: `{"listChanged":true}`, declared: bothEras,
		methods: []method{
			{name: "tools/list", eras: bothEras, serve: listTools},
			{name: "tools/call", eras: bothEras, slow: true, nameOf: "name", serve: callTool},
		},
	}
}

func listTools(ctx context.Context, c *call) (*result, *fault) {
	caller, err := c.caller()
	if err != nil {
		return nil, invalidParams(err.Error())
	}
	list := c.server.backend.List(ctx, caller)
	size := c.server.options.PageSize
	from, f := c.listStart(list)
	if f != nil {
		return nil, f
	}
	to := min(from+size, len(list.Tools))
	r := &result{revision: list.Revision}
	r.members = c.server.pages.get(pageKey{list.Hash, c.era, from, to}, func() []byte {
		return encodePage(list.Tools[from:to], c.era)
	})
	if to < len(list.Tools) {
		r.more = append(r.more, ',')
		r.more = appendString(append(r.more, `"nextCursor":`...), cursorAt(list.Hash, to))
	}
	if c.era == modern {
		r.more = appendCaching(r.more, c.server.options.ListTTL, list.Private)
	} else {
		c.origin.session.seen.Store(&list.Hash)
	}
	return r, nil
}

// listStart returns the index that params.cursor stands for.
func (c *call) listStart(list List) (int, *fault) {
	cursor := member(c.params, "cursor")
	if isNull(cursor) {
		return 0, nil
	}
	at, ok := text(cursor)
	if !ok {
		return 0, invalidParams("params.cursor must be a string")
	}
	if at == "" {
		return 0, nil
	}
	from, ok := readCursor(list.Hash, at)
	if !ok || from >= len(list.Tools) {
		return 0, invalidParams("params.cursor is not of this list, which may have changed: begin without a cursor")
	}
	return from, nil
}

func encodePage(tools []*Tool, e era) []byte {
	size := len(`"tools":[]`) + len(tools)
	for _, t := range tools {
		size += len(t.entry(e))
	}
	b := append(make([]byte, 0, size), `"tools":[`...)
	for i, t := range tools {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, t.entry(e)...)
	}
	return slices.Clip(append(b, ']'))
}
