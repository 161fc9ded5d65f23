/** Paths, channels, trees and predicted times on known machines, beside what NCCL answers there. */
import { expect, it } from 'vitest';

import { planCluster } from '../../control/planner/cluster/plan-cluster.ts';
import type { PlannedCluster } from '../../control/planner/cluster/plan-cluster.ts';
import { pointToPoint } from '../../control/planner/cluster/point-to-point.ts';
import { buildMachine } from '../../control/planner/machine/build.ts';
import type { MachineNode } from '../../control/planner/machine/node.ts';
import { distance, PATH_TYPES } from '../../control/planner/machine/path.ts';
import { MachineRoutes } from '../../control/planner/machine/routes.ts';
import type { Graph } from '../../control/planner/search/graph.ts';
import { totalBandwidth } from '../../control/planner/search/graph.ts';
import { graphsXml } from '../../control/planner/search/graph-xml.ts';
import { isOverloaded, linkLoads } from '../../control/planner/verify/link-loads.ts';
import { everyElement } from '../../control/topology/element.ts';
import { writeXml } from '../../control/topology/write-xml.ts';
import type { Reference, ReferenceGraph } from '../rig/reference.ts';
import { reference } from '../rig/reference.ts';
import { describeMachines, machineNames, machineXml, sharedText } from '../rig/topologies.ts';

/** NCCL took one host as several there (docs/topology.md). */
const NOT_COMPARABLE = ['rccl_8p_940', 'rccl_8p_rome_4nics'];

/** As good as NCCL's, but not the same. */
function differs(name: string, hosts: number): boolean {
  return name === 'rccl_8p_940_c3' && hosts > 1;
}

function far(type: string): number {
  const known = PATH_TYPES.find((name) => name === type);
  if (known === undefined) throw new RangeError(`no path type is called ${type}`);
  return distance(known);
}

function planned(name: string, hosts: number, reduces = false): PlannedCluster {
  const system = machineXml(name);
  for (const net of everyElement(system)) if (reduces && net.name === 'net') net.attributes.set('coll', '1');
  return planCluster([{ system, hosts, ranksPerHost: null }]);
}

describeMachines('channels of known machines', () => {
  const names = machineNames().filter((name) => !NOT_COMPARABLE.includes(name));
  const answers = names.length === 0 ? {} : reference();
  const cases = names.flatMap((name) => [1, 2, 4, 16].map((hosts) => ({ name, hosts })));
  const answer = (name: string, hosts: number): Reference => {
    const found = answers[name]?.base[`N${hosts}`];
    if (found === undefined) throw new RangeError(`no answer for ${hosts} × ${name}`);
    return found;
  };

  it.each(names)('%s has the paths that NCCL finds', (name) => {
    const { system } = answer(name, 1);
    if (typeof system === 'string') throw new TypeError(system);
    const routes = new MachineRoutes(buildMachine(machineXml(name)));
    const { gpus, nets } = routes.machine;
    const found = (targets: readonly MachineNode[]): (readonly [string, string])[][] =>
      gpus.map((gpu) =>
        targets.map((to) => {
          const { type, bandwidth } = routes.path(gpu, to);
          return [type, (bandwidth / 1000).toFixed(1)] as const;
        }),
      );
    expect(found(gpus)).toEqual(expected(system.gpu_paths));
    expect(found(nets)).toEqual(expected(system.net_paths));
  });

  it.each(cases)("$hosts × $name has rings and trees no worse than NCCL's", ({ name, hosts }) => {
    const { cluster } = planned(name, hosts);
    const { ring, tree, final } = answer(name, hosts);
    const [shape] = cluster.shapes;
    expectNoWorse(shape?.ring ?? null, ring, hosts);
    expectNoWorse(shape?.tree ?? null, tree, hosts);
    expect(cluster.channels).toBeGreaterThanOrEqual(final.nChannels);
  });

  it.each(cases)("$hosts × $name has CollNet chains no worse than NCCL's", ({ name, hosts }) => {
    const theirs = answers[name]?.coll?.[`N${hosts}`]?.collnetChain;
    if (theirs === undefined) return; // it was not asked there
    const [shape] = planned(name, hosts, true).cluster.shapes;
    expectNoWorse(shape?.collnetChain ?? null, theirs, hosts);
  });

  it.each(cases)("$hosts × $name has NCCL's rings and trees over all ranks", ({ name, hosts }) => {
    if (differs(name, hosts)) return;
    const { cluster } = planned(name, hosts);
    const { final } = answer(name, hosts);
    expect(cluster.channels).toBe(final.nChannels);
    for (let channel = 0; channel < cluster.channels; channel++) {
      const tree = final.trees_unique[final.tree_of_channel[channel] ?? -1];
      const neighbours = Array.from({ length: cluster.ranks }, (_, rank) => cluster.treeNeighbours(rank, channel));
      expect(neighbours.map(({ parent }) => parent?.rank ?? -1)).toEqual(tree?.up);
      const order = cluster.ringOrder(channel);
      const start = order.indexOf(0);
      const fromZero = [...order.slice(start), ...order.slice(0, start)];
      expect(fromZero).toEqual(final.rings_unique[final.ring_of_channel[channel] ?? -1]);
    }
  });

  it.each(machineNames().flatMap((name) => [1, 2].map((hosts) => ({ name, hosts }))))(
    '$hosts × $name loads no link beyond its bandwidth',
    ({ name, hosts }) => {
      for (const { routes, ring, tree, collnetChain, collnetDirect } of planned(name, hosts, true).cluster.shapes) {
        for (const graph of [ring, tree, collnetChain, collnetDirect]) {
          if (graph !== null) expect(linkLoads(routes, graph).filter(isOverloaded)).toEqual([]);
        }
      }
    },
  );

  it.each(cases)('$hosts × $name has as many point-to-point channels as NCCL', ({ name, hosts }) => {
    const { final } = answer(name, hosts);
    const { channels, perPeer } = pointToPoint(planned(name, hosts).cluster);
    expect({ channels, perPeer }).toEqual({ channels: final.p2pnChannels, perPeer: final.p2pnChannelsPerPeer });
  });

  it('the machine with four H200 gets the graphs that NCCL dumped there', () => {
    const [shape] = planned('h200x4_vm', 1).cluster.shapes;
    if (shape === undefined) throw new TypeError('no shape');
    const { routes, ring, tree, collnetChain, collnetDirect } = shape;
    const xml = writeXml(graphsXml(routes.machine, { ring, tree, collnetChain, collnetDirect }));
    expect(xml).toBe(sharedText('h200x4_vm.nccl-graph.xml'));
  });
});

function expectNoWorse(ours: Graph | null, theirs: ReferenceGraph | string, hosts: number): void {
  if (typeof theirs === 'string' || theirs.nChannels === 0) return; // as another configuration, or none
  if (ours === null) throw new TypeError('no channels were found');
  const { nChannels, bwIntra, bwInter, typeIntra, typeInter } = theirs;
  const bandwidth = nChannels * (hosts > 1 ? Math.min(bwIntra, bwInter) : bwIntra) * 1000;
  expect(totalBandwidth(ours.channels.length, ours, hosts > 1)).toBeGreaterThanOrEqual(bandwidth - 1);
  expect(distance(ours.typeInside)).toBeLessThanOrEqual(far(typeIntra));
  if (hosts > 1) expect(distance(ours.typeBetween)).toBeLessThanOrEqual(far(typeInter));
}

function expected(rows: readonly (readonly (readonly [string, number, number])[])[]): unknown {
  return rows.map((row) => row.map(([type, bandwidth]) => [type, bandwidth.toFixed(1)]));
}
