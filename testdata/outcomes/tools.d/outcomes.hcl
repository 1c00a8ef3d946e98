tool "adds" {
  input "n" { type = number }
  run = "return input.n + 1"
}
tool "denied" { run = "return 1" }
tool "hidden" { run = "return 1" }
tool "limited" {
  timeout = "5s"
  run     = "return 1"
}
tool "leaks" {
  output "n" { type = number }
  run = "return { n: 1 }"
}
tool "throws" { run = "throw new ToolError('polite', { details: { a: 1 } })" }
tool "unfit" {
  output "n" { type = number }
  run = "return { n: 'x' }"
}
tool "much" {
  limits { output = "1KiB" }
  run = "return 'x'.repeat(2000)"
}
tool "circle" { run = "const o = {}; o.o = o; return o" }
tool "waits" {
  timeout = "20ms"
  run     = "await new Promise((done) => setTimeout(done, 60000))"
}
tool "endless" {
  timeout = "20ms"
  run     = "for (;;) {}"
}
tool "stalls" {
  timeout = "5m"
  run     = "await new Promise((done) => setTimeout(done, 300000))"
}
tool "pauses" {
  timeout = "10s"
  run     = "await new Promise((done) => setTimeout(done, 30)); return 1"
}
tool "kept" {
  read_only = true
  input "n" { type = integer }
  cache {
    ttl   = "1h"
    scope = "server"
  }
  run = "return input.n"
}
tool "big" {
  timeout = "10s"
  input "text" { type = string }
  run = "return input.text.length"
}
tool "asks" {
  timeout = "10s"
  allow {
    ask { elicit = true }
  }
  run = <<JS
    const schema = { type: "object", properties: { ok: { type: "boolean" } } };
    const first = await elicit("first", { message: "Sure?", schema });
    const second = await elicit("second", { message: "Really?", schema });
    return [first.action, second.action];
  JS
}
tool "approved" {
  timeout = "10s"
  run     = "return 1"
}
tool "tree" {
  timeout = "10s"
  input "seed" { type = integer }
  allow {
    call { tools = ["*"] }
  }
  run = <<JS
    const leaves = [["adds", { n: 1 }], ["throws"], ["denied"], ["hidden"], ["waits"], ["asks"], ["nowhere"], ["unfit"], ["adds", {}], ["kept", { n: 1 }], ["panics"], ["limited"]];
    const of = (seed) => (seed * 48271 + 11) % 2147483647;
    const calls = [];
    for (let seed = of(input.seed), n = seed % 4; n > 0; n--, seed = of(seed)) {
      const [name, args] = leaves[seed % leaves.length];
      const call = seed % 3 === 0 ? tools.tree({ seed }) : tools[name](args);
      calls.push(seed % 5 === 0 ? call : call.catch((e) => e.code));
    }
    await Promise.allSettled(calls);
    if (input.seed % 7 === 0) await Promise.all(calls);
    return calls.length;
  JS
}
tool "job" {
  timeout = "10s"
  task    = "required"
  input "ask" { type = bool }
  allow {
    ask { elicit = true }
  }
  run = <<JS
    if (!input.ask) return 1;
    const schema = { type: "object", properties: { ok: { type: "boolean" } } };
    return (await elicit("first", { message: "Sure?", schema })).action;
  JS
}
tool "long" {
  timeout = "5m"
  task    = "required"
  run     = "await new Promise((done) => setTimeout(done, 300000))"
}
tool "lasts" {
  timeout = "5m"
  task    = "required"
  run     = "await new Promise((done) => setTimeout(done, 300000))"
}
tool "survives" {
  timeout = "10s"
  allow {
    module "ledger" {}
  }
  run = "await modules.ledger.meet(); return 1"
}
resource "text" {
  uri  = "x://text"
  text = "text"
}
resource "fails" {
  uri = "x://fails"
  run = "throw new Error('no')"
}
resource_template "row" {
  uri_template = "x://row/{id}"
  param "id" { pattern = "^[0-9]+$" }
  complete "id" { values = ["17", "18"] }
  run = "return 'row ' + params.id"
}
prompt "plan" {
  argument "day" {
    complete {
      run = "return ['monday', 'sunday'].filter((d) => d.startsWith(value))"
    }
  }
  message "user" { text = "Plan {{day}}" }
}
hook "all" {
  on      = ["start", "end", "error"]
  timeout = "10s"
  allow {
    module "ledger" {}
  }
  run = "await modules.ledger.note({ id: event.call_id, phase: event.phase })"
}
hook "lags" {
  on      = ["start", "end", "error"]
  tools   = ["big"]
  timeout = "1m"
  allow {
    module "ledger" {}
  }
  run = "await modules.ledger.hold()"
}
hook "fails" {
  on    = ["error"]
  tools = ["throws"]
  run   = "throw new Error('no')"
}
