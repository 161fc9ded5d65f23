/** What it took to reach the hosts, and how far their clocks are off. */
import type { Finding } from '../doctor/finding.ts';
import { REACHED } from '../doctor/verdict.ts';
import type { AskedHost } from './readings-of-hosts.ts';

const SLOW_START_MS = 3000;
/** Several hosts on one machine share its processors: slow is what is far slower than the others, too. */
const TIMES_OTHERS = 3;
const CLOCK_MS = 2000;
/** Worth knowing where lines of several hosts are put in order by their time. */
const CLOCK_NOTE_MS = 50;

/** Hosts that started slowly; whether they always do, a second start shows. */
export function slowStarters(asked: readonly AskedHost[]): string[] {
  return reachFindings(asked).flatMap(({ check, answer, host }) =>
    check === REACHED && answer === 'warn' ? (host ?? []) : [],
  );
}

/** With the faster of both starts. */
export function withSecondStart(asked: readonly AskedHost[], again: readonly AskedHost[]): AskedHost[] {
  return asked.map((host) => {
    const second = again.find(({ name }) => name === host.name)?.startMs ?? null;
    return host.startMs === null || second === null ? host : { ...host, startMs: Math.min(host.startMs, second) };
  });
}

export function reachFindings(asked: readonly AskedHost[]): Finding[] {
  const times = asked.flatMap(({ startMs }) => startMs ?? []).toSorted((one, other) => one - other);
  const usual = times[times.length >> 1] ?? 0;
  return asked.flatMap((host) => [...reached(host, usual, asked.length), ...droppedLogins(host), ...clock(host)]);
}

function reached({ name, failure, startMs }: AskedHost, usualMs: number, hosts: number): Finding[] {
  const common = { check: REACHED, host: name, subject: '' };
  if (failure !== null) return [{ ...common, answer: 'fail', ...failure }];
  const isSlow = startMs !== null && startMs > SLOW_START_MS && (hosts < 2 || startMs > TIMES_OTHERS * usualMs);
  if (!isSlow) return [{ ...common, answer: 'ok', message: '', remedy: null }];
  const message = `its agent took ${((startMs ?? 0) / 1000).toFixed(1)} s to start (others: ${(usualMs / 1000).toFixed(1)})`;
  return [
    {
      ...common,
      answer: 'warn',
      message,
      remedy: 'see ssh -v: UseDNS and GSSAPIAuthentication of its sshd, its load, its home directory',
    },
  ];
}

function droppedLogins({ name, read, dropped }: AskedHost): Finding[] {
  if (read === null) return [];
  const common = { check: 'login.dropped', host: name, subject: '' };
  if (dropped === 0) return [{ ...common, answer: 'ok', message: '', remedy: null }];
  const message = `its sshd dropped ${dropped === 1 ? 'a connection' : `${dropped} connections`} before the login`;
  return [{ ...common, answer: 'warn', message, remedy: 'raise MaxStartups in its sshd_config (as root)' }];
}

function clock({ name, read, clockAheadMs }: AskedHost): Finding[] {
  if (read === null) return [];
  const common = { check: 'time.offset', host: name, subject: '' };
  if (Math.abs(clockAheadMs) <= CLOCK_NOTE_MS) return [{ ...common, answer: 'ok', message: '', remedy: null }];
  const isFar = Math.abs(clockAheadMs) > CLOCK_MS;
  const distance = isFar
    ? `${(Math.abs(clockAheadMs) / 1000).toFixed(1)} s`
    : `at least ${Math.abs(clockAheadMs).toFixed(0)} ms`;
  const message = `its clock is ${distance} ${clockAheadMs > 0 ? 'ahead of' : 'behind'} this host's`;
  return [
    {
      ...common,
      answer: isFar ? 'warn' : 'note',
      message,
      remedy: 'see timedatectl or chronyc tracking, there and here',
    },
  ];
}
