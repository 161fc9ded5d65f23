/** Graphs in NCCL's form take the place of the search: as written, or refused where they do not fit the machine. */
import { describe, expect, it } from 'vitest';
import { shapeOf } from '../../control/planner/cluster/host-shape.ts';
import { buildMachine } from '../../control/planner/machine/build.ts';
import { MachineRoutes } from '../../control/planner/machine/routes.ts';
import { graphsXml } from '../../control/planner/search/graph-xml.ts';
import { TopologyError } from '../../control/topology/element.ts';
import { readXml } from '../../control/topology/read-xml.ts';
import { writeXml } from '../../control/topology/write-xml.ts';
import { eightGpus } from '../rig/eight-gpus.ts';

const routes = new MachineRoutes(buildMachine(eightGpus()));
const written = writeXml(graphsXml(routes.machine, shapeOf(routes, true)));
const given = (text: string) => shapeOf(routes, true, { crossNic: 2, graphs: readXml(text, 'graphs.xml').root });

describe('a file of graphs', () => {
  it('a graph file gives the graphs that it was written from', () => {
    expect(writeXml(graphsXml(routes.machine, given(written)))).toBe(written);
  });

  it('a graph file determines the order of GPUs', () => {
    const [first, second] = ['<gpu dev="0"/>', '<gpu dev="0x1"/>'];
    const swapped = written.replaceAll(first, '<>').replaceAll(second, first).replaceAll('<>', second);
    expect(swapped).not.toBe(written);
    expect(writeXml(graphsXml(routes.machine, given(swapped)))).toBe(swapped);
  });

  it('the search completes missing patterns with as many trees as rings', () => {
    const ring = /<graph id="0"[\s\S]*?<\/graph>/u
      .exec(written)?.[0]
      .replace(/(?:<channel>[\s\S]*?<\/channel>\s*)$/u, '');
    const one = ring?.replace(/(<channel>[\s\S]*?<\/channel>)[\s\S]*<\/graph>/u, '$1</graph>');
    const shape = given(`<graphs version="1">${one}</graphs>`);
    expect(shape.ring.channels).toHaveLength(1);
    expect(shape.tree.channels).toHaveLength(1);
  });

  it.each([
    ['another root', '<system version="1"/>', /begins with <graphs>/],
    ['an unknown pattern', written.replace('pattern="4"', 'pattern="9"'), /pattern="9" is unknown/],
    [
      'a speed of zero',
      written.replace(/speedintra="\d+"/u, 'speedintra="0"'),
      /speedintra="0", expected GB\/s above 0/,
    ],
    [
      'an unknown path type',
      written.replace('typeintra="NVL"', 'typeintra="NVX"'),
      /typeintra="NVX", expected one of LOC/,
    ],
    ['an unknown GPU', written.replace('<gpu dev="0x7"/>', '<gpu dev="0x9"/>'), /there is no GPU 9, but 0, 1/],
    ['a GPU twice', written.replace('<gpu dev="0x7"/>', '<gpu dev="0"/>'), /expected each of 0, 1, 2.* once/],
    ['no NIC', written.replaceAll(/<net dev="\w+"\/>\s*/gu, ''), /has no <net>/],
  ])('a graph file with %s is rejected', (_, text, reason) => {
    expect(() => given(text)).toThrow(TopologyError);
    expect(() => given(text)).toThrow(reason);
    expect(() => given(text)).toThrow(/^NCCL_GRAPH_FILE: graphs\.xml/u);
  });
});
