# Helpers of the other scripts here: source it, do not run it. They need Go and npm and
# keep other dependencies in $cache.

cache=${MCPD_CI_CACHE:-$PWD/.ci/cache}
mkdir -p "$cache"
export XDG_STATE_HOME=$cache/state # state of servers
# With the race detector every program waits for a second before it exits. The tests
# start thousands of them.
export GORACE=${GORACE:-atexit_sleep_ms=100}

# The npm packages. The suite needs Node 22, whichever node runs npm.
packages=(
  node@22.23.3
  @modelcontextprotocol/conformance@0.2.0-alpha.12
  @modelcontextprotocol/sdk@1.32.2
  @modelcontextprotocol/client@2.4.0
  @modelcontextprotocol/inspector@2.12.0
  @modelcontextprotocol/server-everything@2026.8.31
  @modelcontextprotocol/server-filesystem@2026.8.31
  @modelcontextprotocol/server-memory@2026.8.31
  typescript@7.0.2
  axe-core@4.14.1
  eslint@10.15.0
  @eslint/js@10.0.1
)

# step NAME COMMAND...: runs a step, prints its duration, and exits if it fails.
step() {
  local name=$1 began=$SECONDS
  shift
  echo "=== $name"
  if ! "$@"; then
    echo "=== $name: FAILED after $((SECONDS - began)) s"
    exit 1
  fi
  echo "=== $name: ok, $((SECONDS - began)) s"
}

# retry COMMAND...: for downloads.
retry() {
  local try
  for try in 1 2 3 4; do
    "$@" && return 0
    echo "try $try failed: $*" >&2
    [ "$try" = 4 ] || sleep $((try * 5))
  done
  return 1
}

# install_node DIR: installs Node, the conformance suite, the TypeScript SDK, the
# Inspector, the reference servers, the TypeScript compiler, axe-core and ESLint.
install_node() {
  local package file missing=()
  for package in "${packages[@]}"; do
    file=$1/node_modules/${package%@*}/package.json
    grep -qs "\"version\": \"${package##*@}\"" "$file" || missing+=("$package")
  done
  [ ${#missing[@]} = 0 ] && [ -x "$1/node_modules/node/bin/node" ] && return 0
  mkdir -p "$1"
  [ -f "$1/package.json" ] || echo '{"private": true}' >"$1/package.json"
  retry timeout 300 npm install --prefix "$1" --no-save --no-audit --no-fund --loglevel=error "${packages[@]}" || return 1
  "$1/node_modules/node/bin/node" --version
}

# need_c: installs a C compiler for the race detector.
need_c() {
  command -v "$(go env CC)" >/dev/null && return 0
  echo "installing gcc for the race detector"
  retry apt-get -qq update && retry apt-get -qq install -y --no-install-recommends gcc libc6-dev
}

# need_strace: installs strace, which shows system calls. From then on the test that
# needs it fails without it.
need_strace() {
  export MCPD_NEED_STRACE=1
  command -v strace >/dev/null && return 0
  echo "installing strace"
  retry apt-get -qq update && retry apt-get -qq install -y --no-install-recommends strace
}

# need_postgres: installs PostgreSQL. From then on the database tests fail without it
# instead of skipping. As root they run the server as another user.
need_postgres() {
  export MCPD_NEED_POSTGRES=1
  command -v initdb >/dev/null && return 0
  compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null && return 0
  echo "installing PostgreSQL for the tests of databases"
  retry apt-get -qq update && retry apt-get -qq install -y --no-install-recommends postgresql
}

# need_chromium: installs the browser that shows the console.
need_chromium() {
  command -v chromium >/dev/null && return 0
  echo "installing Chromium for the tests of the console"
  retry apt-get -qq update && retry apt-get -qq install -y --no-install-recommends chromium
}

# need_neovim: installs the editor that runs the settings of the manual.
need_neovim() {
  command -v nvim >/dev/null && return 0
  echo "installing Neovim for the test of its settings"
  retry apt-get -qq update && retry apt-get -qq install -y --no-install-recommends neovim
}

# packages_with PREFIX: prints the packages whose tests have functions of that prefix.
# Linking the tests of all packages takes longer than running them.
packages_with() {
  grep -rlE "^func $1" --include='*_test.go' --exclude-dir=.ci . | grep -vE '^./(internal/ops/compose/checks|packaging)/' | xargs -n 1 dirname | sort -u # separate modules
}

# racing: prints the packages that start goroutines, in code or tests, and those whose
# tests use a helper package (mcptest) that does. In the others the race detector finds
# nothing.
racing() {
  local starts='^[[:space:]]*go [A-Za-z_(]|errgroup|\.Go\(|AfterFunc\(' found helper modules
  found=$(grep -rlE "$starts" --include='*.go' --exclude-dir=testdata --exclude-dir=.ci --exclude-dir=peers --exclude-dir=browser .)
  for helper in $(xargs -n 1 dirname <<<"$found" | grep 'test$' | sort -u); do
    found+=$'\n'$(grep -rlF "\"github.com/mcpd/mcpd/${helper#./}\"" --include='*_test.go' --exclude-dir=testdata --exclude-dir=.ci --exclude-dir=peers --exclude-dir=browser .) || true
  done
  modules=$(find . -mindepth 2 -name go.mod -not -path './.ci/*' -printf '%h\n')
  xargs -n 1 dirname <<<"$found" | sort -u | grep -vxFf <(echo "$modules")
}

# fuzz SECONDS [PACKAGES]: runs each fuzz target for SECONDS, four at a time with one
# worker each. Coverage of PACKAGES guides them, by default of our own. go test -fuzz
# would compile all dependencies again for each target, which took longer than the
# fuzzing. Interesting inputs are barely minimized, which would take all of the time. A
# target that only the clock stops (go.dev/issue/75804) runs again.
fuzz() {
  local tests found result
  tests=$(mktemp -d)
  found=$(grep -rlE '^func Fuzz' --include='*_test.go' --exclude-dir=.ci . | grep -v '^./internal/ops/compose/checks/') # separate module
  # shellcheck disable=SC2046 # none of our directories has a space in its name
  go test -c -gcflags="${2:-github.com/mcpd/mcpd/...}=-d=libfuzzer" -o "$tests/" $(xargs -n 1 dirname <<<"$found" | sort -u) &&
    while read -r file; do
      grep -oE '^func Fuzz[A-Za-z0-9_]*' "$file" | sed "s|^func |$(dirname "$file") |"
    done <<<"$found" | sort -u | xargs -P 4 -L 1 bash -c '
    cd "$0"
    for try in 1 2 3; do
      if out=$("'"$tests"'/${0##*/}.test" -test.run "^$" -test.fuzz "^$1\$" -test.fuzztime '"$1"'s -test.fuzzminimizetime 100x -test.parallel 1 -test.fuzzcachedir "'"$tests"'/found/$0" 2>&1); then
        if echo "$out" | grep -q "without coverage guidance"; then echo "$0 $1 is fuzzed without coverage guidance"; exit 255; fi
        echo "fuzzed $0 $1: $(echo "$out" | grep -oE "execs: [0-9]+" | tail -1)"
        exit 0
      fi
      if echo "$out" | grep -q "Failing input" || ! echo "$out" | grep -q "context deadline exceeded"; then break; fi
    done
    echo "$out"
    exit 255'
  result=$?
  rm -rf "$tests"
  return $result
}

# cross_builds TARGET...: builds mcpd for other systems, such as linux/arm64.
cross_builds() {
  local target
  for target; do
    CGO_ENABLED=0 GOOS=${target%/*} GOARCH=${target#*/} go build -o /dev/null ./cmd/mcpd || return 1
    echo "built $target"
  done
}

# need_mcpd: builds mcpd into $MCPD unless the caller set it.
need_mcpd() {
  [ -n "${MCPD:-}" ] && return 0
  export MCPD=$cache/mcpd
  CGO_ENABLED=0 go build -o "$MCPD" ./cmd/mcpd
}

# free_port: prints a free TCP port.
free_port() {
  local port
  while port=$((20000 + RANDOM % 12000)); do
    (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null || break
  done
  echo "$port"
}

# ready PORT: reports whether mcpd is ready on the port.
ready() {
  (
    exec 3<>"/dev/tcp/127.0.0.1/$1"
    printf 'GET /readyz HTTP/1.0\r\nHost: localhost:%d\r\n\r\n' "$1" >&3
    read -r _ status _ <&3
    [ "$status" = 200 ]
  ) 2>/dev/null
}

# wait_ready PORT PID: waits until the mcpd of that process is ready.
wait_ready() {
  local try
  for try in $(seq 600); do
    ready "$1" && return 0
    kill -0 "$2" 2>/dev/null || break
    sleep 0.1
  done
  echo "no server is ready on port $1" >&2
  return 1
}

# with_server starts an mcpd in the background with the given command, and stop_server
# stops it. stop_server fails unless mcpd exits with status 0. finish is an exit trap
# of the scripts: it stops the processes and removes $work.
server=
work=

with_server() {
  "$@" &
  server=$!
}

stop_server() {
  local stopped=$server
  server=
  kill -TERM "$stopped"
  wait "$stopped"
}

finish() {
  [ -z "$server" ] || stop_server || true
  [ -z "$work" ] || rm -rf "$work"
}
