package host

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"

	"github.com/mcpd/mcpd/scripting"
)

// SecretRevealed is the event of the audit log that a body has read a secret: name is
// that of the secret, tool, resource, template, prompt or hook that of what the body is
// of, call_id and principal are for which call.
const EventSecretRevealed = "secret.revealed"

// readSecret is the payload of the operation secret, and its answer.
type secretPayload struct {
	Name string `json:"name"`
	// Value is absent in a question, and in an answer that is [Withhold]'s.
	Value *string `json:"value,omitempty"`
}

// secret lets a body read a secret that it is granted and that its operator
// reveals. Each reading is written down before: a body reads a secret once, when it
// first looks at it, and once more in each run that goes on.
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
		h.Logger.LogAttrs(ctx, slog.LevelWarn, "a script could not read a secret", append(who, slog.String("error", err.Error()))...)
		return nil, &scripting.HostError{Code: scripting.Unavailable, Message: fmt.Sprintf("the secret %q cannot be read now", asked.Name)}
	}
	h.Logger.LogAttrs(ctx, slog.LevelWarn, "a script read a secret", who...)
	return encodeSecret(asked.Name, read), nil
}

func encodeSecret(name, value string) []byte {
	// Plain data always encodes.
	answer, _ := json.Marshal(secretPayload{Name: name, Value: &value})
	return answer
}

// Withhold takes the values of secrets out of a journal that may leave the
// process. It says still which were read.
func StripSecrets(j *scripting.Journal) error {
	return j.Replace(scripting.OpSecret, func(answer []byte) ([]byte, error) {
		var read secretPayload
		if err := json.Unmarshal(answer, &read); err != nil {
			return nil, fmt.Errorf("withhold a secret: %w", err)
		}
		return json.Marshal(secretPayload{Name: read.Name})
	})
}

// Restore reads the secrets again that [Withhold] has taken out of a journal,
// before a body is run on it. Their values may be others than they were.
func (h *RunHost) RestoreSecrets(ctx context.Context, j *scripting.Journal) error {
	if j == nil {
		return nil
	}
	return j.Replace(scripting.OpSecret, func(kept []byte) ([]byte, error) {
		answer, err := h.secret(ctx, kept)
		if err != nil {
			return nil, fmt.Errorf("read a secret again: %w", err)
		}
		return answer, nil
	})
}
