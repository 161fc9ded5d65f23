/** Why an agent never spoke, where the host's watchdog or our own watch has ended its start. */
import { describeStall, type StartStall } from '../../control/link/start-watch.ts';
import type { AgentFailure, HostUnreachableFailure } from '../model/failure.ts';
import { sayLast } from './shell/say-last.ts';
import type { RemoteExit } from './shell/shell.ts';

/** How the watchdog's sentence begins on the host's stderr (native/watchdog). */
const WATCHDOG = /^ncclrun-watchdog: (.*)$/m;

/** `remarks`: what the host said on stderr. */
export function hungFailure(host: string, remarks: string): AgentFailure {
  const why = WATCHDOG.exec(remarks)?.[1] ?? 'its watchdog ended it';
  return {
    type: 'agent',
    host,
    phase: 'hello',
    message: `the agent on ${host} did not come up: ${why}`,
    remedy: `look at what ${host} is busy with: its load, its file systems (df), its limits (ulimit -a)`,
  };
}

/** The host's shell had begun, and there is no agent. */
export function endedFailure(host: string, { status, remarks }: RemoteExit): AgentFailure {
  const how = status === null ? 'it was killed, or its connection ended' : `it ended with status ${status}`;
  return {
    type: 'agent',
    host,
    phase: 'hello',
    message: `the agent on ${host} did not come up: ${sayLast(remarks) ?? how}`,
    remedy: `look at what ${host} is busy with: its load, its file systems (df), its limits (ulimit -a)`,
  };
}

/** `trial`: what to type to go the same way by hand; `step`: how far the start was, for people. */
export function stallFailure(
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
