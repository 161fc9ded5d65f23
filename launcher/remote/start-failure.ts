/** Why an agent never spoke, where the host's watchdog or our own watch has ended its start. */
import { basename } from 'node:path';
import type { StartStall } from '../../control/link/start-watch.ts';
import type { AgentFailure, HostUnreachableFailure } from '../job/failure.ts';

/** How the watchdog's sentence begins on the host's stderr (native/watchdog). */
const WATCHDOG = /^(?:ncclrun-watchdog: )(?:the agent )?(.*)$/m;

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

/** `trial`: what to type to go the same way by hand; `step`: how far the start was, for people. */
export function stallFailure(
  host: string,
  stall: StartStall,
  { step, trial }: { readonly step: string; readonly trial: string },
): HostUnreachableFailure {
  const base = { type: 'host-unreachable', host, phase: 'hello' } as const;
  if (stall.type === 'stopped') {
    const program = basename(trial.split(' ', 1)[0] ?? '');
    const detail = `${program} (process ${stall.pid} on this host) was stopped for ${seconds(stall.stoppedMs)} and was ended`;
    return { ...base, cause: 'shell', detail, remedy: 'find out who sent it SIGSTOP, and start the job again' };
  }
  const silent = seconds(stall.silentMs);
  const remedy = `try: ${trial}`;
  switch (stall.phase) {
    case 'connecting':
      return { ...base, cause: 'timeout', detail: `no agent answered within ${silent} (${step})`, remedy };
    case 'login': {
      const detail = `we are logged in, but the login shell of ${host} has not run our command within ${silent}`;
      return { ...base, cause: 'timeout', detail, remedy: `${remedy}; a larger ConnectTimeout waits longer` };
    }
    case 'starting':
      return { ...base, cause: 'timeout', detail: `the host fell silent for ${silent} (${step})`, remedy };
    default:
      return stall.phase satisfies never;
  }
}

function seconds(milliseconds: number): string {
  return `${Math.round(milliseconds / 1000)} s`;
}
