/** Numbers of messages: the same as in the native twins, and no two alike. */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { BOOTSTRAP_PROTOCOL, NcclResult } from '../../control/messages/bootstrap.ts';
import { ChildMessage } from '../../control/messages/child-agent.ts';
import {
  ALL_RANKS,
  FRAME_VERSION,
  FrameKind,
  MAX_PAYLOAD_BYTES,
  OUTPUT_END,
  OUTPUT_PARTIAL,
  OUTPUT_STDERR,
  PMI_CLOSE,
  PMI_READ,
  STDIN_END,
} from '../../control/messages/frame.ts';
import { SpawnStep } from '../../control/messages/guardian.ts';
import {
  isAlone,
  isShrinkRound,
  isSplitRound,
  JOIN_ROUND,
  LeftHow,
  POST_ROUND,
  SHRINK_ROUND,
  SPLIT_ROUND,
} from '../../control/messages/rendezvous.ts';

/** Names and numbers of an enumeration of a C++ header. */
function enumerated(path: string, name: string): Record<string, number> {
  const text = readFileSync(new URL(`../../native/${path}`, import.meta.url), 'utf8').replaceAll(/\/\/.*$/gmu, '');
  const [, body = ''] = new RegExp(String.raw`enum class ${name} : \w+ \{([^}]*)\}`, 'u').exec(text) ?? [];
  return Object.fromEntries(
    Array.from(body.matchAll(/(\w+) = (\w+)/gu), ([, key = '', value]) => [key, Number(value)]),
  );
}

/** The constants of a C++ header. */
function constants(path: string): Record<string, number> {
  const text = readFileSync(new URL(`../../native/${path}`, import.meta.url), 'utf8');
  return Object.fromEntries(
    Array.from(text.matchAll(/constexpr uint\d+_t (\w+) = (\w+?)u?(?: << (\d+))?;/gu), ([, key = '', value, shift]) => [
      key,
      Number(value) * 2 ** Number(shift ?? 0),
    ]),
  );
}

function expectConsecutive(numbers: readonly number[], first: number): void {
  expect(numbers).toEqual(Array.from(numbers, (_, index) => first + index));
}

const group = (high: number): number[] => Object.values(FrameKind).filter((kind) => kind >> 4 === high);

describe('frames', () => {
  test('the engine and the guardian number the kinds of frames as we do', () => {
    const { standardInput, ...native } = enumerated('base/frame.h', 'FrameKind');
    expect(Object.keys(native).length).toBeGreaterThan(30);
    expect(FrameKind).toMatchObject({ ...native, stdin: standardInput });
  });

  test('the kinds between two processes are numbered without gaps', () => {
    expectConsecutive(group(1), 0x10);
    expectConsecutive(group(3), 0x30);
    expectConsecutive(group(5), 0x50);
    expectConsecutive(group(6), 0x60);
    expect(new Set(Object.values(FrameKind)).size).toBe(
      group(1).length + group(3).length + group(5).length + group(6).length,
    );
  });

  test('versions, limits and flags are those of the native code', () => {
    expect(constants('base/frame.h')).toEqual({
      kFrameVersion: FRAME_VERSION,
      kMaxPayloadBytes: MAX_PAYLOAD_BYTES,
      kAllRanks: ALL_RANKS,
      kOutputStderr: OUTPUT_STDERR,
      kOutputPartial: OUTPUT_PARTIAL,
      kOutputEnd: OUTPUT_END,
      kStdinEnd: STDIN_END,
      kPmiRead: PMI_READ,
      kPmiClose: PMI_CLOSE,
    });
    expect(constants('agent/messages.h')).toMatchObject({
      kBootstrapProtocol: BOOTSTRAP_PROTOCOL,
      kJoinRound: JOIN_ROUND,
      kSplitRound: SPLIT_ROUND,
      kShrinkRound: SHRINK_ROUND,
    });
  });
});

test('steps of a spawn and ways to leave are those of the native code', () => {
  expect(SpawnStep).toEqual(enumerated('guardian/spawn.h', 'SpawnStep'));
  const { failed, ...others } = enumerated('agent/messages.h', 'LeaveHow');
  expect(LeftHow).toMatchObject({ ...others, died: failed });
});

test('messages of child agents, ways to leave and results are numbered without gaps', () => {
  for (const numbers of [ChildMessage, LeftHow, NcclResult]) expectConsecutive(Object.values(numbers), 0);
  expect(Object.values(LeftHow).filter(isAlone)).toEqual([7, 8, 9]);
});

test('rounds are gathers, splits, shrinks, messages or joins by their number', () => {
  const rounds = [
    0,
    SPLIT_ROUND - 1,
    SPLIT_ROUND,
    SHRINK_ROUND - 1,
    SHRINK_ROUND,
    POST_ROUND - 1,
    POST_ROUND,
    JOIN_ROUND,
  ];
  expect(rounds.map(isSplitRound)).toEqual([false, false, true, true, true, true, false, false]);
  expect(rounds.map(isShrinkRound)).toEqual([false, false, false, false, true, true, false, false]);
});
