import { describe, expect, it, test, vi } from 'vitest';
import { encodeJson } from '../../control/messages/codec.ts';
import { FrameKind } from '../../control/messages/frame.ts';
import type { Xid } from '../../control/messages/gpu.ts';
import { parseRecord } from '../../worker/agent/kernel-log.ts';
import { parseXid } from '../../worker/agent/xid.ts';
import { seededRandom } from '../rig/random.ts';
import { scriptedJob } from '../rig/scripted-host.ts';

const lost = 'GPU has fallen off the bus';

describe('a line of the NVIDIA driver', () => {
  test.each([
    [`NVRM: Xid (PCI:0000:1b:00): 79, pid=1234, name=python, ${lost}.`, 79, '0000:1b:00', 1234, lost],
    [`NVRM: Xid (PCI:0000:1B:00): 79, pid='<unknown>', name=<unknown>, ${lost}.`, 79, '0000:1b:00', null, lost],
    [`NVRM: Xid (PCI:0000:1b:00): 79, pid=<unknown>, name=<unknown>, ${lost}.`, 79, '0000:1b:00', null, lost],
    [`NVRM: Xid (PCI:0000:23:00): 79, ${lost}.`, 79, '0000:23:00', null, lost],
    [
      'NVRM: Xid (PCI:0000:01:00 GPU-I:05 GPU-CI:02): 94, pid=7194, Contained: CE User Channel (0x9). RST: No, D-RST: No',
      94,
      '0000:01:00',
      7194,
      'Contained: CE User Channel (0x9). RST: No, D-RST: No',
    ],
    [
      'NVRM: Xid (PCI:0000:00:06): 31, pid=79749, name=exe, Ch 0000000a, intr 00000000. MMU Fault: ENGINE GRAPHICS',
      31,
      '0000:00:06',
      79_749,
      'Ch 0000000a, intr 00000000. MMU Fault: ENGINE GRAPHICS',
    ],
    ['NVRM: Xid (0000:03:00): 14, Channel 00000001', 14, '0000:03:00', null, 'Channel 00000001'],
    ['NVRM: Xid (PCI:00010000:03:00): 45', 45, '10000:03:00', null, ''],
    ['NVRM: Xid (PCI:0000:03:00): 45, pid=0, name=, ', 45, '0000:03:00', null, ''],
  ])('parseXid reads the line "%s"', (line, code, address, pid, message) => {
    expect(parseXid(line)).toEqual({ code, address, pid, message });
  });

  test.each([
    'NVRM: GPU at PCI:0000:1b:00: GPU-1234',
    'nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 30 LTSSM Fault Up',
    'someone says NVRM: Xid (PCI:0000:1b:00): 79, pid=1',
    'NVRM: Xid (PCI:0000:1b:00): many',
    'NVRM: Xid (PCI:0000:1b:00: 79',
    '',
  ])('parseXid returns null for "%s"', (line) => expect(parseXid(line)).toBeNull());

  it('parseXid bounds and sanitizes the message of any line', () => {
    const random = seededRandom(7);
    const pieces = [
      'NVRM: Xid (',
      'PCI:0000:1b:00',
      '): 79',
      ', pid=',
      '12',
      'name=',
      ',',
      '\u001b[31m',
      'ü',
      '0'.repeat(300),
    ];
    const whole = 'NVRM: Xid (PCI:0000:1b:00): 79,';
    for (let round = 0; round < 20_000; round++) {
      const length = random(12);
      const line = Array.from({ length }, () => pieces[random(pieces.length)]).join('');
      const found = [parseXid(line), parseXid(whole + line)];
      expect(found[1]?.code).toBe(79);
      for (const one of found) expect(one === null || /^\P{Cc}{0,200}$/u.test(one.message)).toBe(true);
    }
  });
});

test('parseRecord reads a record of the kernel log', () => {
  expect(parseRecord('4,1234,5140900,-;NVRM: one; two\n SUBSYSTEM=pci\n')).toEqual({
    sinceBootMs: 5140.9,
    text: 'NVRM: one; two',
  });
  expect(parseRecord('12,1,99,-,caller=T7;x')).toEqual({ sinceBootMs: 0.099, text: 'x' });
  for (const text of ['', ';', '4,1,;x', '4,1,2;x']) expect(parseRecord(text)).toBeNull();
});

const xid = (changes: Partial<Xid>): Xid => ({
  code: 79,
  gpu: 3,
  address: '0000:1b:00.0',
  ranks: [2],
  pid: null,
  message: lost,
  time: Date.now(),
  ...changes,
});

describe('a job whose GPUs report errors', () => {
  it("the failure lists the failed rank's Xids first, and none that followed the end", async () => {
    const { agents, up, result, events } = scriptedJob(['a', 'b'], 2);
    await up();
    const [a, b] = agents;
    const say = (agent: typeof a, changes: Partial<Xid>) =>
      agent?.say(FrameKind.failure, 0, encodeJson({ type: 'xid', ...xid(changes) }));
    const now = Date.now();
    for (const code of [63, 64, 74]) say(a, { code, ranks: [1], time: now - 5000 });
    for (const code of [48, 95]) say(b, { code, ranks: [2], time: now - 1200 });
    say(b, { code: 13, ranks: [3], time: now + 60_000 });
    b?.say(FrameKind.failure, 0, encodeJson({ type: 'rank-gpu', rank: 2, gpu: { index: 3, address: '0000:1b:00.0' } }));
    b?.exited(2, 0x300, now);
    await vi.waitFor(() => expect(a?.asked).not.toEqual([]));
    say(b, { code: 45, ranks: [2, 3], time: now + 60_000 });
    for (const rank of [0, 1]) a?.exited(rank, 15, now);
    b?.exited(3, 15, now);
    for (const agent of agents) agent.ended();
    const { failures } = await result();
    expect(failures).toMatchObject([
      {
        rank: 2,
        gpu: { index: 3, address: '0000:1b:00.0' },
        xids: [
          { host: 'b', code: 48, ranks: [2], gpu: 3, secondsBefore: 1.2 },
          { host: 'b', code: 95 },
          { host: 'a', code: 74, secondsBefore: 5 },
          { host: 'a', code: 64 },
        ],
      },
    ]);
    expect(events.flatMap((event) => (event.type === 'xid' ? [event.code] : []))).toEqual([63, 64, 74, 48, 95, 13]);
  });
});
