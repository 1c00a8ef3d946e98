package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"

	"github.com/mcpd/mcpd/internal/federation/upstream"
	"github.com/mcpd/mcpd/internal/language/grant"
)

// wanted makes the calls of the suite with only the client of package upstream:
// mcpd would reject some of them, because their arguments do not match the
// schemas.
func wanted(ctx context.Context, at string) (err error) {
	var asks struct {
		ToolCalls []struct {
			Name      string
			Arguments json.RawMessage
		}
	}
	if err := json.Unmarshal([]byte(os.Getenv(contextVariable)), &asks); err != nil {
		return err
	}
	link, err := upstream.Dial(ctx, upstream.Target{Name: "suite", URL: at}, upstream.Options{
		Version: "1.0.0", Logger: slog.New(slog.DiscardHandler),
		Transport: func(grant.HTTP) http.RoundTripper { return http.DefaultTransport },
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, link.Close()) }()
	if _, err := link.List(ctx); err != nil {
		return err
	}
	for _, c := range asks.ToolCalls {
		reply, err := link.Start(ctx, upstream.Request{Method: upstream.MethodTool, Name: c.Name, Arguments: c.Arguments}, nil).Next(ctx)
		if err == nil && reply.Error != nil {
			err = reply.Error
		}
		if err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
	}
	return nil
}
