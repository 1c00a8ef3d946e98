# Scripts that keep their host busy.

tool "log_flood" {
  timeout = "500ms"
  run     = <<JS
    for (;;) log.info("x".repeat(1000));
  JS
}

tool "progress_flood" {
  timeout = "500ms"
  run     = <<JS
    for (let i = 0; ; i++) progress(i);
  JS
}

tool "clock_flood" {
  timeout = "500ms"
  run     = <<JS
    for (;;) Date.now();
  JS
}

tool "timer_flood" {
  timeout = "500ms"
  run     = <<JS
    for (;;) setTimeout(() => {}, 1e6);
  JS
}

tool "call_flood" {
  timeout = "500ms"
  allow {
    http "loop" {
      hosts            = ["127.0.0.1:9"]
      private_networks = true
    }
  }
  run = <<JS
    for (;;) http.loop.get(`http://127.0.0.1:9/flood`).catch(() => {});
  JS
}

tool "large_error" {
  timeout = "500ms"
  run     = <<JS
    throw new Error("x".repeat(1e8));
  JS
}

tool "tool_flood" {
  timeout = "500ms"
  allow {
    call { tools = ["tool_flood"] }
  }
  run = <<JS
    for (;;) await Promise.allSettled(Array.from({ length: 64 }, () => tools.tool_flood()));
  JS
}
