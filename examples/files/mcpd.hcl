ceiling {
  fs_roots = ["logs"]
}
