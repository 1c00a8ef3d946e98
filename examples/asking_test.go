//lint:file-ignore SA1019 sampling is deprecated as of 2026-07-28, and older clients use it

package examples_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/serve"
)

func TestAsking_testBlocks(t *testing.T) {
	passes(t, load(t, "asking", engine.Options{Front: serve.Checks{}}), 12)
}

// model answers the client's questions by their content.
type model struct{ asked []string }

func (m *model) answer(_ context.Context, r *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
	question := r.Params.Messages[0].Content.(*mcp.TextContent).Text
	m.asked = append(m.asked, fmt.Sprintf("%s|%s|%d", question, r.Params.SystemPrompt, r.Params.MaxTokens))
	answers := map[string]string{
		"Confirm: Delete production database 'users'? (yes/no)": "Yes",
		"Here's the log data: E42. What caused the error?":      "E42 means a full disk.",
		"Improve this: a": "b", "Improve this: b": "c", "Improve this: c": "d",
		"We have 3 backup strategies: A (fast, risky), B (balanced), C (slow, safe). Which should we use given: a small disk? Answer with one letter.": "C",
		"Deployment has high-risk changes: drop a column. Shall it be done? Begin with the one word PROCEED or STOP, and then say why.":                "PROCEED, as I recommend.",
		"Deployment has high-risk changes: delete the users. Shall it be done? Begin with the one word PROCEED or STOP, and then say why.":             "I would not proceed: no backup was made.",
	}
	text, known := answers[question]
	if !known {
		return nil, fmt.Errorf("asked %q", question)
	}
	return &mcp.CreateMessageResult{Role: "assistant", Model: "test", StopReason: "endTurn", Content: &mcp.TextContent{Text: text}}, nil
}

// TestDeploy_answers gives many answers. Only an unambiguous yes deploys.
func TestDeploy_answers(t *testing.T) {
	var answer string
	session := connect(t, load(t, "asking", engine.Options{Front: serve.Checks{}}), "2025-11-25", &mcp.ClientOptions{CreateMessageHandler: func(context.Context, *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
		return &mcp.CreateMessageResult{Role: "assistant", Model: "test", StopReason: "endTurn", Content: &mcp.TextContent{Text: answer}}, nil
	}})
	for want, answers := range map[string][]string{
		"Deployment executed. LLM reasoning: ": {
			"PROCEED: there is a backup.", "proceed", "PROCEED", "Based on the analysis, I recommend proceeding with the migration because...",
			"I recommend proceeding with the deployment because there is no risk of data loss.", "Yes, proceed. The table is empty.", "We should proceed with the migration.",
			"You can safely proceed, the change is small.", "It is safe to proceed.", "I'd say it looks fine to go ahead", "My recommendation is to proceed.", "**PROCEED**",
			"I would strongly recommend that we proceed.", "I would proceed.",
		},
		"Deployment cancelled based on LLM analysis: ": {
			"I would not proceed.", "Do not proceed.", "Don\u2019t proceed with this.", "I wouldn't proceed.", "I do not recommend proceeding.", "I recommend not proceeding with the migration because...",
			"I advise against proceeding.", "STOP: proceed later.", "Proceed only after a backup.", "Proceed if the backup is good.", "I recommend proceeding, but not today.",
			"I recommend proceeding. Actually, do not proceed.", "I recommend proceeding because, on reflection, we cannot proceed.", "Should we proceed? No.", "Should we proceed?", "Before proceeding, take a backup.",
			"It is too risky to proceed.", "It is unsafe to proceed.", "PROCEEDING is a risk.", "The word proceed is all that you look for.", "Proceedings were held.", "Wait for the night.",
			"I recommend proceeding. Wait until tonight.", "STOP. To PROCEED is a risk.", "No, proceed at another time.", "The user says: I recommend proceeding. I refuse.", "yes", "",
			"Nobody should proceed.", "I recommend proceeding never.", "We should proceed, unless you have no backup.",
		},
	} {
		for _, answer = range answers {
			result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "deploy_changes", Arguments: map[string]any{"service": "crm", "changes": []string{"drop a column"}}})
			if err != nil {
				t.Fatal(err)
			}
			if text, ok := result.Content[0].(*mcp.TextContent); !ok || text.Text != want+answer {
				t.Errorf("%q: got %+v, want %s", answer, result.Content[0], want)
			}
		}
	}
}

func TestSampling_bothEras(t *testing.T) {
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		t.Run(version, func(t *testing.T) {
			var m model
			session := connect(t, load(t, "asking", engine.Options{Front: serve.Checks{}}), version, &mcp.ClientOptions{CreateMessageHandler: m.answer})
			for _, c := range []struct {
				tool      string
				arguments map[string]any
				text      string
				asked     []string
			}{
				{"deploy_changes", map[string]any{"service": "crm", "changes": []string{"a typo"}}, "Deployed: crm", nil},
				{
					"deploy_changes", map[string]any{"service": "crm", "changes": []string{"a typo", "drop a column"}},
					"Deployment executed. LLM reasoning: PROCEED, as I recommend.",
					[]string{"Deployment has high-risk changes: drop a column. Shall it be done? Begin with the one word PROCEED or STOP, and then say why.|You are a cautious DevOps engineer.|500"},
				},
				{
					"deploy_changes", map[string]any{"service": "crm", "changes": []string{"delete the users"}},
					"Deployment cancelled based on LLM analysis: I would not proceed: no backup was made.",
					[]string{"Deployment has high-risk changes: delete the users. Shall it be done? Begin with the one word PROCEED or STOP, and then say why.|You are a cautious DevOps engineer.|500"},
				},
				{"delete_database", map[string]any{"name": "users"}, "deleted users", []string{"Confirm: Delete production database 'users'? (yes/no)||10"}},
				{"explain_log", map[string]any{"log": "E42"}, "E42 means a full disk.", []string{"Here's the log data: E42. What caused the error?|You are a debugging expert.|400"}},
				{
					"choose_backup", map[string]any{"situation": "a small disk"}, `{"strategy":"C"}`,
					[]string{"We have 3 backup strategies: A (fast, risky), B (balanced), C (slow, safe). Which should we use given: a small disk? Answer with one letter.||5"},
				},
				{"refine", map[string]any{"draft": "a"}, "d", []string{"Improve this: a||300", "Improve this: b||300", "Improve this: c||300"}},
			} {
				m.asked = nil
				result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: c.tool, Arguments: c.arguments})
				if err != nil {
					t.Errorf("%s: %v", c.tool, err)
					continue
				}
				if text, ok := result.Content[0].(*mcp.TextContent); !ok || text.Text != c.text || result.IsError {
					t.Errorf("%s: got %+v, want %s", c.tool, result.Content[0], c.text)
				}
				if diff := cmp.Diff(c.asked, m.asked); diff != "" {
					t.Errorf("%s asked (-want +got)\n%s", c.tool, diff)
				}
			}
		})
	}
}
