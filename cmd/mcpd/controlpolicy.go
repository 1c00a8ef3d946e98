package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/auth/apikey"
	"github.com/mcpd/mcpd/internal/execution/pipeline"
	"github.com/mcpd/mcpd/internal/ops/control"
	"github.com/mcpd/mcpd/internal/ops/recent"
)

// Bounds of a matrix.
const (
	matrixItems      = 1000
	matrixPrincipals = 16
)

// explain explains how the policies decide about a call.
func (o *runningServer) explain(ctx context.Context, of control.ExplainCall) (any, error) {
	kind, err := kindOf(of.ItemName)
	if err != nil {
		return nil, err
	}
	caller, err := callerAs(operatorOf(ctx, o.operator()), of.As)
	if err != nil {
		return nil, err
	}
	hypothetical := pipeline.HypotheticalCall{Request: call.Request{Kind: kind, Name: of.Address, Caller: caller}}
	if hypothetical.Request.Arguments, err = tryArguments(kind, of.Arguments); err != nil {
		return nil, err
	}
	explained, err := o.server.Inside().Explain(ctx, hypothetical.WithoutArguments())
	if err != nil {
		return nil, err
	}
	row := control.ExplainResult{Verdict: string(explained.Verdict), Rulings: []control.RulingLine{}}
	for _, line := range summaryOfExplanation(&explained) {
		row.Lines = append(row.Lines, strings.TrimSuffix(line, resultAdvice))
	}
	if explained.Error != nil {
		row.Code, row.Message = string(explained.Error.Code), explained.Error.Message
	}
	for i, r := range explained.Rulings {
		row.Rulings = append(row.Rulings, control.RulingLine{
			Policy: control.Policy{Name: r.Policy.Name, Place: placeIn(r.Policy.Where)}, Decides: explained.Decides(i), Says: saysIn(&explained, r),
		})
	}
	return row, nil
}

// matrix evaluates the policies of each item for each principal, for unknown arguments.
func (o *runningServer) matrix(ctx context.Context, of control.MatrixQuery) (any, error) {
	row := control.MatrixResult{Principals: of.Principals, Items: []control.ItemName{}, Cells: [][]control.MatrixCell{}}
	if len(row.Principals) == 0 {
		o.server.Inside().Recent().Start()
		row.Principals = o.principals(ctx, matrixPrincipals+1)
	}
	row.Truncated = len(row.Principals) > matrixPrincipals
	row.Principals = row.Principals[:min(len(row.Principals), matrixPrincipals)]
	callers := make([]identity.Caller, len(row.Principals))
	for i := range callers {
		var err error
		if callers[i], err = callerAs(o.operator(), control.As{Principal: &row.Principals[i]}); err != nil {
			return nil, err
		}
	}
	for kind, entries := range o.server.Inside().Catalog().Entries {
		for _, e := range entries {
			if len(row.Items) == matrixItems {
				row.Truncated = true
				return row, nil
			}
			cells := make([]control.MatrixCell, len(callers))
			for i, caller := range callers {
				if err := ctx.Err(); err != nil {
					return nil, context.Cause(ctx)
				}
				cell := pipeline.HypotheticalCall{Request: call.Request{Kind: call.Kind(kind), Name: e.Address, Caller: caller}}
				explained, err := o.server.Inside().Explain(ctx, cell.WithoutArguments())
				if err != nil {
					return nil, err
				}
				cells[i] = cellOf(&explained)
			}
			row.Items = append(row.Items, control.ItemName{Kind: kindNames()[kind], Address: e.Address})
			row.Cells = append(row.Cells, cells)
		}
	}
	return row, nil
}

func cellOf(x *pipeline.Explanation) control.MatrixCell {
	cell := control.MatrixCell{Verdict: string(x.Verdict)}
	if x.DeniedByDefault {
		cell.Policy = pipeline.DeniedByDefault
	}
	for i, r := range x.Rulings {
		if x.Decides(i) {
			cell.Policy = r.Policy.Name
			break
		}
	}
	return cell
}

// principals returns the operator, the principals of the latest calls and of the API keys, at most
// most of them.
func (o *runningServer) principals(ctx context.Context, most int) []identity.Principal {
	distinct := []identity.Principal{operatorOf(ctx, o.operator())}
	add := func(p identity.Principal) {
		if len(distinct) < most && checkPrincipal(p) == nil && !slices.ContainsFunc(distinct, func(q identity.Principal) bool { return samePrincipal(p, q) }) {
			distinct = append(distinct, p)
		}
	}
	for _, c := range slices.Backward(o.server.Inside().Recent().Last(recent.Size)) {
		if c.Depth == 0 {
			add(principalOfCall(&c))
		}
	}
	now := o.env.now()
	for _, a := range o.server.Snapshot().Auths() {
		if a.Keys == nil || len(distinct) >= most {
			continue
		}
		keys, err := apikey.Load(a.Keys.File)
		if err != nil {
			continue // the server reports it
		}
		for _, r := range keys.Records() {
			if keyState(&r, now) == "active" {
				add(r.AsPrincipal())
			}
		}
	}
	return distinct
}

// Bounds of a response about limits.
const (
	maxLimitUses = 1000
	maxKeyUses   = 10 // keys of a limit
	// limitPrincipals bounds the principals whose keys are compared with hashes of a database.
	limitPrincipals = 512
)

// limitUses returns how much of each limit block is in use. It reads the counters of the limits now, so
// calls pay nothing for it.
func (o *runningServer) limitUses(ctx context.Context) []control.LimitUse {
	uses := []control.LimitUse{}
	principals := func() []identity.Principal { return o.principals(ctx, limitPrincipals) }
	for _, u := range o.server.Inside().Catalog().LimitUses(ctx, o.server.Inside().Limits(), maxKeyUses, principals) {
		use := control.LimitUse{Limit: u.Name, Place: placeIn(u.Where), Kind: u.Kind, Bound: u.Bound, Shared: u.Shared, Problem: u.Problem, Keys: u.Keys, Most: []control.KeyUse{}}
		for _, k := range u.Most {
			key := control.KeyUse{Key: o.server.Inside().Redact(k.Text), AuthKind: k.AuthKind, Issuer: k.Issuer, Rest: k.Rest, Share: k.Share}
			if k.Hidden {
				key.Hash = o.keyHash(u.Name, k.Key)
			}
			use.Most = append(use.Most, key)
		}
		uses = append(uses, use)
	}
	return uses[:min(len(uses), maxLimitUses)]
}

// keyHash returns a hash that identifies a key while the server runs. Without the secret of this
// process, it does not confirm a guess of the arguments in the key.
func (o *runningServer) keyHash(limit, key string) string {
	mac := hmac.New(sha256.New, []byte(o.keySecret))
	mac.Write([]byte(limit + "\x00" + key))
	return hex.EncodeToString(mac.Sum(nil)[:8])
}
