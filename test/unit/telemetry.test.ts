import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import {
  communicatorName,
  decodeTelemetry,
  findSlot,
  lostPeer,
  SLOTS,
  TELEMETRY_BYTES,
} from '../../worker/agent/telemetry.ts';
import { HASHES, SLOT } from '../../worker/agent/slot-layout.ts';
import { isInOperation, isStalled } from '../../worker/agent/stall.ts';
import { JOIN_ROUND } from '../../control/messages/rendezvous.ts';
import { newKey } from '../rig/rendezvous.ts';

const key = newKey(JOIN_ROUND, 3);
const SECOND_SLOT = 512 + 192;

/** A page as an engine writes it, one communicator in its second slot. */
function page(state: number, operation: number, completed: number, lastProgressNs: bigint): Uint8Array {
  const bytes = Buffer.alloc(TELEMETRY_BYTES);
  bytes.writeUInt32LE(0x5054_434e, 0);
  bytes.writeUInt32LE(3, 4);
  bytes.writeUInt32LE(4711, 8);
  bytes.writeInt32LE(2, 12);
  const slot = bytes.subarray(SECOND_SLOT);
  Buffer.from(key.id, 'latin1').copy(slot, 0, 16, 24);
  slot.writeUInt32LE(2, 8);
  slot.writeUInt32LE(4, 12);
  slot.writeBigUInt64LE(BigInt(operation), 16);
  slot.writeBigUInt64LE(BigInt(completed), 24);
  slot.writeBigUInt64LE(4096n, 32);
  slot.writeBigUInt64LE(lastProgressNs, 40);
  slot.writeBigUInt64LE(0xabcdn, 48);
  slot.writeBigUInt64LE(77n, 56);
  slot.writeUInt32LE(9, 64);
  slot.writeUInt32LE(state, 68);
  slot.writeUInt32LE(3, 72);
  slot.writeUInt32LE(key.epoch, 76);
  return bytes;
}

test('decodeTelemetry reads rank, operation and state of each slot', () => {
  expect(decodeTelemetry(page(4, 7, 6, 5n))).toEqual({
    pid: 4711,
    jobRank: 2,
    slots: [
      {
        communicator: communicatorName(key),
        epoch: 3,
        operationHash: '000000000000abcd',
        startedNs: 77,
        lastProgressNs: 5,
        rank: 2,
        size: 4,
        operation: 7,
        completed: 6,
        bytes: 4096,
        collective: 'barrier',
        state: 'waiting',
        waitingFor: 3,
        calls: { count: 0, hashes: [], last: 'no collective', call: null, recent: [] },
      },
    ],
  });
});

test('decodeTelemetry returns null for an unwritten page or another version', () => {
  expect(decodeTelemetry(new Uint8Array(TELEMETRY_BYTES))).toBeNull();
  expect(decodeTelemetry(new Uint8Array(10))).toBeNull();
  const other = page(1, 0, 0, 0n);
  other[4] = 1;
  expect(decodeTelemetry(other)).toBeNull();
});

test('lostPeer finds a lost connection after the process left the communicator', () => {
  const free = 0;
  const lost = page(free, 7, 6, 0n);
  const unused = new Uint8Array(TELEMETRY_BYTES);
  expect(lostPeer([unused, lost], key)).toBeNull();
  lost[SECOND_SLOT + SLOT.lostPeer] = 1;
  expect(lostPeer([unused, lost], key)).toBe(0);
  expect(lostPeer([lost], newKey())).toBeNull();
  expect(lostPeer([lost], { ...key, epoch: 1 })).toBeNull();
  lost[SECOND_SLOT + SLOT.lostPeer] = 9;
  expect(lostPeer([lost], key)).toBe(8);
  expect(lostPeer([new Uint8Array(10)], key)).toBeNull();
});

test('waitsInVain requires an operation without progress in this communicator', () => {
  const now = process.hrtime.bigint();
  expect(isStalled([page(4, 7, 6, now - 10n ** 9n)], key)).toBe(true);
  expect(isStalled([page(4, 7, 6, now)], key)).toBe(false);
  expect(isStalled([page(1, 7, 7, now - 10n ** 9n)], key)).toBe(false);
  expect(isStalled([page(5, 7, 6, now - 10n ** 9n)], key)).toBe(false);
  expect(isStalled([page(4, 7, 6, now - 10n ** 9n)], newKey())).toBe(false);
  expect(isInOperation([page(3, 7, 6, now)], key)).toBe(true);
  expect(isInOperation([page(1, 7, 7, now)], key)).toBe(false);
});

test('the slot has the layout of ncclrun.h', () => {
  const header = readFileSync(new URL('../../native/include/ncclrun.h', import.meta.url), 'utf8').replaceAll(
    /\/\*.*?\*\//gs,
    '',
  );
  const [, body = ''] = /typedef struct \{([^}]*)\} ncclrunTelemetrySlot;/.exec(header) ?? [];
  let at = 0;
  const offsets: Record<string, number> = {};
  for (const [, type, list = ''] of body.matchAll(/^\s*(uint(?:64|32|16)_t) ([^;]+);/gm)) {
    for (const name of list.split(',')) {
      offsets[name.trim().replace(/\[\d+\]$/, '')] = at;
      at += (Number(/\d+/.exec(type ?? '')?.[0]) / 8) * Number(/\[(\d+)\]/.exec(name)?.[1] ?? 1);
    }
  }
  expect(at).toBe(192);
  expect(offsets).toMatchObject(SLOT);
  expect(header).toContain(`recentHashes[${HASHES}]`);
  expect(header).toContain(`#define NCCLRUN_TELEMETRY_SLOTS ${SLOTS}\n`);
  expect(offsets).toMatchObject({
    communicator: 0,
    rank: 8,
    size: 12,
    operation: 16,
    completed: 24,
    bytes: 32,
    lastProgressNs: 40,
    operationHash: 48,
    startedNs: 56,
    collective: 64,
    state: 68,
    waitingFor: 72,
    epoch: 76,
    call: 84,
    lostPeer: 80,
    hashed: 88,
    recentHashes: 96,
    left: 168,
    hashedBytes: 176,
    hashedCollective: 184,
    hashedCall: 188,
  });
});

test('findSlot finds a slot in any page until its communicator is left', () => {
  const second = page(1, 7, 7, 0n);
  const pages = [new Uint8Array(TELEMETRY_BYTES), second];
  const name = Buffer.from(key.id, 'latin1').readBigUInt64LE(16).toString(16).padStart(16, '0');
  expect(findSlot(pages, name, key.epoch, 2)?.getUint32(SLOT.size, true)).toBe(4);
  expect(findSlot(pages, name, key.epoch, 3)).toBeNull();
  second[SECOND_SLOT + SLOT.left] = 1;
  expect(findSlot(pages, name, key.epoch, 2)).toBeNull();
  expect(decodeTelemetry(second)?.slots).toEqual([]);
});
