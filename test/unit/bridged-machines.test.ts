/** Channels inside one host of PCI Express with NVLink bridges: as much as NCCL's search finds there (docs/channels.md). */
import { expect, it } from 'vitest';
import { planCluster } from '../../control/planner/cluster/plan-cluster.ts';
import type { HostShape } from '../../control/planner/cluster/host-shape.ts';
import type { Graph } from '../../control/planner/search/graph.ts';
import { isOverloaded, linkLoads } from '../../control/planner/verify/link-loads.ts';
import { bridgedGpus } from '../rig/bridged-gpus.ts';
import type { Bridged } from '../rig/bridged-gpus.ts';

const ICE_LAKE = 106;
const SAPPHIRE_RAPIDS = 143;

function shapeOf(machine: Bridged): HostShape {
  const [shape] = planCluster([{ system: bridgedGpus(machine), hosts: 1, ranksPerHost: null }]).cluster.shapes;
  if (shape === undefined) throw new TypeError('no shape');
  for (const graph of [shape.ring, shape.tree]) expect(linkLoads(shape.routes, graph).filter(isOverloaded)).toEqual([]);
  return shape;
}

/** Channels × GB/s of each. */
function found({ channels, inside }: Graph): string {
  return `${channels.length} × ${inside / 1000}`;
}

it('two pairs on two sockets get two trees, one in each direction between the sockets', () => {
  const two = { modelid: ICE_LAKE, sm: 80, sockets: 2, gpusPerSocket: 2, count: 12 };
  const bridges = [
    [0, 1],
    [2, 3],
  ] as const;
  const { ring, tree } = shapeOf({ ...two, bridges });
  expect([found(ring), found(tree)]).toEqual(['2 × 5', '2 × 10']);
  expect(tree.channels.map(({ order }) => order)).toEqual([
    [0, 1, 2, 3],
    [2, 3, 0, 1],
  ]);
  // With one bridge there are no two groups; of three pairs, one joins the sockets.
  const one = shapeOf({ ...two, bridges: [[0, 1]] });
  expect([found(one.ring), found(one.tree)]).toEqual(['1 × 10', '1 × 10']);
  const three = shapeOf({ ...two, gpusPerSocket: 3, bridges: [...bridges, [4, 5]] });
  expect([found(three.ring), found(three.tree)]).toEqual(['1 × 20', '1 × 20']);
});

it('trees use links whose two directions differ', () => {
  const { ring, tree } = shapeOf({
    modelid: SAPPHIRE_RAPIDS,
    sm: 90,
    sockets: 3,
    gpusPerSocket: 2,
    count: 3,
    bridges: [
      [0, 3],
      [1, 4],
      [2, 5],
    ],
  });
  expect([found(ring), found(tree)]).toEqual(['2 × 20', '2 × 20']);
});

it('the search inside one host has its full step budget', () => {
  const bridges = [0, 1, 2, 3].map((gpu) => [gpu, gpu + 4] as const);
  const { ring, tree } = shapeOf({ modelid: 85, sm: 70, sockets: 1, gpusPerSocket: 8, count: 1, bridges });
  expect([found(ring), found(tree)]).toEqual(['2 × 20', '2 × 20']);
});
