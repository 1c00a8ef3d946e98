# Scripts that compute for ever: in JavaScript, where the runtime can be asked to stop.

tool "endless_loop" {
  timeout = "500ms"
  run     = <<JS
    for (;;) {}
  JS
}

tool "endless_microtasks" {
  timeout = "500ms"
  run     = <<JS
    const again = () => Promise.resolve().then(again);
    await again();
  JS
}

tool "endless_awaits" {
  timeout = "500ms"
  run     = <<JS
    for (;;) await null;
  JS
}

tool "endless_timers" {
  timeout = "500ms"
  run     = <<JS
    for (;;) await new Promise((done) => setTimeout(done, 0));
  JS
}

tool "caught_interrupt" {
  timeout = "500ms"
  run     = <<JS
    for (;;) {
      try {
        for (;;) {}
      } catch {
      } finally {
        continue;
      }
    }
  JS
}

tool "endless_comparator" {
  timeout = "500ms"
  run     = <<JS
    [3, 1, 2].sort(() => {
      for (;;) {}
    });
  JS
}

tool "endless_getter" {
  timeout = "500ms"
  run     = <<JS
    const o = { get x() { for (;;) {} } };
    return o;
  JS
}

tool "endless_to_json" {
  timeout = "500ms"
  run     = <<JS
    return { toJSON() { for (;;) {} } };
  JS
}

tool "endless_proxy" {
  timeout = "500ms"
  run     = <<JS
    const p = new Proxy({}, { ownKeys() { for (;;) {} } });
    return p;
  JS
}

tool "endless_replacer" {
  timeout = "500ms"
  run     = <<JS
    return "a".replace(/a/, () => {
      for (;;) {}
    });
  JS
}

tool "growing_text" {
  timeout = "500ms"
  run     = <<JS
    let s = "";
    for (let i = 0; i < 1e7; i++) s += "x";
    return s.length;
  JS
}
