/** Topologies that `ncclrun topo --format json` has printed on another host. */
import { describe, expect, test } from 'vitest';
import { element, type Element } from '../../control/topology/element.ts';
import { FailureError } from '../../launcher/model/failure-error.ts';
import { jsonOf } from '../../launcher/topology/json.ts';
import { readPrintedTopology } from '../../launcher/topology/printed.ts';
import { survey } from '../../launcher/topology/survey.ts';

const system = element('system', { version: 1 }, [
  element('cpu', { numaid: 0, arch: 'arm64' }, [
    element('pci', { busid: '0000:01:00.0', class: '0x030200', link_speed: '8 GT/s', link_width: 16 }),
  ]),
  element('cpu', { numaid: 1, arch: 'arm64' }),
]);

const tree = (changes: object = {}): object => ({ name: 'system', attributes: {}, children: [], ...changes });
const text = (document: unknown): string => JSON.stringify(document);
const shape = ({ name, attributes, children }: Element): unknown => [
  name,
  [...attributes],
  children.map((child) => (child.kind === 'element' ? shape(child) : child.kind)),
];

describe('a printed topology', () => {
  test('is read as it was written', () => {
    const printed = readPrintedTopology(jsonOf(survey(system, 'here', ['no NVML', 'no IB'])), 'there');
    expect(shape(printed.system)).toEqual(shape(system));
    expect(printed.notes).toEqual(['no NVML', 'no IB']);
  });

  test('loses notes that are no texts, and characters that no terminal should get', () => {
    const attributes = { a: 'x\u001b[31my', b: 3 };
    const printed = readPrintedTopology(text({ system: tree({ attributes }), notes: [1, 'one', null] }), 'there');
    expect(printed.notes).toEqual(['one']);
    expect([...printed.system.attributes]).toEqual([
      ['a', expect.not.stringContaining('\u001b')],
      ['b', '3'],
    ]);
  });

  test.each([
    ['nothing', ''],
    ['no JSON', 'ncclrun: command not found'],
    ['no object', 'null'],
    ['a text', '"system"'],
    ['no system', text({ notes: [] })],
    ['no notes', text({ system: tree() })],
    ['notes that are no list', text({ system: tree(), notes: 'none' })],
    ['a system without a name', text({ system: tree({ name: undefined }), notes: [] })],
    ['a system whose name is a number', text({ system: tree({ name: 1 }), notes: [] })],
    ['a system without attributes', text({ system: tree({ attributes: null }), notes: [] })],
    ['attributes that are a text', text({ system: tree({ attributes: 'a' }), notes: [] })],
    ['children that are no list', text({ system: tree({ children: {} }), notes: [] })],
    ['a child that is no element', text({ system: tree({ children: [tree(), 'cpu'] }), notes: [] })],
    ['a grandchild that is no element', text({ system: tree({ children: [tree({ children: [7] })] }), notes: [] })],
  ])('is not what a host with %s has printed', (_, printed) => {
    const read = (): unknown => readPrintedTopology(printed, 'there');
    expect(read).toThrow(FailureError);
    expect(read).toThrow(
      expect.objectContaining({
        failure: {
          type: 'agent',
          host: 'there',
          phase: 'run',
          message: `ncclrun topo printed no topology there: ${JSON.stringify(printed.slice(0, 80))}`,
          remedy: 'see what ncclrun topo prints on there',
        },
      }),
    );
  });
});

test.each([
  [0, null],
  [1, 1],
  [90, 90],
])('a GPU of compute capability %i is printed with %j', (sm, expected) => {
  const gpu = element('gpu', { dev: 0, sm, rank: 0, gdr: 1 });
  const pci = element('pci', { busid: '0000:01:00.0', class: '0x030200', link_speed: '8 GT/s', link_width: 16 }, [gpu]);
  const one = element('system', { version: 1 }, [element('cpu', { numaid: 0, arch: 'arm64' }, [pci])]);
  const { gpus } = JSON.parse(jsonOf(survey(one, 'here', [])));
  expect(gpus).toMatchObject([{ computeCapability: expected }]);
});
