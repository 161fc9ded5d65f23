/** Plans of jobs on machines that nobody has built, on any of their GPUs: valid, and the same for the same input. */
import { expect, it } from 'vitest';
import { decodeHostPlan } from '../../control/plan/decode.ts';
import { encodeHostPlan } from '../../control/plan/encode.ts';
import type { CommPlan } from '../../control/plan/types.ts';
import { validatePlan } from '../../control/plan/validate.ts';
import type { PlanInput, PlannedPeer } from '../../control/planner/input/input.ts';
import { Planner } from '../../control/planner/planner.ts';
import { gpusByAddress } from '../../control/topology/used-gpus.ts';
import { crossedGpus } from '../rig/crossed-gpus.ts';
import { asEncoded, gpuInput, machineOf, planCommunicator } from '../rig/plans.ts';
import { seededRandom, shuffled } from '../rig/random.ts';
import type { Random } from '../rig/random.ts';
import { randomTopology } from '../rig/random-topology.ts';

const CASES = 400 * Number(process.env['NCCLRUN_TEST_REPEAT'] ?? 1);

const peer: Omit<PlannedPeer, 'host' | 'device' | 'busId'> = {
  listenPort: 4000,
  cudaDevice: 0,
  smCount: 132,
  maxChannels: 0,
  communicators: 0,
  pidHash: '1',
};

/** On several hosts ranks on processors stand for some of the GPUs; on one they use them. */
function randomInput(random: Random): PlanInput {
  const count = random(2) === 0 ? 1 : 2 + random(3);
  const topologies = Array.from({ length: count }, () => randomTopology(random));
  const peers = topologies.flatMap((topology, host) => {
    const addresses = [...gpusByAddress(topology).keys()];
    const used = shuffled(addresses, random).slice(0, 1 + random(addresses.length));
    return used.map((address) =>
      count === 1
        ? ({ ...peer, host, device: 'cuda', busId: address.toString(16) } as const)
        : ({ ...peer, host, device: 'host', busId: '0' } as const),
    );
  });
  return {
    hosts: topologies.map((topology, host) => ({
      name: `n${host}`,
      address: `10.0.0.${host}`,
      cores: 64,
      machine: machineOf(topology),
    })),
    peers: shuffled(peers, random),
    token: '0123456789abcdef0123456789abcdef',
  };
}

it('the plan of random machines and ranks is valid and deterministic', () => {
  for (let seed = 0; seed < CASES; seed++) {
    const random = seededRandom(seed);
    const input = randomInput(random);
    const environment = { NCCL_MIN_NCHANNELS: String(1 + random(32)) };
    const plan = new Planner(null, environment).plan(input, true);
    validatePlan(plan);
    expect(new Planner(null, environment).plan(input, true), `seed ${seed}`).toEqual(plan);
    for (const host of input.hosts.keys())
      expect(decodeHostPlan(encodeHostPlan(plan, host)).plan).toEqual(asEncoded(plan, host));
  }
});

/** "collective algorithm protocol" by size. */
function variantsOf({ tuning }: CommPlan, collective: string): string[] {
  const rows = tuning.filter((row) => row.collective === collective);
  const variants = rows.map(({ variants: [variant] }) => `${variant?.algorithm} ${variant?.protocol}`);
  return variants.filter((variant, index) => variant !== variants[index - 1]);
}

it('GPUs get the variants that the model predicts as fastest for each size', () => {
  const two = planCommunicator(gpuInput(2));
  expect(variantsOf(two, 'allReduce')).toEqual([
    'directOneShot ll',
    'directOneShot ll128',
    'directTwoShot ll128',
    'directOneShot ll128',
    'copyEngine simple',
  ]);
  expect(variantsOf(two, 'sendRecv')).toEqual(['directOneShot ll', 'directOneShot ll128', 'copyEngine simple']);
  const eight = planCommunicator(gpuInput(8));
  expect(variantsOf(eight, 'allReduce')).toContain('directTwoShot ll128');
  expect(variantsOf(eight, 'barrier')).toEqual(['directOneShot ll']);
});

it('the planner makes a plan without a machine and for GPUs that the machine lacks', () => {
  const input = gpuInput(4);
  const unknown = { ...input, hosts: input.hosts.map((host) => ({ ...host, machine: null })) };
  const strangers = {
    ...input,
    peers: input.peers.map((one, rank) => ({ ...one, busId: (0xff000 + rank).toString(16) })),
  };
  for (const odd of [unknown, strangers]) {
    const plan = planCommunicator(odd);
    validatePlan(plan);
    expect(plan.channels[0]?.ring).toEqual([0, 1, 2, 3]);
  }
});

it('rings follow the links of the GPUs for any numbering of ranks', () => {
  const topology = crossedGpus();
  const host = { name: 'n0', address: '', cores: 4, machine: machineOf(topology) };
  const linked = ['02', '12', '13', '03'];
  for (const gpus of [
    [0, 1, 2, 3],
    [3, 0, 1, 2],
    [2, 1, 3, 0],
  ]) {
    const peers = gpus.map((gpu) => ({
      ...peer,
      host: 0,
      device: 'cuda' as const,
      busId: (0x10_000 + gpu * 0x1000).toString(16),
    }));
    const { channels } = planCommunicator({ hosts: [host], peers, token: '0'.repeat(32) });
    for (const { ring } of channels) {
      const pairs = ring.map((rank, index) => {
        const [one = 0, other = 0] = [gpus[rank], gpus[ring.at(index - 1) ?? 0]];
        return one < other ? `${one}${other}` : `${other}${one}`;
      });
      expect(pairs.toSorted()).toEqual(linked.toSorted());
    }
  }
});
