/**
 * One rank's life as the launcher knows it.
 *
 *   waiting ── spawned ──► running ── exited ──► exited
 *      │                      │
 *      ├── spawnFailed ──► unstarted
 *      └── host lost ──┴──► lost
 */
import type { Exited } from '../../control/messages/payload.ts';
import type { RankResult } from '../model/types.ts';
import { signalName } from '../model/signal-number.ts';

export type RankState =
  | { readonly name: 'waiting' }
  | { readonly name: 'running'; readonly pid: number; readonly startedAt: number }
  | {
      readonly name: 'exited';
      readonly pid: number;
      readonly startedAt: number;
      readonly endedAt: number;
      readonly exitCode: number | null;
      readonly signal: NodeJS.Signals | null;
      readonly endedByUs: boolean;
    }
  /** Could not be started, or was not needed any more. */
  | { readonly name: 'unstarted' }
  | { readonly name: 'lost'; readonly pid: number | null; readonly startedAt: number | null };

export const waiting: RankState = { name: 'waiting' };

export function isOver(state: RankState): boolean {
  return state.name === 'exited' || state.name === 'unstarted' || state.name === 'lost';
}

/** Its program ended by itself, and reported success. */
export function endedWell(state: RankState): boolean {
  return state.name === 'exited' && state.exitCode === 0;
}

export type RunningRank = RankState & { name: 'running' };
export type ExitedRank = RankState & { name: 'exited' };

/** A signal without a name (a real-time one) is reported as the status that shells make of it. */
export function exitedRank(
  { pid, startedAt }: RunningRank,
  exited: Exited,
  byUs: (time: number) => boolean,
): ExitedRank {
  const { exitCode, signalNumber, time: endedAt } = exited;
  const signal = signalNumber === null ? null : signalName(signalNumber);
  const status = signalNumber !== null && signal === null ? 128 + signalNumber : exitCode;
  return { name: 'exited', pid, startedAt, endedAt, exitCode: status, signal, endedByUs: byUs(endedAt) };
}

/** A phrase that follows the rank's name. */
export function describeEnd({ exitCode, signal }: ExitedRank): string {
  return signal === null ? `exited with status ${exitCode}` : `was killed by ${signal}`;
}

/** The same of any rank; null: it has not ended. */
export function describeOver(state: RankState): string | null {
  if (state.name === 'exited') return describeEnd(state);
  return isOver(state) ? 'could not be started' : null;
}

export function lose(state: RankState): RankState {
  switch (state.name) {
    case 'waiting':
      return { name: 'lost', pid: null, startedAt: null };
    case 'running':
      return { name: 'lost', pid: state.pid, startedAt: state.startedAt };
    case 'exited':
    case 'unstarted':
    case 'lost':
      return state;
    default:
      return state satisfies never;
  }
}

export function rankResult(rank: number, host: string, state: RankState): RankResult {
  const nothing = { pid: null, exitCode: null, signal: null, startedAt: null, endedAt: null, endedByUs: false };
  switch (state.name) {
    case 'waiting':
    case 'unstarted':
      return { rank, host, ...nothing };
    case 'running':
    case 'lost':
      return { rank, host, ...nothing, pid: state.pid, startedAt: isoTime(state.startedAt) };
    case 'exited': {
      const { pid, exitCode, signal, endedByUs } = state;
      const times = { startedAt: isoTime(state.startedAt), endedAt: isoTime(state.endedAt) };
      return { rank, host, pid, exitCode, signal, ...times, endedByUs };
    }
    default:
      return state satisfies never;
  }
}

function isoTime(time: number | null): string | null {
  return time === null ? null : new Date(time).toISOString();
}
