/**
 * What shells of hosts do to keep a copy of ncclrun, as statements for scripts of one line. Variables and functions begin with n_, so that none
 * that the user has exported changes its value.
 */
import { BUNDLED_NODE, IDENTITY_FILE } from './identity.ts';
import { StagingRefusal } from './protocol.ts';

/** uname -sm where a copy of ours can run. */
export const MACHINE = `Linux ${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}`;

/** Of which a copy has something, or it is none: a machine that lost its power leaves empty files. */
const vital = [
  IDENTITY_FILE,
  BUNDLED_NODE,
  'bin/ncclrun-agent',
  'dist/bundle/agent.cjs',
  'dist/bundle/agent.bundle.cjs',
  'build/ncclrun.node',
  'build/libnccl.so.2',
  'build/ncclrun-guardian',
];

/** n_start ROOT: executes the agent in place of the shell, if there is one. Passes on the rejected files. Ignores signals meant for ranks. */
export const START = `trap "" USR1; n_start() {
  ncclrun_self=$1/bin/ncclrun-agent;
  [ -z "$n_distrust" ] || export NCCLRUN_DISTRUST="$n_distrust";
  [ -r "$ncclrun_self" ] && . "$ncclrun_self";
};`;

/** n_is_installed ROOT VERSION. */
export const IS_INSTALLED = `n_is_installed() {
  [ -r "$1/${IDENTITY_FILE}" ] && read -r n_have n_rest <"$1/${IDENTITY_FILE}" && [ "$n_have" = "$2" ];
};`;

/**
 * n_find_copy: where one is that can be trusted (TRUST), its path without symbolic links into n_real. A copy goes to the cache directory, or where
 * others may write to that, to one whose name contains the user.
 */
export const FIND_COPY = `
  n_use() { n_cache=$1 n_home=$1/$n_key; };
  n_whole() { for n_file in ${vital.join(' ')}; do [ -s "$n_home/$n_file" ] || return 1; done; };
  n_is_here() { n_use "$1"; n_whole && n_trusts "$n_home" all; };
  n_in_places() { "$1" "\${XDG_CACHE_HOME:-$HOME/.cache}/ncclrun" || "$1" "/var/tmp/ncclrun-$n_uid"; };
  n_find_copy() { n_in_places n_is_here; };`;

/**
 * n_new, where to unpack, for as long as the shell lives, if this is the n_machine that ours runs on. Calls n_fail REFUSAL, and n_relieve at the
 * shell's end. n_run_node: the unpacked Node, without what makes it load other code or open a debugger.
 */
export const MAKE_ROOM = `
  [ "$(uname -sm)" = "$n_machine" ] || { uname -sm >&2; n_fail ${StagingRefusal.machine}; };

  n_umask=$(umask);
  umask go-w;
  n_is_room() { n_use "$1"; n_trusts_place "$1"; };
  n_in_places n_is_room || n_fail ${StagingRefusal.untrusted};

  # What dead ones left behind: of this host by their process, of others that share the directory by their age.
  n_me=$(uname -n);
  n_new=$n_cache/.new-$n_me-$$;
  for n_old in "$n_cache/.new-$n_me"-*; do
    if [ -d "$n_old" ]; then kill -0 "\${n_old##*-}" 2>/dev/null || rm -rf "$n_old"; fi;
  done;
  mkdir -p "$n_cache" || n_fail ${StagingRefusal.directory};
  n_trusts "$n_cache" || n_fail ${StagingRefusal.untrusted};
  rm -rf "$n_new" && mkdir "$n_new" || n_fail ${StagingRefusal.directory};
  find "$n_cache" -maxdepth 1 -name ".new-*" -mmin +60 -exec rm -rf {} + 2>/dev/null;
  trap "n_relieve; rm -rf \\"$n_new\\"" EXIT;
  trap "exit 125" HUP INT TERM PIPE;
  n_damaged=;
  [ -d "$n_home" ] && n_damaged=yes;
  n_node=$n_new/$n_key/${BUNDLED_NODE};
  n_run_node() { NODE_OPTIONS= NODE_PATH= OPENSSL_CONF= "$n_node" --disable-sigusr1 "$@"; };`;

/** What was unpacked becomes the copy, if it runs. Calls n_fail REFUSAL. */
export const TAKE_PLACE = `
  n_run_node -e "process.dlopen({exports:{}},process.argv[1])" "$n_new/$n_key/build/ncclrun.node" || n_fail ${StagingRefusal.start};

  # Another host that shares the directory may be as far: mv puts ours into theirs then.
  [ "$n_damaged" = yes ] && mv "$n_home" "$n_new/old";
  n_whole || { mv "$n_new/$n_key" "$n_home" || n_fail ${StagingRefusal.directory}; rm -rf "$n_home/$n_key"; };
  rm -rf "$n_new";
  trap - EXIT HUP INT TERM PIPE;
  umask "$n_umask";`;

/** Statements end in a semicolon already. */
export function oneLine(text: string): string {
  const lines = text.split('\n').map((line) => line.trim());
  return lines.filter((line) => line !== '' && !line.startsWith('#')).join(' ');
}
