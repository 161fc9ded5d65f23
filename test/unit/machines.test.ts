/** What hosts are, told by their agents and kept by the launcher. */
import { describe, expect, test } from 'vitest';
import { makeFrame } from '../../control/messages/codec.ts';
import { FrameKind } from '../../control/messages/frame.ts';
import type { Frame } from '../../control/messages/frame.ts';
import { decodeMachineXml, encodeMachineXml } from '../../control/messages/machine.ts';
import type { HostMachine } from '../../control/planner/input/input.ts';
import type { AnnouncedMachine } from '../../control/planner/known-machine.ts';
import { Machines } from '../../launcher/job/machines.ts';
import { Announcement } from '../../worker/agent/announcement.ts';
import { crossedGpus } from '../rig/crossed-gpus.ts';
import { eightGpus } from '../rig/eight-gpus.ts';
import { machineOf } from '../rig/plans.ts';

const one = machineOf(eightGpus());
const other = machineOf(crossedGpus());
const someFrame = makeFrame(FrameKind.merged);

/** The launcher's side; `read` counts what was told. */
function launcher(fails = false) {
  const sent: (readonly [host: number, kind: FrameKind])[] = [];
  const reported: string[] = [];
  const problems: string[] = [];
  const machines = new Machines({
    async read({ topology }): Promise<HostMachine> {
      reported.push(topology);
      if (fails) throw new Error('garbage');
      return topology === one.wire.topology ? one : other;
    },
    send: (host, { kind }) => sent.push([host, kind]),
    unreadable: (host, reason) => problems.push(`${host}: ${reason}`),
  });
  const announce = (host: number, { key }: AnnouncedMachine): boolean =>
    machines.receive(host, makeFrame(FrameKind.machineKey, { payload: Buffer.from(key) }));
  const tell = async (host: number, { wire }: AnnouncedMachine): Promise<void> => {
    machines.receive(host, makeFrame(FrameKind.machine, { payload: encodeMachineXml(wire) }));
    await Promise.resolve();
    await Promise.resolve();
  };
  return { machines, sent, reported, problems, announce, tell };
}

describe('the launcher', () => {
  test('the launcher requests each machine once and then releases all hosts of its kind', async () => {
    const { machines, sent, reported, announce, tell } = launcher();
    for (const host of [0, 1, 2]) announce(host, one);
    announce(3, other);
    expect(sent).toEqual([
      [0, FrameKind.machineWanted],
      [3, FrameKind.machineWanted],
    ]);
    await tell(0, one);
    expect(sent.slice(2)).toEqual([0, 1, 2].map((host) => [host, FrameKind.machineKnown]));
    announce(4, one);
    expect(sent.at(-1)).toEqual([4, FrameKind.machineKnown]);
    await tell(3, other);
    expect(sent.at(-1)).toEqual([3, FrameKind.machineKnown]);
    expect(reported).toHaveLength(2);
    expect([0, 1, 2, 3, 4, 5].map((host) => machines.of(host))).toEqual([one, one, one, other, one, null]);
    expect(machines.receive(0, someFrame)).toBe(false);
  });

  test('the launcher asks another host when the first one is lost before its answer', async () => {
    const { machines, sent, announce, tell } = launcher();
    announce(0, one);
    announce(1, one);
    machines.hostLost(0);
    expect(sent.at(-1)).toEqual([1, FrameKind.machineWanted]);
    await tell(1, one);
    expect(sent.slice(2)).toEqual([[1, FrameKind.machineKnown]]);
    machines.hostLost(1);
    expect(sent).toHaveLength(3);
  });

  test('the launcher asks a later host when all earlier ones were lost', () => {
    const { machines, sent, announce } = launcher();
    announce(0, one);
    machines.hostLost(0);
    announce(1, one);
    expect(sent.at(-1)).toEqual([1, FrameKind.machineWanted]);
  });

  test('the launcher continues without a machine that it cannot read, and reports why', async () => {
    const { machines, sent, problems, announce, tell } = launcher(true);
    announce(2, one);
    await tell(2, one);
    expect(sent.at(-1)).toEqual([2, FrameKind.machineKnown]);
    expect(problems).toEqual(['2: garbage']);
    expect(machines.of(2)).toBeNull();
  });
});

/** The agent's side, whose machine is found when `found` is called. */
function agent(looks = true) {
  const sent: Frame[] = [];
  const { promise, resolve, reject } = Promise.withResolvers<AnnouncedMachine | null>();
  const announcement = new Announcement(
    () => (looks ? promise : null),
    (frame) => sent.push(frame),
  );
  return { announcement, kinds: () => sent.map(({ kind }) => kind), sent, resolve, reject };
}

describe('an agent', () => {
  test('the agent holds frames back until the launcher knows its machine', async () => {
    const { announcement, kinds, sent, resolve } = agent();
    announcement.send(someFrame);
    announcement.send(makeFrame(FrameKind.left));
    expect(kinds()).toEqual([]);
    resolve(one);
    await Promise.resolve();
    expect(kinds()).toEqual([FrameKind.machineKey]);
    expect(announcement.receive(makeFrame(FrameKind.machineWanted))).toBe(true);
    expect(decodeMachineXml(sent.at(-1)?.payload ?? Buffer.alloc(0))).toEqual(one.wire);
    announcement.send(makeFrame(FrameKind.routed));
    expect(announcement.receive(makeFrame(FrameKind.machineKnown))).toBe(true);
    expect(kinds().slice(2)).toEqual([FrameKind.merged, FrameKind.left, FrameKind.routed]);
    announcement.send(someFrame);
    expect(kinds()).toHaveLength(6);
    expect(announcement.receive(someFrame)).toBe(false);
  });

  test('the agent holds nothing back without detection, without a result or after an error', async () => {
    const unasked = agent(false);
    unasked.announcement.send(someFrame);
    expect(unasked.kinds()).toEqual([FrameKind.merged]);
    const nothing = agent();
    nothing.announcement.send(someFrame);
    nothing.resolve(null);
    await Promise.resolve();
    expect(nothing.kinds()).toEqual([FrameKind.merged]);
    const failed = agent();
    failed.announcement.send(someFrame);
    failed.reject(new Error('no'));
    await Promise.resolve();
    await Promise.resolve();
    expect(failed.kinds()).toEqual([FrameKind.merged]);
  });
});
