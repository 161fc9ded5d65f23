/**
 * What a host's shell runs to start an agent: the installed one if its version is right, else one from the cache, else one that it asks for
 * over the command's own streams (protocol.ts), unpacks beside the final directory in the cache, verifies and renames. A small program of
 * ours, sent ahead, unpacks; the host's own tools do if it cannot run.
 *
 * It passes any login shell (csh, fish) as one quoted word: no newline, no single quote, no exclamation mark, no doubled backslash.
 * Where ncclrun is installed it starts no process: the agent's script is read by this shell.
 */
import { FRAME_VERSION, FrameKind } from '../../../control/messages/frame.ts';
import { quote } from '../shell/shell.ts';
import type { InstallationIdentity } from './identity.ts';
import { FIND_COPY, IS_INSTALLED, MACHINE, MAKE_ROOM, oneLine, START, TAKE_PLACE } from './keep-copy.ts';
import { GUARD } from './watch-script.ts';
import { ArchiveCompression, StagingMessage, StagingRefusal, UnpackerStatus } from './protocol.ts';
import { TRUST } from './trust.ts';

interface RemoteCommand {
  /** Of the launcher's installation; the host's is looked for at the same path. */
  readonly root: string;
  readonly identity: InstallationIdentity;
  /** The encoded order's, which the script must drop where it cannot start an agent for it. */
  readonly orderBytes: number;
  /** True if the copy in the cache has failed, so that a new one replaces it. */
  readonly anew: boolean;
}

/** A command line for the remote login shell. */
export function remoteCommand({ root, identity, orderBytes, anew }: RemoteCommand): string {
  const { version, key } = identity;
  const parameters = [root, version, key, `${orderBytes}`, anew ? 'anew' : 'usual', MACHINE, hashProgram];
  return ['exec', 'sh', '-c', quote(script), 'ncclrun', ...parameters.map(quote)].join(' ');
}

/** Exit status of a host with an untrusted agent; stderr has the reason. */
export const UNTRUSTED = 124;

/** The same where nothing may be copied: the installed agent, whichever version. */
export function installedCommand(root: string): string {
  return ['exec', 'sh', '-c', quote(installedOnly), 'ncclrun', quote(root)].join(' ');
}

const octal = (value: number): string => `\\${value.toString(8).padStart(3, '0')}`;
/** A frame without payload: the shell's printf fills in flags and subject, both below 8. */
const headerBegin = [0, 0, 0, 0, FRAME_VERSION, FrameKind.staging].map(octal).join('');
const headerEnd = octal(0).repeat(7);

/** n_say WORD SUBJECT: sends a StagingMessage to the launcher. */
const SAY = `n_say() { printf "${headerBegin}\\00$1\\000\\00$2${headerEnd}"; };`;

const installedOnly = oneLine(`
  ${START}
  ${SAY}
  n_say ${StagingMessage.alive} 0;
  ${TRUST}
  [ -r "$1/bin/ncclrun-agent" ] || exit 127;
  n_trusts "$1" all && { n_start "$n_real"; exit 127; };
  echo "$n_distrust" >&2;
  exit ${UNTRUSTED};
`);

/** Where no tool hashes. */
const hashProgram = [
  'const hash = require("crypto").createHash("sha256")',
  'process.stdin.on("data", (bytes) => hash.update(bytes)).on("end", () => console.log(hash.digest("hex")))',
].join('; ');

/**
 * Parameters: root, version, key, bytes of the order, usual or anew, machine, the program that hashes. Names as in
 * keep-copy.ts.
 */
const script = oneLine(`
  ${START}
  ${SAY}
  n_say ${StagingMessage.alive} 0;
  ${TRUST}
  ${IS_INSTALLED}
  n_is_installed "$1" "$2" && n_trusts "$1" all && n_start "$n_real";

  n_key=$3 n_order=$4 n_mode=$5 n_machine=$6 n_hash=$7;
  ${FIND_COPY}
  [ "$n_mode" = usual ] && n_find_copy && n_say ${StagingMessage.cached} 0 && n_start "$n_real";

  # Nothing to start. Descriptor 3 stays the launcher's where stdout is a pipe between tools.
  exec 3>&1;
  n_fail() { echo "$n_distrust" >&2; n_say ${StagingMessage.failed} "$1" >&3; exit 125; };
  ${GUARD}
  n_guard;
  head -c "$n_order" >/dev/null;
  ${MAKE_ROOM}

  # Each message is read to its end before the next is asked for: head may read further than it was told.
  n_skip() { dd bs=1 count=16 >/dev/null 2>&1; };
  n_next() { n_say ${StagingMessage.next} 0 >&3; n_skip; head -c "$1"; };

  # Where our unpacker cannot serve. The hash is taken as the bytes pass, if it can be; else the archive is kept for it. openssl is five
  # times faster than sha256sum.
  n_by_tools() {
    n_say ${StagingMessage.wanted} ${ArchiveCompression.gzip};
    n_pieces=;
    while [ -z "$n_pieces" ]; do
      n_skip;
      read -r n_pieces n_piece n_last n_sum || exit 125;
    done;
    n_receive() {
      while [ "$n_pieces" -gt 1 ]; do n_next "$n_piece"; n_pieces=$((n_pieces-1)); done;
      n_next "$n_last";
    };
    n_hasher=;
    n_take() { n_run_node -e "$n_hash"; };
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
      n_started n_passing;
    fi;
    n_receive | tee "$n_tap" | LC_ALL=C tar -xzf - -C "$n_new" || n_fail ${StagingRefusal.unpack};
    if [ -n "$n_passing" ]; then wait "$n_passing"; else n_take <"$n_tap" >"$n_new/sum"; fi;
    read -r n_got n_rest <"$n_new/sum";
    [ "$n_got" = "$n_sum" ] || n_fail ${StagingRefusal.hash};
  };

  n_result=${UnpackerStatus.cannotServe};
  n_say ${StagingMessage.unpacker} 0;
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
  ${TAKE_PLACE}
  n_relieve;
  n_say ${StagingMessage.staged} 0;
  exec 3>&-;
  n_start "$n_home";
`);
