# Scripts that want all memory there is.

tool "doubling_text" {
  timeout = "3s"
  run     = <<JS
    let s = "x";
    for (;;) s += s;
  JS
}

tool "doubling_array" {
  timeout = "3s"
  run     = <<JS
    let a = [1];
    for (;;) a = a.concat(a);
  JS
}

tool "many_buffers" {
  timeout = "3s"
  run     = <<JS
    const kept = [];
    for (;;) kept.push(new Uint8Array(1e8).fill(1));
  JS
}

tool "empty_buffers" {
  timeout = "3s"
  run     = <<JS
    const kept = [];
    for (;;) kept.push(new ArrayBuffer(1e9));
  JS
}

tool "many_objects" {
  timeout = "3s"
  run     = <<JS
    const kept = [];
    for (;;) kept.push({ a: { b: { c: [kept.length] } } });
  JS
}

tool "many_keys" {
  timeout = "3s"
  run     = <<JS
    const m = new Map();
    for (let i = 0; ; i++) m.set("key" + i, i);
  JS
}

tool "expansion" {
  timeout = "3s"
  run     = <<JS
    return "a".repeat(1e6).replaceAll("a", "b".repeat(1e5)).length;
  JS
}

tool "padding" {
  timeout = "3s"
  run     = <<JS
    return "".padEnd(2 ** 30, "abc").length;
  JS
}

tool "sparse_sort" {
  timeout = "3s"
  run     = <<JS
    const a = [];
    a[2 ** 32 - 2] = 1;
    a.sort();
    return a.length;
  JS
}

tool "spread_iterator" {
  timeout = "3s"
  run     = <<JS
    const o = { [Symbol.iterator]: () => ({ next: () => ({ done: false, value: 1 }) }) };
    return [...o].length;
  JS
}

tool "array_from" {
  timeout = "3s"
  run     = <<JS
    return Array.from({ length: 2 ** 32 - 1 }, (_, i) => ({ i })).length;
  JS
}

tool "endless_closures" {
  timeout = "3s"
  run     = <<JS
    let f = () => 0;
    for (;;) {
      const g = f;
      f = () => g;
    }
  JS
}

tool "many_promises" {
  timeout = "3s"
  run     = <<JS
    const kept = [];
    for (;;) kept.push(new Promise(() => {}));
  JS
}
