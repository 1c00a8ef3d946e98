# What tools ought to do, beside the others.

tool "add" {
  input "a" { type = number }
  input "b" { type = number }
  run = <<JS
    return { sum: input.a + input.b };
  JS
}

# One host call before some work, and one behind it: neither is made twice,
# whatever becomes of the process.
tool "post" {
  timeout = "20s"
  input "id" { type = string }
  allow {
    http "loop" {
      hosts            = ["127.0.0.1:9"]
      methods          = ["POST"]
      private_networks = true
    }
  }
  run = <<JS
    const before = await http.loop.post(`http://127.0.0.1:9/${input.id}/before`, { body: "" });
    let sum = 0;
    for (let i = 0; i < 1e4; i++) sum += i;
    const after = await http.loop.post(`http://127.0.0.1:9/${input.id}/after`, { body: "" });
    return { statuses: [before.status, after.status], sum };
  JS
}

# A second of waiting costs no process.
tool "wait" {
  timeout = "20s"
  input "id" { type = string }
  allow {
    http "loop" {
      hosts            = ["127.0.0.1:9"]
      methods          = ["GET"]
      private_networks = true
    }
  }
  run = <<JS
    return (await http.loop.get(`http://127.0.0.1:9/${input.id}/wait`)).status;
  JS
}

# Some 20 ms of work.
tool "work" {
  timeout = "2s"
  run     = <<JS
    let sum = 0;
    for (let i = 0; i < 1e5; i++) sum = (sum * 31 + i) % 1000003;
    return sum;
  JS
}
