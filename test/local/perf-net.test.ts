/** `ncclrun perf net` as a user types it: over sockets, and over the stand-in for libibverbs. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { Command, type Outcome } from '../rig/command.ts';
import { StandInVerbs } from '../rig/stand-in-verbs.ts';

const verbs = new StandInVerbs();
afterAll(() => verbs[Symbol.dispose]());

const SOCKETS = { NCCL_NET: 'Socket' };
const NUMBER = '\\d+\\.\\d\\d';

function measure(environment: NodeJS.ProcessEnv, ...words: readonly string[]): Promise<Outcome> {
  return Command.run(['perf', 'net', ...words], { environment });
}

/** Rows of the table: ends, then numbers. */
const rows = (stdout: string): string[] => stdout.split('\n').filter((line) => line.startsWith('  '));

it('every two of three hosts are measured over sockets, both ways', async () => {
  const { status, stdout, stderr } = await measure(SOCKETS, '--simulate-hosts', '3', '--sizes', '64K,1M');
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  expect(stdout).toMatch(/^# network Socket, 3 hosts, 1 NIC each; one pair after another$/m);
  const ends = rows(stdout).map((row) => row.replace(new RegExp(`( +${NUMBER}){4}$`), ''));
  const nicless = ends.map((end) =>
    end
      .replaceAll(/simulated-(\d) \S+/g, '$1')
      .trim()
      .split(/ +/)
      .join('>'),
  );
  expect(nicless).toEqual(['1>2', '2>1', '1>3', '3>1', '2>3', '3>2']);
  expect(stdout).toMatch(new RegExp(`^# median: ${NUMBER} us, ${NUMBER} GB/s at 64K, ${NUMBER} GB/s at 1M$`, 'm'));
  expect(stdout).toMatch(/^# GB\/s of 1M from row to column/m);
});

it('the rails of two hosts are measured over InfiniBand', async () => {
  const { status, stdout } = await measure(verbs.environment(), '--simulate-hosts', '2', '--sizes', '64K', '--json');
  expect(status).toBe(0);
  const document: unknown = JSON.parse(stdout);
  expect(document).toMatchObject({
    network: 'IB',
    sizes: ['64K'],
    hosts: [
      {
        nics: [
          { name: 'sia', port: 1 },
          { name: 'sib', port: 1 },
        ],
      },
      { name: 'simulated-2' },
    ],
    ok: true,
  });
  const ends = [
    [0, 0, 1, 0],
    [1, 0, 0, 0],
    [0, 1, 1, 1],
    [1, 1, 0, 1],
  ];
  expect(document).toMatchObject({
    pairs: ends.map(([host, nic, far, farNic]) => ({
      from: { host, nic },
      to: { host: far, nic: farNic },
      latencyUs: expect.any(Number),
      gigabytes: [expect.any(Number)],
      error: null,
    })),
  });
  expect(stdout).not.toMatch(/"(?:latencyUs|gigabytes)":\[?0[,\]]/);
});

it('--nics all measures each NIC with each', async () => {
  const { stdout } = await measure(verbs.environment(), '--simulate-hosts', '2', '--sizes', '4K', '--nics', 'all');
  expect(rows(stdout)).toHaveLength(8);
  expect(stdout).toMatch(/^ {2}simulated-1 sia:1 +simulated-2 sib:1 /m);
});

it('a NIC that cannot connect is named with both ends and the error, and the rest is measured', async () => {
  const environment = verbs.environment();
  const control = join(environment['STAND_IN_VERBS_DIR'] ?? '', 'control');
  writeFileSync(control, 'refuse=qp device=sib errno=12 count=1000\n');
  const { status, stdout } = await measure(environment, '--simulate-hosts', '2', '--sizes', '4K');
  writeFileSync(control, '');
  expect(status).toBe(1);
  expect(stdout).toMatch(
    /^ {2}simulated-1 sib:1 +simulated-2 sib:1 +failed: sib \(::ffff:10\.8\.0\.2\) of simulated-1: .*; sib \(::ffff:10\.8\.0\.2\) of simulated-2: .*Cannot allocate memory/m,
  );
  expect(stdout).toMatch(new RegExp(`^ {2}simulated-1 sia:1 +simulated-2 sia:1( +${NUMBER}){3}$`, 'm'));
  expect(stdout).toMatch(/^# 2 of 4 failed$/m);
});

it('one host has no network to measure', async () => {
  const { status, stderr } = await measure(SOCKETS, '-H', 'localhost');
  expect(status).toBe(1);
  expect(stderr).toContain('the job has one host: there is no network to measure');
});
