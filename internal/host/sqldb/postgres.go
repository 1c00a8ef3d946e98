package sqldb

import (
	"context"

	"github.com/mcpd/mcpd/internal/grant"
	"github.com/mcpd/mcpd/scripting"
)

func (b *Broker) dial(context.Context, grant.SQL) (connection, error) {
	return nil, fault(scripting.Unavailable, "", "there is no PostgreSQL here")
}

func explainPostgres(error) (code, told string) { return "", "" }
