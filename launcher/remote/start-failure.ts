/** Why an agent never spoke, as a failure with a remedy. */
import { describeStall, type StartStall } from '../../control/link/start-watch.ts';
import { agentPath } from '../local/host.ts';
import type { AgentFailure, HostUnreachableFailure } from '../model/failure.ts';
import type { HostSlots } from '../model/types.ts';
import { lastLine } from './shell/last-line.ts';
import { SSH_FAILED, type RemoteExit, type RemoteShell } from './shell/shell.ts';
import { explainLogin, explainSsh } from './ssh-error.ts';
import type { AttemptEnd } from './start-attempt.ts';
import { HUNG_STATUS } from './staging/protocol.ts';
import { UNTRUSTED } from './staging/remote-script.ts';

/** How the watchdog's sentence begins on the host's stderr (native/watchdog). */
const WATCHDOG = /^ncclrun-watchdog: (.*)$/m;

/** Status of a login shell that does not find the command. */
const COMMAND_NOT_FOUND = 127;
const COMMAND_NOT_EXECUTABLE = 126;
/** Of an attempt in which no agent spoke. */
export async function explainStart(
  { exit, problem, stall, began, hung, step, staging }: AttemptEnd,
  slots: HostSlots,
  shell: RemoteShell,
): Promise<HostUnreachableFailure | AgentFailure> {
  const { name: host } = slots;
  const unstaged = (await staging?.failure(exit.stderr)) ?? null;
  if (unstaged !== null) return unstaged;
  if (exit.failure !== undefined) return exit.failure;
  if (hung || exit.status === HUNG_STATUS) return hungFailure(host, exit.stderr);
  if (stall !== null) return stallFailure(host, stall, { step, trial: shell.trial(slots, false) });
  const base = { type: 'agent', host, phase: 'hello' } as const;
  const isCommands = began || shell.hasLogin === false;
  if (isCommands && (exit.status === COMMAND_NOT_FOUND || exit.status === COMMAND_NOT_EXECUTABLE)) {
    const message = `ncclrun was not found on ${host}: looked for ${agentPath}`;
    return {
      ...base,
      message,
      remedy: `let it be copied there (--stage auto), or install ncclrun on ${host} at the same path as here`,
    };
  }
  if (exit.status === UNTRUSTED) {
    return {
      ...base,
      message: `ncclrun on ${host} may be another user's: ${lastLine(exit.stderr) ?? agentPath}`,
      remedy:
        'let it belong to you or root, writable by nobody else (chown, chmod go-w), or let ncclrun be copied there (--stage auto)',
    };
  }
  if (problem !== null) {
    const remedy = `its login must run our command and may only print before it: ${shell.trial(slots, false)}`;
    return { ...base, message: `what came from ${host} is not ncclrun's agent: ${problem}`, remedy };
  }
  if (began && exit.problem === undefined && exit.status !== SSH_FAILED) return endedFailure(host, exit);
  if (!began && endedByHost(exit, shell)) return explainLogin(slots, exit, shell.trial(slots, false));
  return explainSsh(slots, exit, shell.trial(slots, true));
}

/** With a status that is not the remote shell's own. */
function endedByHost({ status, problem }: RemoteExit, shell: RemoteShell): boolean {
  if (status === null || problem !== undefined) return false;
  const ofCommand = [COMMAND_NOT_FOUND, COMMAND_NOT_EXECUTABLE].includes(status);
  return shell.mayFailWith === undefined ? ofCommand : !shell.mayFailWith(status);
}

/** `stderr`: of the host. */
function hungFailure(host: string, stderr: string): AgentFailure {
  const why = WATCHDOG.exec(stderr)?.[1] ?? 'its watchdog ended it';
  return {
    type: 'agent',
    host,
    phase: 'hello',
    message: `the agent on ${host} did not come up: ${why}`,
    remedy: `look at what ${host} is busy with: its load, its file systems (df), its limits (ulimit -a)`,
  };
}

/** The host's shell had begun, and there is no agent. */
function endedFailure(host: string, { status, stderr }: RemoteExit): AgentFailure {
  const how = status === null ? 'it was killed, or its connection ended' : `it ended with status ${status}`;
  return {
    type: 'agent',
    host,
    phase: 'hello',
    message: `the agent on ${host} did not come up: ${lastLine(stderr) ?? how}`,
    remedy: `look at what ${host} is busy with: its load, its file systems (df), its limits (ulimit -a)`,
  };
}

/** `trial`: what to type to connect by hand in the same manner; `step`: how far the start was, for people. */
function stallFailure(
  host: string,
  stall: StartStall,
  { step, trial }: { readonly step: string; readonly trial: string },
): HostUnreachableFailure {
  const base = { type: 'host-unreachable', host, phase: 'hello' } as const;
  const detail = `${describeStall(stall)} (${step})`;
  if (stall.type === 'stopped')
    return { ...base, cause: 'shell', detail, remedy: 'find out who sent it SIGSTOP, and start the job again' };
  const longer = stall.phase === 'login' ? '; a larger ConnectTimeout waits longer' : '';
  return { ...base, cause: 'timeout', detail, remedy: `try: ${trial}${longer}` };
}
