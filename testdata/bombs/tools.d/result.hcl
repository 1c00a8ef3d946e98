# Scripts whose result is too large, or never ends.

tool "large_result" {
  timeout = "500ms"
  run     = <<JS
    return "x".repeat(5e6);
  JS
}

tool "wide_result" {
  timeout = "500ms"
  run     = <<JS
    return Array(3e6).fill(0);
  JS
}

tool "shared_result" {
  timeout = "500ms"
  run     = <<JS
    let a = ["x".repeat(1000)];
    for (let i = 0; i < 40; i++) a = [a, a];
    return a;
  JS
}

tool "sparse_result" {
  timeout = "500ms"
  run     = <<JS
    const a = [];
    a[2 ** 32 - 2] = 1;
    return a;
  JS
}

tool "cyclic_result" {
  timeout = "500ms"
  run     = <<JS
    const a = [];
    a.push(a);
    return a;
  JS
}
