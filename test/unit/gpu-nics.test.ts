/** Which network cards the planner lets read and write GPUs' memory (GPUDirect). */
import { describe, expect, test } from 'vitest';
import { cardAddress, cardNumber } from '../../control/plan/gpu-nics.ts';
import type { GpuNic } from '../../control/plan/gpu-nics.ts';
import { everyElement } from '../../control/topology/element.ts';
import { Planner } from '../../control/planner/planner.ts';
import { knownMachine } from '../../control/planner/known-machine.ts';
import type { PlanInput } from '../../control/planner/input/input.ts';
import type { Environment } from '../../control/planner/input/variables.ts';
import { eightGpus } from '../rig/eight-gpus.ts';
import { gpuInput } from '../rig/plans.ts';

/** Eight GPUs on each of two hosts, each GPU beside a card under a PCI switch. */
function planned(
  environment: Environment,
  change: (name: string, attributes: Map<string, string>) => void = () => {},
): readonly GpuNic[] {
  const topology = eightGpus();
  for (const one of everyElement(topology)) change(one.name, one.attributes);
  const machine = knownMachine({ topology, graphs: null }, { environment, dumpGraphs: null, problem: () => undefined });
  const input = gpuInput(16, 2);
  return gpuNicsOf({ ...input, hosts: input.hosts.map((host) => ({ ...host, machine })) }, environment);
}

function gpuNicsOf(input: PlanInput, environment: Environment): readonly GpuNic[] {
  return new Planner(null, environment).plan(input, true).hosts[1]?.gpuNics ?? [];
}

/** Of the first GPU: its own card, one of the same processor, one of the other one, and any other card. */
function verdicts(nics: readonly GpuNic[]): string[] {
  return ['0000:10:03.0', '0000:14:03.0', '0000:28:03.0', null].map((card) => {
    const found = nics.find((one) => one.local === 0 && one.card === card);
    return found === undefined ? 'none' : `${found.path} ${found.receives} ${found.sends}`;
  });
}

describe('GPUDirect in a plan', () => {
  test('a card under the GPU’s PCI switch is near enough, one behind the host bridge is not', () => {
    const nics = planned({});
    expect(nics).toHaveLength(8 * 9);
    expect(verdicts(nics)).toEqual([
      'PIX allowed allowed',
      'PHB tooFar tooFar',
      'SYS tooFar tooFar',
      'PHB tooFar tooFar',
    ]);
  });

  test.each([
    ['SYS', ['PIX', 'PHB', 'SYS', 'PHB'].map((path) => `${path} allowed allowed`)],
    ['PHB', ['PIX allowed allowed', 'PHB allowed allowed', 'SYS tooFar tooFar', 'PHB allowed allowed']],
    ['3', ['PIX allowed allowed', 'PHB allowed allowed', 'SYS tooFar tooFar', 'PHB allowed allowed']],
    ['1', ['PIX allowed allowed', 'PHB tooFar tooFar', 'SYS tooFar tooFar', 'PHB tooFar tooFar']],
    ['LOC', ['PIX', 'PHB', 'SYS', 'PHB'].map((path) => `${path} tooFar tooFar`)],
  ])('NCCL_NET_GDR_LEVEL=%s moves the limit', (level, expected) => {
    expect(verdicts(planned({ NCCL_NET_GDR_LEVEL: level }))).toEqual(expected);
  });

  test('NCCL_NET_GDR_READ=0 leaves what is sent in memory of the host', () => {
    expect(verdicts(planned({ NCCL_NET_GDR_READ: '0' }))[0]).toBe('PIX allowed noReads');
  });

  test('GPUs before compute capability 8.0 without NVLinks are not read by cards', () => {
    const nics = planned({}, (name, attributes) => {
      if (name === 'gpu') attributes.set('sm', '70');
      if (name === 'nvlink') attributes.set('count', '0');
    });
    expect(verdicts(nics)[0]).toBe('PIX allowed noReads');
    expect(verdicts(planned({}, (name, attributes) => name === 'gpu' && attributes.set('sm', '70')))[0]).toBe(
      'PIX allowed allowed',
    );
  });

  test('a GPU that lets no card reach its memory says so', () => {
    const nics = planned({}, (name, attributes) => name === 'gpu' && attributes.set('gdr', '0'));
    expect(verdicts(nics)[0]).toBe('PIX gpuRefuses gpuRefuses');
  });

  test('the distance of a card counts, also where the topology says that it reaches no GPU memory', () => {
    const nics = planned({}, (name, attributes) => name === 'net' && attributes.set('gdr', '0'));
    expect(verdicts(nics)[0]).toBe('PIX allowed allowed');
  });

  test('only NCCL_NET_GDR_LEVEL=SYS lets cards reach GPUs where no topology is known', () => {
    const known = gpuInput(4, 2);
    const input = { ...known, hosts: known.hosts.map((host) => ({ ...host, machine: null })) };
    const far = { card: null, path: 'SYS', receives: 'tooFar', sends: 'tooFar' };
    expect(gpuNicsOf(input, {})).toEqual([
      { local: 0, ...far },
      { local: 1, ...far },
    ]);
    expect(gpuNicsOf(input, { NCCL_NET_GDR_LEVEL: 'SYS' })[1]).toMatchObject({
      local: 1,
      receives: 'allowed',
      sends: 'allowed',
    });
    expect(gpuNicsOf(input, { NCCL_NET_GDR_LEVEL: '5', NCCL_NET_GDR_READ: '0' })[1]).toMatchObject({
      sends: 'noReads',
    });
  });

  test('a plan of one host has none', () => {
    expect(new Planner(null).plan(gpuInput(8), true).hosts[0]?.gpuNics).toEqual([]);
  });

  test.each(['0000:1b:00.0', '0001:ff:1f.0'])('the number of card %s is its own', (address) => {
    expect(cardAddress(cardNumber(address))).toBe(address);
    expect(cardNumber(address.replace(/0$/u, '1'))).toBe(cardNumber(address));
  });
});
