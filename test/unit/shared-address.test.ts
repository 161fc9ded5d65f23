/** GPUs that share a PCI address, and files that leave out what providers leave out. */
import { expect, it } from 'vitest';
import type { PlanInput, PlannedPeer } from '../../control/planner/input/input.ts';
import { Planner } from '../../control/planner/planner.ts';
import { planCluster } from '../../control/planner/cluster/plan-cluster.ts';
import { validatePlan } from '../../control/plan/validate.ts';
import { elementsOf, everyElement } from '../../control/topology/element.ts';
import type { Element } from '../../control/topology/element.ts';
import { fuse } from '../../control/topology/fuse.ts';
import { readTopology } from '../../control/topology/read-topology.ts';
import { makePaint } from '../../launcher/text/colour.ts';
import { survey } from '../../launcher/topology/survey.ts';
import { textOf } from '../../launcher/topology/text.ts';
import { gpuInput, machineOf } from '../rig/plans.ts';
import { PARTS, TEMPLATE, TWINS, TWO_HOSTS } from '../rig/shared-address.ts';

const read = (xml: string): Element => readTopology(xml, 'file.xml').root;
const shown = (xml: string): string => textOf(survey(read(xml), 'file.xml'), makePaint(false, {}));

function gpusIn(xml: string): number {
  const [shape] = planCluster([{ system: read(xml), hosts: 1, ranksPerHost: null }]).cluster.shapes;
  return shape?.routes.machine.gpus.length ?? 0;
}

function joined(xml: string, busIds: readonly string[], device: PlannedPeer['device']): PlanInput {
  const input = gpuInput(busIds.length);
  return {
    ...input,
    hosts: input.hosts.map((host) => ({ ...host, machine: machineOf(read(xml)) })),
    peers: input.peers.map((peer, rank) => ({ ...peer, device, busId: busIds[rank] ?? '0' })),
  };
}

it('each part of a GPU counts as a GPU in plans and pictures', () => {
  expect(gpusIn(PARTS)).toBe(4);
  const text = shown(PARTS);
  expect(text).toContain('4 GPUs (sm 107)');
  expect(text.match(/0001:81:00\.0 {2}sm 107, part [01]/gu)).toHaveLength(2);
  expect(gpusIn(TWINS)).toBe(2);
  expect(shown(TWINS)).toContain('2 GPUs (sm 110)');
});

it('ranks on parts of GPUs get a plan, and one rank more is a duplicate', () => {
  const addresses = ['81000', '81000', '181000', '181000'];
  for (const device of ['cuda', 'host'] as const) {
    const plan = new Planner(null).plan(joined(PARTS, addresses, device), true);
    validatePlan(plan);
    expect(plan.channels[0]?.ring.toSorted((a, b) => a - b)).toEqual([0, 1, 2, 3]);
  }
  expect(() => new Planner(null).plan(joined(PARTS, [...addresses, '81000'], 'cuda'), true)).toThrow(
    /duplicate GPU: ranks 0 and 4/,
  );
  validatePlan(new Planner(null).plan(joined(TWINS, ['0', '0'], 'cuda'), true));
});

it('a file without device kinds is shown, planned and completed by detection', () => {
  const text = shown(TEMPLATE);
  expect(text).toContain('2 GPUs (sm unknown)');
  expect(text).toContain('0000:20:00.0');
  validatePlan(new Planner(null).plan(joined(TEMPLATE, ['1000', '1100'], 'host'), true));
  const detected =
    read(`<system version="1"><cpu numaid="0" host_hash="0x7" arch="x86_64" vendor="AuthenticAMD" familyid="23" modelid="49">
    <pci busid="0000:10:00.0" class="0x030200"><gpu dev="0" sm="86" rank="0"/></pci>
    <pci busid="0000:11:00.0" class="0x030200"><gpu dev="1" sm="86" rank="1"/></pci></cpu></system>`);
  const fused = fuse(read(TEMPLATE), detected);
  const gpus = [...everyElement(fused)].flatMap((one) => elementsOf(one, 'gpu'));
  expect(gpus.map(({ attributes }) => Object.fromEntries(attributes))).toEqual([
    { dev: '0', sm: '86', rank: '0' },
    { dev: '1', sm: '86', rank: '1' },
  ]);
  expect(elementsOf(fused, 'cpu').map(({ attributes }) => attributes.get('arch'))).toEqual(['x86_64', 'x86_64']);
});

it('parts of a GPU and GPUs of one address keep their ranks in a file', () => {
  for (const xml of [PARTS, TWINS]) {
    const ranks = [...everyElement(fuse(read(xml), read(xml)))].flatMap((one) =>
      elementsOf(one, 'gpu').map(({ attributes }) => attributes.get('rank')),
    );
    expect(ranks).toEqual(ranks.map((_, rank) => String(rank)));
  }
});

it('a dump of two hosts is rejected with the number of hosts', () => {
  expect(() => read(TWO_HOSTS)).toThrow(
    'file.xml:5:3: <cpu>: host_hash="0xaa02", and "0xaa01" before: the file describes 2 hosts, a topology describes one',
  );
});

it('a file of another host takes the host hash of the detected topology', () => {
  const file = read('<system version="1"><cpu numaid="0" host_hash="0x1" arch="arm64"/></system>');
  const detected = read(
    '<system version="1"><cpu numaid="0" host_hash="0x2"/><cpu numaid="1" host_hash="0x2"><pci busid="1:0"><gpu/></pci></cpu></system>',
  );
  const hashes = elementsOf(fuse(file, detected), 'cpu').map(({ attributes }) => attributes.get('host_hash'));
  expect(hashes).toEqual(['0x2', '0x2']);
});
