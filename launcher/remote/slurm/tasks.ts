/** What srun runs on each host, as words: the agent, or a copy of ncclrun for hosts that lack it. */
import { installationRoot, INVITED_AGENT } from '../../local/host.ts';
import type { InstallationIdentity } from '../staging/identity.ts';
import { FIND_COPY, IS_INSTALLED, MACHINE, MAKE_ROOM, oneLine, TAKE_PLACE } from '../staging/keep-copy.ts';
import { HUNG_STATUS, StagingRefusal } from '../staging/protocol.ts';
import { UNTRUSTED } from '../staging/remote-script.ts';
import { TRUST } from '../staging/trust.ts';
import { NO_GUARD } from '../staging/watch-script.ts';

/** Status of a shell that does not find the agent. */
const NOT_FOUND = 127;
const NOT_EXECUTABLE = 126;

/**
 * Where the agent cannot be started, or its watchdog ends it, the task fails, and srun ends the step with a message; else the task hides the status, because srun would
 * end the others. Slurm's signals are the agent's.
 */
const RUN = `
  trap : TERM INT HUP USR2;
  trap "" USR1;
  n_interrupted=0;
  n_run() {
    [ -z "$n_distrust" ] || export NCCLRUN_DISTRUST="$n_distrust";
    "$1/bin/ncclrun-agent" ${INVITED_AGENT};
    n_status=$?;
    case $n_status in ${NOT_EXECUTABLE} | ${NOT_FOUND} | ${HUNG_STATUS}) exit $n_status ;; *) exit 0 ;; esac;
  };`;

/** Parameters: root, version, key. */
const runOrCopy = oneLine(`
  ${TRUST}
  ${RUN}
  ${IS_INSTALLED}
  n_key=$3;
  ${FIND_COPY}
  n_is_installed "$1" "$2" && n_trusts "$1" all && n_run "$n_real";
  n_find_copy && n_run "$n_real";
  exit ${NOT_FOUND};
`);

/** Parameter: root. */
const runInstalled = oneLine(`
  ${TRUST}
  ${RUN}
  [ -r "$1/bin/ncclrun-agent" ] || exit ${NOT_FOUND};
  n_trusts "$1" all && n_run "$n_real";
  echo "$n_distrust" >&2;
  exit ${UNTRUSTED};
`);

/** The agent: the installed one, else that of the copy; with `identity` null the installed one, whichever it is. */
export function agentTask(identity: InstallationIdentity | null): string[] {
  if (identity === null) return ['sh', '-c', runInstalled, 'ncclrun', installationRoot];
  return ['sh', '-c', runOrCopy, 'ncclrun', installationRoot, identity.version, identity.key];
}

/** Of a task that could not start the agent, for want of one. */
export function lacksAgent(status: number): boolean {
  return status === NOT_FOUND || status === NOT_EXECUTABLE;
}

/** From here on: a StagingRefusal. */
const REFUSED = 200;

/**
 * Parameters: root, version, key, machine; on stdin the archive, compressed with gzip, whose checksums are all that is looked at: no stranger has
 * its hands on srun's streams. Every task reads to the end: srun stops giving to all of them when one is gone (Slurm 22.05).
 */
const keep = oneLine(`
  n_key=$3 n_machine=$4;
  n_end() { cat >/dev/null; exit "$1"; };
  n_fail() { echo "$n_distrust" >&2; n_end $((${REFUSED} + $1)); };
  ${TRUST}
  ${IS_INSTALLED}
  ${FIND_COPY}
  n_is_installed "$1" "$2" && n_trusts "$1" all && n_end 0;
  n_find_copy && n_end 0;
  ${NO_GUARD}
  ${MAKE_ROOM}
  LC_ALL=C tar -xzf - -C "$n_new" || n_fail ${StagingRefusal.unpack};
  ${TAKE_PLACE}
  n_end 0;
`);

/** Where neither ncclrun nor a copy is, the archive that is on stdin becomes the copy. */
export function copyTask({ version, key }: InstallationIdentity): string[] {
  return ['sh', '-c', keep, 'ncclrun', installationRoot, version, key, MACHINE];
}

/** Null if the status is no refusal. */
export function refusalOf(status: number): number | null {
  return status > REFUSED ? status - REFUSED : null;
}
