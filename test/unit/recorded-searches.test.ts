/**
 * What whole searches for the channels of a machine find and how much they try for it, compared with recorded results: a change of the planner
 * shows what it changes. After a deliberate change `npx vitest run --project unit recorded -u` records the new ones.
 */
import { expect, it, vi } from 'vitest';
import { buildMachine } from '../../control/planner/machine/build.ts';
import { MachineRoutes } from '../../control/planner/machine/routes.ts';
import type { SearchResult } from '../../control/planner/search/channels.ts';
import { SearchContext } from '../../control/planner/search/context.ts';
import { search } from '../../control/planner/search/search.ts';
import { everyElement, type Element } from '../../control/topology/element.ts';
import { readXml } from '../../control/topology/read-xml.ts';
import { bridgedGpus } from '../rig/bridged-gpus.ts';
import { crossedGpus } from '../rig/crossed-gpus.ts';
import { eightGpus } from '../rig/eight-gpus.ts';
import { graphText } from '../rig/plan-text.ts';
import { powerTopology } from '../rig/power.ts';
import { seededRandom } from '../rig/random.ts';
import { randomTopology } from '../rig/random-topology.ts';
import { ownMachine } from '../rig/topologies.ts';

const patterns = ['ring', 'balancedTree', 'splitTree', 'tree', 'collnetDirect'] as const;
const kinds = [
  { acrossHosts: false, crossNic: 2, minChannels: 1, collnetOnly: false },
  { acrossHosts: true, crossNic: 0, minChannels: 1, collnetOnly: false },
  { acrossHosts: true, crossNic: 1, minChannels: 2, collnetOnly: false },
  { acrossHosts: true, crossNic: 2, minChannels: 1, collnetOnly: false },
  { acrossHosts: true, crossNic: 0, minChannels: 1, collnetOnly: true },
] as const;

/** A line for each search: attempts, those that are none of before, their steps, channels. All have one context, as those of a planner. */
function searched(system: Element): string[] {
  const context = new SearchContext(new MachineRoutes(buildMachine(system)));
  const run = vi.spyOn(context.attempts, 'run');
  const known = new Set<SearchResult>();
  return patterns.flatMap((pattern) =>
    kinds.map((kind) => {
      run.mockClear();
      const graph = search(context, { ...kind, pattern, maxChannels: 8 });
      const results = run.mock.results.flatMap(({ type, value }) => (type === 'return' ? [value] : []));
      const fresh = new Set(results.filter((result) => !known.has(result)));
      for (const result of fresh) known.add(result);
      const steps = [...fresh].reduce((sum, result) => sum + result.steps, 0);
      const where = kind.acrossHosts ? `out ${kind.crossNic}` : 'in';
      return `${pattern} ${where}: ${results.length} attempts, ${fresh.size} new, ${steps} steps: ${graphText(graph)}`;
    }),
  );
}

/** With NICs of that speed, in Mbit/s: such that channels fill them. */
function withNics(system: Element, speed: number): Element {
  for (const one of everyElement(system)) if (one.name === 'net') one.attributes.set('speed', String(speed));
  return system;
}

const machines: Readonly<Record<string, () => Element>> = {
  'eight-gpus': eightGpus,
  'eight-gpus with full ports': () => withNics(eightGpus(), 384_000),
  crossed: () => crossedGpus(true),
  'crossed with full ports': () => withNics(crossedGpus(true), 96_000),
  'random with full ports': () => withNics(randomTopology(seededRandom(8)), 96_000),
  'random with slow ports': () => withNics(randomTopology(seededRandom(22)), 24_000),
  power: () => readXml(powerTopology('ppc64', 70), 'power').root,
  'power-like': () => readXml(powerTopology('x86_64', 86), 'power').root,
  switches: () => ownMachine('switches'),
  superchips: () => ownMachine('superchips'),
  bridged: () => bridgedGpus({ sockets: 2, gpusPerSocket: 2, sm: 80, modelid: 85, count: 4, bridges: [[0, 1]] }),
};

it('whole searches find the recorded channels with the recorded effort', async () => {
  const named = Object.entries(machines).flatMap(([name, make]) => [name, ...searched(make())]);
  const random = Array.from({ length: 24 }, (_, index) => 2 * index + 1).flatMap((seed) => [
    `seed ${seed}`,
    ...searched(randomTopology(seededRandom(seed))),
  ]);
  await expect(`${[...named, ...random].join('\n')}\n`).toMatchFileSnapshot('fixtures/recorded/whole-searches.txt');
});
