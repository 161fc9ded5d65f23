/** A job of 1,024 ranks on 128 hosts: what is planned, sent to a host and set up there grows with the ranks at most, not with their square. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { decodeHostPlan } from '../../control/plan/decode.ts';
import { assembleHostPlan, encodePlan } from '../../control/plan/encode.ts';
import type { CommPlan } from '../../control/plan/types.ts';
import { validatePlan } from '../../control/plan/validate.ts';
import type { PlanInput } from '../../control/planner/input/input.ts';
import { Planner } from '../../control/planner/planner.ts';
import { buildNativeTests, nativeTests } from '../rig/native-tests.ts';

const RANKS_PER_HOST = 8;
const HOSTS = 128;
const RAILS = 2;

let directory = '';
beforeAll(() => {
  buildNativeTests('set_up_plan');
  directory = mkdtempSync(join(tmpdir(), 'ncclrun-large-'));
}, 600_000);
afterAll(() => rmSync(directory, { recursive: true }));

function planOf(hosts: number): CommPlan {
  const input: PlanInput = {
    hosts: Array.from({ length: hosts }, (_, host) => ({
      name: `node${host}`,
      address: `10.0.0.${host + 1}`,
      cores: 64,
      machine: null,
      nics: Array.from({ length: RAILS }, (_nic, rail) => ({
        name: `eth${rail}`,
        address: `10.0.${rail}.${host + 1}`,
        prefixLength: 24,
        speedMbps: 10_000,
        pciPath: `/sys/devices/pci0000:00/0000:0${rail}:00.0`,
        isVirtual: false,
        isNamed: false,
      })),
    })),
    peers: Array.from({ length: hosts * RANKS_PER_HOST }, (_, rank) => ({
      host: Math.floor(rank / RANKS_PER_HOST),
      listenPort: 4000 + (rank % RANKS_PER_HOST),
      device: 'host',
      cudaDevice: 0,
      busId: '0',
      smCount: 0,
      maxChannels: 0,
      communicators: 0,
      pidHash: String(rank),
    })),
    token: '0123456789abcdef0123456789abcdef',
  };
  const plan = new Planner(null, {}).plan(input, true);
  validatePlan(plan);
  return plan;
}

interface Blobs {
  readonly bytes: readonly number[];
  readonly segmentBytes: number;
  readonly shared: number;
  host(index: number): Uint8Array;
}

function blobsOf(plan: CommPlan): Blobs {
  const encoded = encodePlan(plan);
  const parts = plan.hosts.map((_, index) => encoded.host(index));
  return {
    bytes: parts.map((part) => part.bytes.length),
    segmentBytes: Math.max(...parts.map((part) => part.segmentBytes)),
    shared: encoded.body.length,
    host: (index) => assembleHostPlan(encoded.body, encoded.host(index).bytes),
  };
}

/** How much a process grows by that sets up all ranks of a host. */
function setUp(blob: Uint8Array): { kib: number; threads: number; descriptors: number; segment: number } {
  const path = join(directory, 'host.plan');
  writeFileSync(path, blob);
  const [kib = 0, threads = 0, descriptors = 0, segment = 0] = execFileSync(join(nativeTests, 'set_up_plan'), [path], {
    encoding: 'utf8',
  })
    .trim()
    .split(' ')
    .map(Number);
  return { kib, threads, descriptors, segment };
}

it('1,024 ranks on 128 hosts are planned, encoded and decoded, and no host has records of other hosts', () => {
  const before = process.memoryUsage().rss;
  const plan = planOf(HOSTS);
  const blobs = blobsOf(plan);
  expect(process.memoryUsage().rss - before).toBeLessThan(256 * 1024 * 1024);
  expect(plan.peers).toHaveLength(HOSTS * RANKS_PER_HOST);
  // What a host has for itself: eight ranks and their edges, of each channel two.
  expect(Math.max(...blobs.bytes)).toBeLessThan(1024 + RANKS_PER_HOST * (64 + plan.channels.length * 2 * 64));
  // What all hosts share: 16 bytes for each rank, its place in each ring and tree that differs, and its host's NICs.
  expect(blobs.shared).toBeLessThan(200 * HOSTS * RANKS_PER_HOST);
  for (const host of [0, 77, HOSTS - 1]) {
    const decoded = decodeHostPlan(blobs.host(host));
    expect(decoded.locals.map(({ rank }) => rank)).toEqual(
      Array.from({ length: RANKS_PER_HOST }, (_, index) => host * RANKS_PER_HOST + index),
    );
  }
});

it('plans and host segments grow with the ranks at most', () => {
  const [half, whole] = [blobsOf(planOf(HOSTS / 2)), blobsOf(planOf(HOSTS))];
  expect(whole.shared / half.shared).toBeLessThan(2.1);
  expect(whole.bytes).toHaveLength(HOSTS);
  expect(whole.bytes[0]).toBe(half.bytes[0]);
  expect(whole.segmentBytes).toBeLessThanOrEqual(half.segmentBytes);
});

it('the engine sets up eight of 1,024 ranks with the threads and descriptors of eight of 128, in little more memory', () => {
  const few = setUp(blobsOf(planOf(HOSTS / 8)).host(0));
  const many = setUp(blobsOf(planOf(HOSTS)).host(3));
  expect(many.threads).toBe(few.threads);
  expect(many.descriptors).toBe(few.descriptors);
  expect(many.segment).toBe(few.segment);
  // Of each rank in each of eight engines at most 128 bytes more.
  const more = (HOSTS - HOSTS / 8) * RANKS_PER_HOST;
  expect(many.kib - few.kib).toBeLessThan((RANKS_PER_HOST * more * 128) / 1024 + 1024);
});
