# Scripts whose one call runs for ever in the runtime, where nothing can be
# interrupted: their process is killed.

tool "backtracking" {
  timeout = "500ms"
  run     = <<JS
    return /^(a+)+\1$/.test("a".repeat(40) + "b");
  JS
}

tool "look_ahead" {
  timeout = "500ms"
  run     = <<JS
    return /^(?=(x+x+)+y)/.test("x".repeat(64));
  JS
}

tool "huge_fill" {
  timeout = "500ms"
  run     = <<JS
    return Array(1e9).fill(0).length;
  JS
}

tool "sparse_join" {
  timeout = "500ms"
  run     = <<JS
    const a = [];
    a[2 ** 32 - 2] = 1;
    return a.join().length;
  JS
}

tool "sparse_reverse" {
  timeout = "500ms"
  run     = <<JS
    const a = [];
    a[2 ** 32 - 2] = 1;
    a.reverse();
    return a.length;
  JS
}

tool "sparse_index" {
  timeout = "500ms"
  run     = <<JS
    const a = [];
    a[2 ** 32 - 2] = 1;
    return a.indexOf(2);
  JS
}

tool "sparse_for_each" {
  timeout = "500ms"
  run     = <<JS
    const a = { length: 2 ** 53 - 1 };
    Array.prototype.forEach.call(a, () => {});
  JS
}

tool "huge_power" {
  timeout = "500ms"
  run     = <<JS
    return String(9n ** (9n ** 9n)).length;
  JS
}

tool "huge_factor" {
  timeout = "500ms"
  run     = <<JS
    let n = 3n;
    for (;;) n *= n;
  JS
}

tool "normalization" {
  timeout = "500ms"
  run     = <<JS
    return "\u1e9b\u0323".repeat(5e6).normalize("NFKD").normalize("NFC").length;
  JS
}

tool "huge_split" {
  timeout = "500ms"
  run     = <<JS
    return "ab".repeat(2e7).split("").reverse().join("").length;
  JS
}

tool "endless_iterator" {
  timeout = "500ms"
  run     = <<JS
    const o = { [Symbol.iterator]: () => ({ next: () => ({ done: false }) }) };
    for (const x of o) {}
  JS
}

tool "function_source" {
  timeout = "500ms"
  run     = <<JS
    return (() => {}).constructor("return " + "1+".repeat(1e7) + "1")();
  JS
}
