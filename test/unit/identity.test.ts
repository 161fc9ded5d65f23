import { expect, test } from 'vitest';
import { hashJobId, makeUniqueId } from '../../control/rendezvous/unique-id.ts';
import { findAncestor } from '../../worker/agent/process-tree.ts';

test('findAncestor finds the spawned process or an ancestor of it', () => {
  expect(findAncestor(process.pid, new Map([[process.pid, 3]]))).toBe(process.pid);
  expect(findAncestor(process.pid, new Map([[process.ppid, 3]]))).toBe(process.ppid);
  expect(findAncestor(process.pid, new Map())).toBeNull();
  expect(findAncestor(2 ** 30, new Map([[process.ppid, 3]]))).toBeNull();
});

test('a unique id contains the hash of its job and differs each time', () => {
  const [one, other] = [makeUniqueId('job-1'), makeUniqueId('job-1')];
  expect(one).toHaveLength(128);
  expect(one.subarray(0, 8).toString()).toBe('NCCLRUN1');
  expect(one.readBigUInt64LE(8)).toBe(hashJobId('job-1'));
  expect(one.equals(other)).toBe(false);
  expect(one.subarray(32).every((byte) => byte === 0)).toBe(true);
});

test('hashJobId is FNV-1a', () => {
  expect(hashJobId('')).toBe(0n);
  expect(hashJobId('a')).toBe(0xaf63_dc4c_8601_ec8cn);
  expect(hashJobId('foobar')).toBe(0x8594_4171_f739_67e8n);
});
