/** What `ncclrun plan` is asked to plan: which topologies, on how many hosts, with how many ranks. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { element } from '../../control/topology/element.ts';
import { writeXml } from '../../control/topology/write-xml.ts';
import { hostGroups, sizesOf } from '../../launcher/plan/request.ts';
import { eightGpus } from '../rig/eight-gpus.ts';
import { failureFrom } from './failure-from.ts';

const directory = mkdtempSync(join(tmpdir(), 'ncclrun-plan-request-'));
afterAll(() => rmSync(directory, { recursive: true }));
const file = join(directory, 'eight.xml');
writeFileSync(file, writeXml(eightGpus()));
const own = eightGpus();

function counts(topologies: readonly string[], nodes: number | null, ranks: number | null): (number | null)[][] {
  const groups = hostGroups({ topologies, nodes, ranks }, topologies.length === 0 ? own : null);
  return groups.map(({ hosts, ranksPerHost }) => [hosts, ranksPerHost]);
}

function refusal(topologies: readonly string[], nodes: number | null, ranks: number | null): unknown {
  const failure = failureFrom(() => counts(topologies, nodes, ranks));
  return 'message' in failure ? failure.message : failure.type;
}

describe('the hosts of a plan', () => {
  it('a plan has one host, or as many as --nodes or the topology says', () => {
    expect(counts([], null, null)).toEqual([[1, null]]);
    expect(counts([], 3, null)).toEqual([[3, null]]);
    expect(counts([file], 3, null)).toEqual([[3, null]]);
    expect(counts([`${file}:2`, `${file}:1`], null, null)).toEqual([
      [2, null],
      [1, null],
    ]);
  });

  it('the hosts have the topology of the file, or of this machine', () => {
    expect(hostGroups({ topologies: [], nodes: null, ranks: null }, own)[0]?.system).toBe(own);
    const [group] = hostGroups({ topologies: [file], nodes: null, ranks: null }, null);
    expect(group?.system.children).toHaveLength(own.children.length);
  });

  it('a number of hosts that is 0 or given twice is refused', () => {
    expect(refusal([`${file}:0`], null, null)).toBe(`--topo ${file}:0: 0 hosts`);
    expect(refusal([`${file}:2`], 3, null)).toBe(`--topo ${file}:2 and --nodes 3 both say how many hosts there are`);
    expect(refusal([file, file], 3, null)).toBe('--nodes 3 with 2 topologies');
  });

  it('one machine plays hosts that share its GPUs', () => {
    const groups = hostGroups({ topologies: [file], nodes: null, ranks: null, simulated: 4 }, null);
    expect(groups.map(({ hosts, ranksPerHost }) => [hosts, ranksPerHost])).toEqual([[4, 2]]);
    const uneven = hostGroups({ topologies: [], nodes: null, ranks: 5, simulated: 2 }, own);
    expect(uneven.map(({ hosts, ranksPerHost }) => [hosts, ranksPerHost])).toEqual([
      [1, 3],
      [1, 2],
    ]);
  });

  it.each([
    [{ topologies: [file], nodes: 2 }, '--nodes and --simulate-hosts both say how many hosts there are'],
    [{ topologies: [`${file}:2`], nodes: null }, '--simulate-hosts with several hosts'],
    [{ topologies: [file, file], nodes: null }, '--simulate-hosts with several hosts'],
  ])('played hosts beside %o are refused', (given, sentence) => {
    const failure = failureFrom(() => hostGroups({ ...given, ranks: null, simulated: 2 }, null));
    expect(failure).toMatchObject({ message: sentence });
  });

  it('a host without GPUs is refused', () => {
    const bare = element('system', { version: 1 }, [element('cpu', { numaid: 0 })]);
    const failure = failureFrom(() => hostGroups({ topologies: [], nodes: null, ranks: null }, bare));
    expect(failure).toMatchObject({ type: 'usage', message: 'this machine has no GPU that ranks could use' });
  });
});

describe('the ranks of a plan', () => {
  it('the ranks spread evenly, and the first hosts get one more', () => {
    expect(counts([], 3, 6)).toEqual([[3, 2]]);
    expect(counts([], 3, 8)).toEqual([
      [2, 3],
      [1, 2],
    ]);
    expect(counts([`${file}:1`, `${file}:2`], null, 5)).toEqual([
      [1, 2],
      [1, 2],
      [1, 1],
    ]);
  });

  it('each host has at least one rank', () => {
    expect(counts([], 3, 3)).toEqual([[3, 1]]);
    expect(refusal([], 3, 2)).toBe('2 ranks for 3 hosts');
  });

  it('a host has no more ranks than GPUs', () => {
    expect(counts([], 2, 16)).toEqual([[2, 8]]);
    expect(refusal([], 2, 17)).toBe('17 ranks on 2 hosts are 9 on a host with 8 GPUs');
    expect(refusal([], 1, 9)).toBe('9 ranks on 1 host are 9 on a host with 8 GPUs');
  });
});

describe('the sizes of a plan', () => {
  it.each([
    ['1M', [1_048_576]],
    ['8..32', [8, 16, 32]],
    ['8..8', [8]],
    ['3..20', [3, 6, 12]],
    ['1..2', [1, 2]],
  ])('--bytes %s is read as sizes that double', (text, sizes) => {
    expect(sizesOf(text)).toEqual(sizes);
  });

  it.each(['', '0', '0..8', '16..8', '8..x', 'x..8', '8..16..32'])('--bytes "%s" is refused', (text) => {
    expect(failureFrom(() => sizesOf(text))).toMatchObject({ message: `--bytes is "${text}"` });
  });
});
