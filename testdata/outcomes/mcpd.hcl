# A server whose calls end in every way that a call can end. cmd/mcpd/outcomes_test.go
# makes them, and looks at what hooks are told.
limits { concurrency = 40 }

policy "never" {
  tools  = ["denied"]
  deny   = "tool.name == 'denied'"
  reason = "no"
}
policy "hides" {
  tools    = ["hidden"]
  deny     = "tool.name == 'hidden'"
  reason   = "no"
  disclose = "hide"
}
policy "large" {
  tools  = ["adds"]
  deny   = "args.n > 50.0"
  reason = "too large"
}
policy "approval" {
  tools             = ["approved"]
  requires_approval = "true"
  reason            = "it is dear"
}
policy "levels" {
  on     = "result"
  tools  = ["leaks"]
  deny   = "result.n > 0.0"
  reason = "it is secret"
}
limit "few" {
  tools       = ["limited"]
  rate        = "20/s"
  burst       = 2
  concurrency = 1
  reason      = "it is dear"
}
