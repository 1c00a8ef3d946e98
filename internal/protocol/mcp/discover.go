package mcp

import (
	"context"
	"strconv"
	"time"
)

func discover(_ context.Context, c *request) (*result, *fault) {
	info := c.server.backend.Info()
	b := appendValue(nil, "supportedVersions", supported())
	b = appendValue(b, "capabilities", []byte(c.server.capabilities(modern)))
	if info.Instructions != "" {
		b = appendText(b, "instructions", info.Instructions)
	}
	more := appendCaching(nil, 0, false)
	return &result{members: b, more: more, revision: info.Revision}, nil
}

// appendCaching appends the members that tell modern clients how long a result
// may be kept and by whom (2026-07-28 server/utilities/caching). A TTL of 0 has
// them ask each time, so that none misses a reload.
func appendCaching(dst []byte, ttl time.Duration, private bool) []byte {
	dst = strconv.AppendInt(append(dst, `,"ttlMs":`...), ttl.Milliseconds(), 10)
	if private {
		return append(dst, `,"cacheScope":"private"`...)
	}
	return append(dst, `,"cacheScope":"public"`...)
}
