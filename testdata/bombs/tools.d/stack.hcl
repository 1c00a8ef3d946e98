# Scripts that nest deeper than any stack.

tool "recursion" {
  timeout = "3s"
  run     = <<JS
    const f = () => f() + 1;
    return f();
  JS
}

tool "getter_recursion" {
  timeout = "3s"
  run     = <<JS
    const o = { get x() { return o.x; } };
    return o.x;
  JS
}

tool "text_recursion" {
  timeout = "3s"
  run     = <<JS
    const o = { toString() { return `${o}`; } };
    return `${o}`;
  JS
}

tool "proxy_chain" {
  timeout = "3s"
  run     = <<JS
    let p = {};
    for (let i = 0; i < 1e6; i++) p = new Proxy(p, {});
    return p.x;
  JS
}

tool "deep_json" {
  timeout = "3s"
  run     = <<JS
    return JSON.parse("[".repeat(3e6) + "]".repeat(3e6)).length;
  JS
}

tool "deep_result" {
  timeout = "3s"
  run     = <<JS
    let a = [];
    for (let i = 0; i < 1e6; i++) a = [a];
    return a;
  JS
}

tool "deep_stringify" {
  timeout = "3s"
  run     = <<JS
    let a = [];
    for (let i = 0; i < 1e6; i++) a = [a];
    return JSON.stringify(a).length;
  JS
}

tool "deep_flat" {
  timeout = "3s"
  run     = <<JS
    let a = [];
    for (let i = 0; i < 1e6; i++) a = [a];
    return a.flat(Infinity).length;
  JS
}

tool "deep_join" {
  timeout = "3s"
  run     = <<JS
    let a = [];
    for (let i = 0; i < 1e6; i++) a = [a];
    return String(a).length;
  JS
}

tool "deep_clone" {
  timeout = "3s"
  run     = <<JS
    let a = [];
    for (let i = 0; i < 1e6; i++) a = [a];
    return structuredClone(a).length;
  JS
}

tool "deep_pattern" {
  timeout = "3s"
  run     = <<JS
    return new RegExp("(".repeat(1e6) + ")".repeat(1e6)).test("");
  JS
}

tool "bound_chain" {
  timeout = "3s"
  run     = <<JS
    let f = () => 1;
    for (let i = 0; i < 1e6; i++) f = f.bind(null);
    return f();
  JS
}

tool "prototype_chain" {
  timeout = "3s"
  run     = <<JS
    let o = {};
    for (let i = 0; i < 1e6; i++) o = Object.create(o);
    return o.x === undefined && Object.keys(o).length + "x" in o;
  JS
}

tool "eval_nesting" {
  timeout = "3s"
  run     = <<JS
    return (async () => {}).constructor("return " + "(".repeat(1e6) + "1" + ")".repeat(1e6))();
  JS
}

# What others answer is no less hostile than a script.
tool "deep_answer" {
  timeout = "3s"
  allow {
    http "loop" {
      hosts            = ["127.0.0.1:9"]
      methods          = ["GET"]
      private_networks = true
    }
  }
  run = <<JS
    return (await http.loop.get("http://127.0.0.1:9/deep")).json();
  JS
}
