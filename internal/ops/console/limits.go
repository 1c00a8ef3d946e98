package console

import (
	"fmt"
	"net/http"

	"github.com/mcpd/mcpd/internal/ops/control"
)

// nearBound is the share of a limit from which a key is near its bound.
const nearBound = 0.8

// limitUses are the limits of the overview.
type limitUses struct {
	Near  []nearKey
	All   []control.LimitUse
	Error string
}

// nearKey is a key that is near the bound of a limit.
type nearKey struct {
	control.LimitUse
	Key control.KeyUse
}

// maxNear bounds the keys near their bound in a page.
const maxNear = 50

// limitsOf asks the server how much of its limits is in use.
func (c *Console) limitsOf(r *http.Request) (l limitUses) {
	if err := c.do(r, control.Limits, nil, &l.All); err != nil {
		return limitUses{Error: err.Error()}
	}
	for _, u := range l.All {
		for _, k := range u.Most {
			if k.Share >= nearBound && len(l.Near) < maxNear {
				l.Near = append(l.Near, nearKey{u, k})
			}
		}
	}
	return l
}

// percent formats a share. It rounds down, so that only a share of all is 100 %.
func percent(share float64) string { return fmt.Sprintf("%d %%", int(share*100)) }

// keyText describes a key of a limit.
func keyText(k control.KeyUse) string {
	switch {
	case k.Rest:
		return "all further keys"
	case k.Hash != "" && k.AuthKind != "":
		return cut(fmt.Sprintf("key %s of a principal (%s)", k.Hash, k.AuthKind), maxName)
	case k.Hash != "":
		return cut("key "+k.Hash, maxName)
	case k.AuthKind != "" && k.Issuer != "":
		return fmt.Sprintf("%s (%s of %s)", cut(k.Key, maxName), cut(k.AuthKind, maxName), cut(k.Issuer, maxName))
	case k.AuthKind != "":
		return fmt.Sprintf("%s (%s)", cut(k.Key, maxName), cut(k.AuthKind, maxName))
	case k.Key != "":
		return cut(k.Key, maxName)
	}
	return "all calls"
}
