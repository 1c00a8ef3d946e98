package conformance_test

import (
	"maps"
	"regexp"
	"slices"
)

// The suite has these for clients with the extension, which legacy clients
// cannot declare.
var taskScenarios = []scenario{
	{"tasks-lifecycle", modernOnly, tasksLive},
	{"tasks-capability-negotiation", modernOnly, tasksAreNegotiated},
	{"tasks-wire-fields", modernOnly, tasksHaveTheirFields},
	{"tasks-request-state-removal", modernOnly, tasksHaveNoState},
	{"tasks-mrtr-input", modernOnly, tasksAsk},
	{"tasks-dispatch-and-envelope", modernOnly, tasksAreDispatched},
	{"tasks-status-notifications", modernOnly, tasksAreTold},
	{"tasks-required-task-error", modernOnly, tasksAreRequired},
	{"tasks-mrtr-composition", modernOnly, tasksComeAfterQuestions},
}

const extension = "io.modelcontextprotocol/tasks"

// tasksMeta is the _meta of a client that declares the extension.
var tasksMeta = object{metaCapabilities: object{"elicitation": object{}, "extensions": object{extension: object{}}}}

// tasked sends a request of such a client.
func (c *conn) tasked(method string, params object) object {
	c.Helper()
	return c.get(method, with(params))
}

func with(params object) object {
	params = maps.Clone(params)
	params["_meta"] = tasksMeta
	return params
}

// begin calls a tool that returns a task, and returns the task.
func (v *visit) begin(c *conn, tool string, arguments object) (id string, task object) {
	v.Helper()
	task = c.tasked("tools/call", object{"name": tool, "arguments": arguments})
	id, _ = task["taskId"].(string)
	if task["resultType"] != "task" || id == "" || task["status"] == "" {
		v.Fatalf("%s returned no task: %v", tool, task)
	}
	v.lacks(task, "task", "result", "error", "inputRequests", "requestState", "ttl", "pollInterval")
	return id, task
}

// lacks checks that members of other results are absent.
func (v *visit) lacks(result object, members ...string) {
	v.Helper()
	for _, name := range members {
		if _, ok := result[name]; ok {
			v.Errorf("unexpected member %s in %v", name, result)
		}
	}
}

// acknowledged checks an empty result.
func (v *visit) acknowledged(result object) {
	v.Helper()
	v.same("type", result["resultType"], `"complete"`)
	v.lacks(result, "taskId", "status", "result", "error", "inputRequests")
}

// until waits until a task has a status, and returns its notification, which
// must equal the result of tasks/get.
func (v *visit) until(id, status string) object {
	v.Helper()
	c := v.connect()
	c.subscribe(object{"taskIds": []string{id}}, tasksMeta)
	for {
		notified := c.nextNotification("notifications/tasks")
		if notified["taskId"] != id {
			v.Fatalf("notification: %v", notified)
		}
		if notified["status"] == status {
			break
		}
	}
	task := c.tasked("tasks/get", object{"taskId": id})
	v.same("type", task["resultType"], `"complete"`)
	v.same("task", []any{task["taskId"], task["status"]}, `["`+id+`", "`+status+`"]`)
	v.lacks(task, "requestState")
	return task
}

func tasksLive(v *visit) {
	c := v.connect()
	greeted := c.tasked("tools/call", object{"name": "greet", "arguments": object{"name": "World"}})
	v.checkComplete(greeted, "Hello, World!")
	v.lacks(greeted, "taskId", "task")

	id, _ := v.begin(c, "slow_compute", object{"seconds": 0, "label": "it"})
	done := v.until(id, "completed")
	v.same("result", done["result"].(object)["content"], `[{"type": "text", "text": "computed it"}]`)
	meta, _ := done["result"].(object)["_meta"].(object)
	v.lacks(meta, "io.modelcontextprotocol/related-task")
	v.acknowledged(c.tasked("tasks/cancel", object{"taskId": id}))

	id, _ = v.begin(c, "failing_job", object{})
	failed := v.until(id, "completed")
	v.same("isError of the failed job", failed["result"].(object)["isError"], `true`)

	id, _ = v.begin(c, "protocol_error_job", object{})
	broken := v.until(id, "failed")
	v.same("error", broken["error"], `{"code": -32603, "message": "the job broke"}`)
	v.lacks(broken, "result")

	id, _ = v.begin(c, "slow_compute", object{"seconds": 60})
	v.acknowledged(c.tasked("tasks/cancel", object{"taskId": id}))
	v.until(id, "cancelled")
}

func tasksAreNegotiated(v *visit) {
	c := v.connect()
	can := c.get("server/discover", nil)["capabilities"].(object)
	v.same("extensions", can["extensions"], `{"`+extension+`": {}}`)
	v.lacks(can, "tasks")
	for method, params := range map[string]object{
		"tasks/get": {"taskId": "gate"}, "tasks/update": {"taskId": "gate", "inputResponses": object{}}, "tasks/cancel": {"taskId": "gate"},
	} {
		if f := c.askError(method, params); f.Code != -32021 {
			v.Errorf("%s: error %d %s", method, f.Code, f.Message)
		}
	}
	waited := c.call("slow_compute", object{"arguments": object{"seconds": 0, "label": "it"}})
	v.checkComplete(waited, "computed it")
	v.lacks(waited, "taskId", "task")
	id, _ := v.begin(c, "slow_compute", object{"seconds": 60})
	c.tasked("tasks/cancel", object{"taskId": id})
}

var moment = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$`)

func tasksHaveTheirFields(v *visit) {
	c := v.connect()
	id, task := v.begin(c, "slow_compute", object{"seconds": 0})
	for _, name := range []string{"ttlMs", "pollIntervalMs"} {
		if ms, ok := task[name].(float64); !ok || ms <= 0 || ms != float64(int64(ms)) {
			v.Errorf("%s = %v", name, task[name])
		}
	}
	for _, name := range []string{"createdAt", "lastUpdatedAt"} {
		if at, _ := task[name].(string); !moment.MatchString(at) {
			v.Errorf("%s = %v", name, task[name])
		}
	}
	v.until(id, "completed")
}

func tasksHaveNoState(v *visit) {
	c := v.connect()
	id, _ := v.begin(c, "slow_compute", object{"seconds": 60})
	v.lacks(c.tasked("tasks/get", object{"taskId": id}), "requestState", "result", "error")
	c.tasked("tasks/cancel", object{"taskId": id})
	v.until(id, "cancelled")
}

// tasksAsk answers the one request of a task, and the two of another task one
// after the other.
func tasksAsk(v *visit) {
	c := v.connect()
	id, _ := v.begin(c, "confirm_delete", object{"filename": "it.txt"})
	asks := v.until(id, "input_required")
	v.same("input requests", asks["inputRequests"], `{"confirm": `+form("Delete it.txt?", "confirm", "boolean")+`}`)
	v.acknowledged(c.tasked("tasks/update", object{"taskId": id, "inputResponses": object{"confirm": accepted("confirm", true)}}))
	v.same("result", v.until(id, "completed")["result"].(object)["content"], `[{"type": "text", "text": "deleted"}]`)

	id, _ = v.begin(c, "multi_input", object{})
	if asks := v.until(id, "input_required")["inputRequests"].(object); len(asks) != 2 {
		v.Fatalf("input requests: %v", asks)
	}
	v.acknowledged(c.tasked("tasks/update", object{"taskId": id, "inputResponses": object{"first": accepted("name", "Ada")}}))
	asks = c.tasked("tasks/get", object{"taskId": id})
	v.same("status", asks["status"], `"input_required"`)
	v.same("remaining input requests", asks["inputRequests"], `{"second": `+form("The second name?", "name", "string")+`}`)
	c.tasked("tasks/update", object{"taskId": id, "inputResponses": object{"second": accepted("name", "Bob")}})
	v.same("result", v.until(id, "completed")["result"].(object)["content"], `[{"type": "text", "text": "Ada and Bob"}]`)
}

func tasksAreDispatched(v *visit) {
	c := v.connect()
	for method, code := range map[string]int{"tasks/result": -32601, "tasks/list": -32601, "tasks/get": -32602} {
		if f := c.askError(method, with(object{"taskId": "tasks-conformance-nonexistent-12345"})); f.Code != code {
			v.Errorf("%s: error %d %s", method, f.Code, f.Message)
		}
	}
	hinted := c.tasked("tools/call", object{"name": "greet", "arguments": object{"name": "legacy-hint"}, "task": object{"ttl": 60000}})
	v.checkComplete(hinted, "Hello, legacy-hint!")
	v.lacks(hinted, "taskId")
	id, _ := v.begin(c, "slow_compute", object{"seconds": 60})
	v.same("task", c.tasked("tasks/get", object{"taskId": id})["taskId"], `"`+id+`"`)
	c.tasked("tasks/cancel", object{"taskId": id})
}

// tasksAreTold checks what the suite does not check yet: notifications have the
// same status as tasks/get.
func tasksAreTold(v *visit) {
	c := v.connect()
	id, _ := v.begin(c, "confirm_delete", object{"filename": "it.txt"})
	meta := c.subscribe(object{"taskIds": []string{id}}, tasksMeta)
	var seen []any
	for answered := false; !slices.Contains(seen, any("completed")); {
		notified := c.nextNotification("notifications/tasks")
		v.same("subscription", notified["_meta"], meta)
		if notified["status"] == "input_required" && !answered {
			answered = true
			c.tasked("tasks/update", object{"taskId": id, "inputResponses": object{"confirm": accepted("confirm", false)}})
		}
		seen = append(seen, notified["status"])
	}
	if first := slices.Index(seen, any("input_required")); first < 0 {
		v.Errorf("notifications: %v", seen)
	}
}

func tasksAreRequired(v *visit) {
	f := v.connect().askError("tools/call", object{"name": "failing_job", "arguments": object{}})
	if f.Code != -32021 {
		v.Errorf("error %d %s", f.Code, f.Message)
	}
	v.same("data", f.Data, `{"requiredCapabilities": {"extensions": {"`+extension+`": {}}}}`)
}

// tasksComeAfterQuestions answers a call before it becomes a task.
func tasksComeAfterQuestions(v *visit) {
	c := v.connect()
	params := object{"name": "test_tool_with_task", "arguments": object{}}
	asks := c.tasked("tools/call", params)
	v.lacks(asks, "taskId")
	state := v.checkInputRequired(asks, `{"user_name": `+form("What is your name?", "name", "string")+`}`)
	maps.Copy(params, object{"inputResponses": object{"user_name": accepted("name", "Alice")}, "requestState": state})
	task := c.tasked("tools/call", params)
	id, _ := task["taskId"].(string)
	v.same("type", task["resultType"], `"task"`)
	v.lacks(task, "requestState", "inputRequests")
	v.same("result", v.until(id, "completed")["result"].(object)["content"], `[{"type": "text", "text": "Hello, Alice!"}]`)
}
