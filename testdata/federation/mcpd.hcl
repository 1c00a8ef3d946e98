# The operator's file of the federation: official reference servers, one of the Go SDK and
# the one of the tour of docs/reference/clients.md, each in its own way, behind one mcpd. Started by
# .ci/federation.

server {
  name = "mcpd-federation"
}

variable "node" {
  type        = string
  description = "The program that runs the reference servers"
}

variable "modules" {
  type        = string
  description = "The folder where they are installed"
}

variable "home" {
  type        = string
  description = "A folder for what they keep"
}

variable "web" {
  type        = string
  description = "Where server-everything is served over HTTP"
}

variable "lab" {
  type        = string
  description = "Where the servers of the Go SDK are served"
}

variable "mcpd" {
  type        = string
  description = "The program of the tour's server"
}

variable "clients" {
  type        = string
  description = "The folder of the operator's file of the tour's server"
}

variable "tour" {
  type        = string
  description = "The folder of its tools"
}

# A shell writes down which process it becomes, for whoever kills that.
upstream "everything" {
  command = ["sh", "-c", "echo $$ >\"$0\" && exec \"$@\"", "${var.home}/pid", var.node, "${var.modules}/server-everything/dist/index.js", "stdio"]
  ask     = ["elicit", "sample", "roots"]
  exclude = ["get-env"]
}

upstream "web" {
  url     = "${var.web}/mcp"
  ask     = ["elicit", "sample"]
  offer   = ["tools", "prompts"]
  exclude = ["get-env"]

  override "echo" {
    description = "Says it again"
  }
}

upstream "files" {
  command = [var.node, "${var.modules}/server-filesystem/dist/index.js", "${var.home}/files"]
  exclude = ["read_file"]
}

upstream "memory" {
  command = [var.node, "${var.modules}/server-memory/dist/index.js"]
  env     = { MEMORY_FILE_PATH = "${var.home}/memory.jsonl" }
  rename  = { read_graph = "graph" }
}

upstream "lab" {
  url = "${var.lab}/modern"
  ask = ["elicit"]
}

upstream "old" {
  url   = "${var.lab}/sessions"
  ask   = ["elicit"]
  offer = ["tools", "prompts"]
}

# So few calls at once that a call which does not stop when it is cancelled is missed.
upstream "tour" {
  command = [
    var.mcpd, "serve", "--stdio", "--config", "${var.clients}/mcpd.hcl", "--tools", var.tour,
    "--state", "memory", "--control", "off", "--log-level", "info", "--grace", "1s",
  ]
  prefix  = ""
  pin     = "off" # the tour changes its tools
  ask     = ["elicit"]
  timeout = "5m"

  limits {
    concurrency = 4
  }
}

codeact {
  timeout = "20s"
}

policy "sums_stay_small" {
  tools  = ["everything_get-sum", "web_get-sum", "lab_sum"]
  deny   = "args.a > 1000"
  reason = "Sums stay small"
}

# What a policy of the tour's server refuses has failed, as far as this one knows.
policy "sums_of_the_tour_stay_small" {
  tools  = ["add"]
  deny   = "args.a > 1000 || args.b > 1000"
  reason = "Sums stay small"
}

policy "no_hidden_files" {
  tools  = ["files_write_file", "files_edit_file"]
  deny   = "args.path.contains('/.')"
  reason = "Hidden files stay as they are"
}

policy "nobody_is_forgotten" {
  tools  = ["memory_delete_entities"]
  deny   = "args.entityNames.exists(name, name == 'Ada')"
  reason = "Ada is not forgotten"
}
