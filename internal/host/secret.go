package host

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"

	"github.com/mcpd/mcpd/scripting"
)

// EventSecretRevealed is the audit event of a script that read a secret. Its attributes are
// name (the secret), tool, resource, template, prompt or hook (the name of the script), call_id
// and principal.
const EventSecretRevealed = "secret.revealed"

// secretPayload is the payload and the result of the operation secret.
type secretPayload struct {
	Name string `json:"name"`
	// Value is absent in requests, and in results after [StripSecrets].
	Value *string `json:"value,omitempty"`
}

// secret returns a secret that is granted and readable by scripts. Each read is audited first:
// a script reads a secret once on first use, and again in each resumed run.
func (h *RunHost) secret(ctx context.Context, payload []byte) ([]byte, error) {
	var asked secretPayload
	if err := json.Unmarshal(payload, &asked); err != nil {
		return nil, &scripting.HostError{Code: scripting.Invalid, Message: "the operation cannot be read"}
	}
	if !slices.Contains(h.ReadableSecrets, asked.Name) {
		return nil, &scripting.HostError{Code: scripting.NotGranted, Message: "no such secret is granted"}
	}
	if h.Mocks != nil {
		return h.Mocks.secret(asked.Name)
	}
	who := append(h.logAttrs(), slog.String("secret", asked.Name), slog.String("principal", h.Caller.Principal.ID))
	read, err := h.Secrets.ResolveForScript(ctx, h.SecretKeys[asked.Name])
	if err == nil {
		err = h.Audit(EventSecretRevealed, map[string]string{h.CallerKind: h.Name, "call_id": h.ID, "name": asked.Name, "principal": h.Caller.Principal.ID})
	}
	if err != nil {
		h.Logger.LogAttrs(ctx, slog.LevelWarn, "read secret for script", append(who, slog.String("error", err.Error()))...)
		return nil, &scripting.HostError{Code: scripting.Unavailable, Message: fmt.Sprintf("the secret %q cannot be read now", asked.Name)}
	}
	h.Logger.LogAttrs(ctx, slog.LevelWarn, "script read secret", who...)
	return encodeSecret(asked.Name, read), nil
}

func encodeSecret(name, value string) []byte {
	// Plain data always encodes.
	answer, _ := json.Marshal(secretPayload{Name: name, Value: &value})
	return answer
}

// StripSecrets removes the values of secrets from a journal before it leaves the process. The
// names remain.
func StripSecrets(j *scripting.Journal) error {
	return j.Replace(scripting.OpSecret, func(answer []byte) ([]byte, error) {
		var read secretPayload
		if err := json.Unmarshal(answer, &read); err != nil {
			return nil, fmt.Errorf("strip secret: %w", err)
		}
		return json.Marshal(secretPayload{Name: read.Name})
	})
}

// RestoreSecrets reads the secrets again that [StripSecrets] has removed, before the journal is
// replayed. Their values may have changed.
func (h *RunHost) RestoreSecrets(ctx context.Context, j *scripting.Journal) error {
	if j == nil {
		return nil
	}
	return j.Replace(scripting.OpSecret, func(kept []byte) ([]byte, error) {
		answer, err := h.secret(ctx, kept)
		if err != nil {
			return nil, fmt.Errorf("restore secret: %w", err)
		}
		return answer, nil
	})
}
