/**
 * The two ends of a multiplexer, attacked with frames of child agents that make no sense. The launcher takes no notice or gives the host up that has said it,
 * with those behind it and no others; an agent takes no notice or throws a ProtocolError, which ends it. Neither hangs, nor does more than it is told.
 */
import { beforeEach, describe, expect, it } from 'vitest';
import { MemoryLink } from '../../control/link/memory-link.ts';
import { ChildMessage, encodePassed } from '../../control/messages/child-agent.ts';
import { encodeFrame, FrameDecoder, makeFrame } from '../../control/messages/codec.ts';
import { FrameKind, type Frame } from '../../control/messages/frame.ts';
import { ProtocolError } from '../../control/messages/protocol-error.ts';
import { Uplink } from '../../worker/agent/uplink.ts';
import { framesOf, lengths } from '../rig/attack/bytes.ts';
import { notice, PlayedTree, terms } from '../rig/played-tree.ts';
import { turn } from '../rig/scripted-host.ts';

const inner = notice('a word');
const passed = encodePassed([{ children: [0, 1], frame: inner }]);
const childFrame = (payload: Uint8Array, flags: number = ChildMessage.passed): Frame =>
  makeFrame(FrameKind.childAgent, { flags, payload });
/** A payload of one frame for child agents of these numbers, whatever they are. */
const addressed = (...children: number[]): Frame => childFrame(encodePassed([{ children, frame: inner }]));

/** Frames of child agents, frames inside of frames as deep as a payload goes. */
const nested = (depth: number): Frame =>
  depth === 0 ? inner : childFrame(encodePassed([{ children: [0], frame: nested(depth - 1) }]));

const sound = [childFrame(passed), addressed(99), addressed(0xffff_ffff), nested(2000), childFrame(new Uint8Array(0))];
const unsound: readonly (readonly [string, Frame])[] = [
  ['more child agents than bytes', childFrame(Uint8Array.of(0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0))],
  ['a child agent twice', addressed(1, 1)],
  ['a child agent many times', addressed(...Array.from({ length: 100_000 }, () => 0))],
  ['a payload that is no frame', childFrame(Buffer.from([0, 0, 0, 0, 0, 0, 0, 0]))],
  ['two frames in place of one', childFrame(blockOf(Buffer.concat([encodeFrame(inner), encodeFrame(inner)])))],
  ['half a frame', childFrame(blockOf(encodeFrame(inner).subarray(0, 20)))],
  ['a frame of an unknown kind', childFrame(blockOf(Buffer.from([0, 0, 0, 0, 1, 0xee, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])))],
  ['an unknown word', childFrame(passed, 99)],
];

function blockOf(bytes: Uint8Array): Uint8Array {
  const head = Buffer.alloc(12);
  head.writeUInt32LE(1, 0);
  head.writeUInt32LE(bytes.length, 8);
  return Buffer.concat([head, bytes]);
}

/** The frame's payload at every length, and all that may be in a frame of this kind. */
function attacks(): Frame[] {
  const bytes = encodeFrame(childFrame(passed));
  const all = [...framesOf(FrameKind.childAgent), ...lengths(bytes)].map((attack) => attack.bytes);
  const frames: Frame[] = [];
  for (const one of all) new FrameDecoder((frame) => frames.push(frame)).push(one);
  const words = Object.values(ChildMessage);
  return [...frames, ...frames.flatMap((frame) => words.map((flags) => ({ ...frame, flags })))];
}

/** As an agent that reaches nobody. */
function hear(frame: Frame): void {
  const [link] = MemoryLink.pair();
  const uplink = new Uplink(
    link,
    terms,
    () => undefined,
    () => {
      throw new Error('nothing is started here');
    },
  );
  expect(uplink.receive(frame)).toBe(true);
}

describe('the launcher behind whose host h1 are h3 and h5', () => {
  let tree: PlayedTree;
  const lost = (): string[] => [...tree.hosts].flatMap(([name, { closed }]) => (closed === undefined ? [] : [name]));
  beforeEach(async () => {
    tree = new PlayedTree(['h1', 'h2', 'h3', 'h4', 'h5'], 2);
    while ([...tree.hosts.values()].some(({ heard }) => heard.length === 0)) await turn();
  });
  const say = async (frame: Frame): Promise<void> => {
    tree.agents.get('h1')?.link.send(frame);
    for (let turns = 0; turns < 3; turns++) await turn();
  };

  it('the launcher loses no host over valid frames of h1', async () => {
    for (const frame of sound) await say(frame);
    expect(lost()).toEqual([]);
  });

  it.each(unsound)('the launcher loses h1, h3 and h5 after h1 sends %s', async (_name, frame) => {
    await say(frame);
    expect(lost()).toEqual(['h1', 'h3', 'h5']);
  });

  it('the launcher keeps the other hosts after any other frame of h1', async () => {
    for (const frame of attacks()) {
      await say(frame);
      for (const name of ['h2', 'h4']) expect(tree.hosts.get(name)?.closed, name).toBeUndefined();
    }
  });
});

describe('an agent', () => {
  it('the agent ignores valid frames for child agents that it does not have', () => {
    for (const frame of sound) hear(frame);
  });

  it.each(unsound)('the agent throws a ProtocolError after %s', (_name, frame) => {
    expect(() => hear(frame)).toThrow(ProtocolError);
  });

  it('the agent ignores any other frame or throws a ProtocolError', () => {
    for (const frame of attacks()) {
      try {
        hear(frame);
      } catch (error) {
        expect(error).toBeInstanceOf(ProtocolError);
      }
    }
  });
});
