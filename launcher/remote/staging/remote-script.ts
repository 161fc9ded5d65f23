/**
 * What a host's shell runs to start an agent: the installed one if its version is right, else one from the cache, else one that it asks for
 * over the command's own streams (protocol.ts), unpacks beside its place in the cache, verifies and renames. A small program of ours that
 * is sent ahead does the unpacking; the host's own tools do where it cannot.
 *
 * It passes any login shell (csh, fish) as one quoted word: no newline, no single quote, no exclamation mark, no doubled backslash.
 * Where ncclrun is installed it starts no process: the agent's script is read by this shell.
 */
import { FRAME_VERSION, FrameKind } from '../../../control/messages/frame.ts';
import { quote } from '../shell.ts';
import { BUNDLED_NODE, IDENTITY_FILE, type Identity } from './identity.ts';
import { ArchiveForm, StagingRefusal, StagingWord, UnpackerStatus } from './protocol.ts';

export interface RemoteCommand {
  /** Of the launcher's installation; the host's is looked for at the same path. */
  readonly root: string;
  readonly identity: Identity;
  /** The encoded order's, which the script must drop where it cannot start an agent for it. */
  readonly orderBytes: number;
  /** The copy in the cache has failed: a new one takes its place. */
  readonly anew: boolean;
}

/** A command line for the remote login shell. */
export function remoteCommand({ root, identity, orderBytes, anew }: RemoteCommand): string {
  const machine = `Linux ${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}`;
  const parameters = [
    root,
    identity.version,
    identity.key,
    `${orderBytes}`,
    anew ? 'anew' : 'usual',
    machine,
    hashProgram,
  ];
  return ['exec', 'sh', '-c', quote(script), 'ncclrun', ...parameters.map(quote)].join(' ');
}

const octal = (value: number): string => `\\${value.toString(8).padStart(3, '0')}`;
/** A frame without payload: the shell's printf fills in flags and subject, both below 8. */
const headerBegin = [0, 0, 0, 0, FRAME_VERSION, FrameKind.staging].map(octal).join('');
const headerEnd = octal(0).repeat(7);

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

/** Where no tool hashes. */
const hashProgram = [
  'const hash = require("crypto").createHash("sha256")',
  'process.stdin.on("data", (bytes) => hash.update(bytes)).on("end", () => console.log(hash.digest("hex")))',
].join('; ');

/**
 * Parameters: root, version, key, bytes of the order, usual or anew, machine, the program that hashes. Variables begin with n_, so that
 * none that the user has exported changes its value.
 */
const script = oneLine(`
  n_start() { ncclrun_self=$1/bin/ncclrun-agent; [ -r "$ncclrun_self" ] && . "$ncclrun_self"; };
  [ -r "$1/${IDENTITY_FILE}" ] && read -r n_version n_rest <"$1/${IDENTITY_FILE}" && [ "$n_version" = "$2" ] && n_start "$1";

  n_key=$3 n_order=$4 n_mode=$5 n_machine=$6 n_hash=$7;
  n_cache=\${XDG_CACHE_HOME:-$HOME/.cache}/ncclrun;
  n_home=$n_cache/$n_key;
  n_say() { printf "${headerBegin}\\00$1\\000\\00$2${headerEnd}"; };
  n_whole() { for n_file in ${vital.join(' ')}; do [ -s "$n_home/$n_file" ] || return 1; done; };
  [ "$n_mode" = usual ] && n_whole && n_say ${StagingWord.cached} 0 && n_start "$n_home";

  # Nothing to start. Descriptor 3 stays the launcher's where stdout is a pipe between tools.
  exec 3>&1;
  n_fail() { n_say ${StagingWord.failed} "$1" >&3; exit 125; };
  head -c "$n_order" >/dev/null;
  [ "$(uname -sm)" = "$n_machine" ] || { uname -sm >&2; n_fail ${StagingRefusal.machine}; };

  # What dead ones left behind: of this host by their process, of others that share the directory by their age.
  n_me=$(uname -n);
  n_new=$n_cache/.new-$n_me-$$;
  for n_old in "$n_cache/.new-$n_me"-*; do
    if [ -d "$n_old" ]; then kill -0 "\${n_old##*-}" 2>/dev/null || rm -rf "$n_old"; fi;
  done;
  mkdir -p "$n_cache" && rm -rf "$n_new" && mkdir "$n_new" || n_fail ${StagingRefusal.directory};
  find "$n_cache" -maxdepth 1 -name ".new-*" -mmin +60 -exec rm -rf {} + 2>/dev/null;
  trap "rm -rf \\"$n_new\\"" EXIT;
  trap "exit 125" HUP INT TERM PIPE;
  n_damaged=;
  [ -d "$n_home" ] && n_damaged=yes;

  # Each message is read to its end before the next is asked for: head may read further than it was told.
  n_skip() { dd bs=1 count=16 >/dev/null 2>&1; };
  n_next() { n_say ${StagingWord.next} 0 >&3; n_skip; head -c "$1"; };
  n_node=$n_new/$n_key/${BUNDLED_NODE};

  # Where our unpacker cannot serve. The hash is taken as the bytes pass, if it can be; else the archive is kept for it. openssl is five
  # times faster than sha256sum.
  n_by_tools() {
    n_say ${StagingWord.wanted} ${ArchiveForm.gzip};
    n_skip;
    read -r n_pieces n_piece n_last n_sum || exit 125;
    n_receive() {
      while [ "$n_pieces" -gt 1 ]; do n_next "$n_piece"; n_pieces=$((n_pieces-1)); done;
      n_next "$n_last";
    };
    n_hasher=;
    n_take() { "$n_node" -e "$n_hash"; };
    if command -v openssl >/dev/null 2>&1; then
      n_hasher=openssl;
      n_take() { openssl dgst -sha256 -r; };
    elif command -v sha256sum >/dev/null 2>&1; then
      n_hasher=sha256sum;
      n_take() { sha256sum; };
    fi;
    n_tap=$n_new/archive;
    n_passing=;
    if [ -n "$n_hasher" ] && mkfifo "$n_tap" 2>/dev/null; then
      n_take <"$n_tap" >"$n_new/sum" 3>&- &
      n_passing=yes;
    fi;
    n_receive | tee "$n_tap" | LC_ALL=C tar -xzf - -C "$n_new" || n_fail ${StagingRefusal.unpack};
    if [ -n "$n_passing" ]; then wait; else n_take <"$n_tap" >"$n_new/sum"; fi;
    read -r n_got n_rest <"$n_new/sum";
    [ "$n_got" = "$n_sum" ] || n_fail ${StagingRefusal.hash};
  };

  n_result=${UnpackerStatus.cannotServe};
  n_say ${StagingWord.unpacker} 0;
  n_skip;
  read -r n_size || exit 125;
  if [ "$n_size" -gt 0 ]; then
    n_next "$n_size" >"$n_new/unpack" && chmod +x "$n_new/unpack" || n_fail ${StagingRefusal.unpack};
    "$n_new/unpack" "$n_new" 3>&-;
    n_result=$?;
  fi;
  case $n_result in
    ${UnpackerStatus.unpacked}) ;;
    ${UnpackerStatus.cannotServe}|126|127) n_by_tools ;;
    ${UnpackerStatus.otherHash}) n_fail ${StagingRefusal.hash} ;;
    *) n_fail ${StagingRefusal.unpack} ;;
  esac;
  "$n_node" -e "process.dlopen({exports:{}},process.argv[1])" "$n_new/$n_key/build/ncclrun.node" || n_fail ${StagingRefusal.start};

  # Another host that shares the directory may be as far: mv puts ours into theirs then.
  [ "$n_damaged" = yes ] && mv "$n_home" "$n_new/old";
  n_whole || { mv "$n_new/$n_key" "$n_home" || n_fail ${StagingRefusal.directory}; rm -rf "$n_home/$n_key"; };
  rm -rf "$n_new";
  trap - EXIT HUP INT TERM PIPE;
  n_say ${StagingWord.staged} 0;
  exec 3>&-;
  n_start "$n_home";
`);

/** Statements end in a semicolon already. */
function oneLine(text: string): string {
  const lines = text.split('\n').map((line) => line.trim());
  return lines.filter((line) => line !== '' && !line.startsWith('#')).join(' ');
}
