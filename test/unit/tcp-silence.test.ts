import { describe, expect, it } from 'vitest';
import { sshConnection, TcpSilence } from '../../worker/agent/tcp-silence.ts';

const head = '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode';
/** As proc(5) has it: 10.77.0.12:22 ← 10.77.0.1:40000. */
const row = (queued: string, timer: string, again: string, probes = '0'): string =>
  `   1: 0C004D0A:0016 01004D0A:9C40 01 ${queued}:00000000 ${timer}:00000014 ${again}     0        ${probes} 4711 2 0`;
const connection = sshConnection({ SSH_CONNECTION: '10.77.0.1 40000 10.77.0.12 22' });

function silentAfter(tables: readonly string[], through = connection): number | null {
  if (through === null) throw new Error('there is no connection');
  let silent: number | null = null;
  let table = '';
  const watch = new TcpSilence({
    connection: through,
    everyMs: 1000,
    leaseMs: 3000,
    onSilent: (ms) => (silent = ms),
    table: () => table,
  });
  for (table of tables) if (silent === null) watch.tick();
  return silent;
}

const many = (line: string): string[] => Array.from({ length: 10 }, () => `${head}\n${line}\n`);

describe('detection of a silent peer', () => {
  it('the peer is silent if retransmissions stay unacknowledged for longer than the lease', () => {
    expect(silentAfter(many(row('00000040', '01', '00000003')))).toBe(4000);
  });

  it('the peer is silent if it answers no window probe', () => {
    expect(silentAfter(many(row('00000040', '04', '00000000', '3')))).toBe(4000);
  });

  it('the peer is not silent if nothing is queued, its window is full or the connection is unknown', () => {
    expect(silentAfter(many(row('00000000', '02', '00000000')))).toBe(null);
    expect(silentAfter(many(row('00000040', '04', '00000003')))).toBe(null);
    expect(silentAfter(many(row('00000040', '01', '00000000')))).toBe(null);
    expect(silentAfter(many('   1: 0D004D0A:0016 01004D0A:9C40 01 00000040:00000000 01:00000014 00000003 0 0 1'))).toBe(
      null,
    );
  });

  it('the peer is not silent if it answers in between', () => {
    const unanswered = many(row('00000040', '01', '00000003')).slice(0, 3);
    expect(silentAfter([...unanswered, ...many(row('00000000', '00', '00000000')), ...unanswered])).toBe(null);
  });

  it('the peer is detected as silent over IPv6 and mapped IPv4', () => {
    const words = '0000000000000000FFFF0000';
    const mapped = `   1: ${words}0C004D0A:0016 ${words}01004D0A:9C40 01 00000040:00000000 01:00000014 00000003 0 0 1`;
    expect(silentAfter(many(mapped))).toBe(4000);
    const six = sshConnection({ SSH_CONNECTION: '2001:db8::1 40000 fe80::2%eth0 22' });
    const line =
      '1: 000080FE000000000000000002000000:0016 B80D0120000000000000000001000000:9C40 01 00000040:00000000 01:00000014 00000003 0 0 1';
    expect(silentAfter(many(line), six)).toBe(4000);
  });
});

it('sshConnection is null for a process that sshd did not start', () => {
  expect(sshConnection({})).toBe(null);
});
