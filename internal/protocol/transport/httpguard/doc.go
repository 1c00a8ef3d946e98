// Package httpguard is the outermost handler of every HTTP listener: each request
// passes it, whatever its method and path, before anything else looks at it.
//
// A [Gate] keeps browsers from being used against the server. It lets through
// what names one of the server's own hosts (so that no foreign name can be
// rebound to it), comes from no origin or an allowed one, and, where it posts,
// posts plain JSON of bounded size that arrives in bounded time. Refusals are
// the RFC's error JSON (section 14), or JSON-RPC errors on the paths that the
// options name. [CheckListen], [Listen], [Guard] and [Limit] do the same for the
// listener: where it may listen, how long it waits, and for how many.
//
// A [Budget] divides bytes or connections among clients (see [workqueue.Client]), so that none
// takes what others need: the bodies of requests, the answers that clients have not read,
// which pass an [Outlet], and the connections in use.
//
// The gate answers no preflight and sets no CORS header. It does not say who
// calls, and no route passes it in another way.
package httpguard
