/** What the commands say of InfiniBand and RoCE ports, on the stand-in's. */
import { afterAll, expect, it } from 'vitest';
import { Command } from '../rig/command.ts';
import { StandInVerbs } from '../rig/stand-in-verbs.ts';

const verbs = new StandInVerbs();
afterAll(() => verbs[Symbol.dispose]());

const DEVICES = 'device=sia port=2 state=down device=sib gbps=400 mtu=1024 roce=1';

it('ncclrun topo lists every port, also one that is down, with the GID that jobs use', async () => {
  const { status, stdout } = await Command.run(['topo'], { environment: verbs.environment(DEVICES) });
  expect(status).toBe(0);
  expect(stdout).toMatch(/^sia +1 +Ethernet +100 Gb\/s +4096 +active +\S+ +::ffff:10\.8\.0\.1, index 1$/m);
  expect(stdout).toMatch(/^sia +2 +Ethernet +100 Gb\/s +4096 +not active +\S+ +none: not active$/m);
  expect(stdout).toMatch(/^sib +1 +Ethernet +400 Gb\/s +1024 +active +\S+ +::ffff:10\.8\.0\.2, index 2$/m);
});

it('ncclrun topo --json has the ports', async () => {
  const { stdout } = await Command.run(['topo', '--json'], {
    environment: { ...verbs.environment(DEVICES), NCCL_IB_HCA: 'sib' },
  });
  expect(JSON.parse(stdout)).toMatchObject({
    verbs: [
      { card: 'sia', port: 1, gid: null, unusedBecause: 'not in NCCL_IB_HCA=sib' },
      { card: 'sia', port: 2, gid: null, unusedBecause: 'not active' },
      { card: 'sib', port: 1, speedMbps: 400_000, gid: { gid: '::ffff:10.8.0.2' }, unusedBecause: null },
    ],
  });
});

it('ncclrun topo says in one line why there is no InfiniBand where the library is missing', async () => {
  const { status, stderr, stdout } = await Command.run(['topo'], {
    environment: { NCCL_IBVERBS_LIB: '/nowhere/libibverbs.so.1' },
  });
  expect(status).toBe(0);
  expect(stderr.split('\n').filter((line) => line.includes('InfiniBand'))).toEqual([
    expect.stringMatching(/^ncclrun: no InfiniBand: .*\/nowhere\/libibverbs\.so\.1/),
  ]);
  expect(stdout).not.toContain('GID of jobs');
});

it.each([
  [{}, /network IB, NICs: sia port 1 \(::ffff:10\.8\.0\.1, 100 Gb\/s\), sib port 1 /, /^ncclrun: network IB, NICs: /m],
  [
    { NCCL_IB_DISABLE: '1' },
    /network Socket, NICs: \S+ \(/,
    /^ncclrun: network Socket, .*; not IB: NCCL_IB_DISABLE=1$/m,
  ],
])(
  'NCCL_DEBUG=INFO names the network and NICs of rank 0, and the launcher the reason (%j)',
  async (more, rank, launcher) => {
    const environment = { ...verbs.environment(), ...more, NCCL_DEBUG: 'INFO', NCCLRUN_DEVICE: 'host' };
    const argv = ['-n', '2', '--simulate-hosts', '2', '--tag-output=none', 'examples/all-reduce.ts'];
    const { status, stderr } = await Command.run(argv, { environment });
    expect(status).toBe(0);
    const own = stderr.split('\n').filter((line) => /NCCL INFO .*: network /.test(line));
    expect(own).toEqual([expect.stringMatching(/INFO rank 0 of 2 on simulated-1: network /)]);
    expect(own[0]).toMatch(rank);
    expect(stderr).toMatch(launcher);
  },
);
