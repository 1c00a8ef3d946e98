ceiling {
  exec_paths = ["/opt/deploy/bin/deploy"]
  ask        = ["sample"]
}
