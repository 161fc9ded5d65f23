import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { messageOf } from '../../control/message-of.ts';
import { decodeHostPlan, isHostPlan } from '../../control/plan/decode.ts';
import { encodeHostPlan, encodePlan, assembleHostPlan } from '../../control/plan/encode.ts';
import { readPlanFile } from '../../control/plan/file.ts';
import { PLAN_HEADER_BYTES } from '../../control/plan/layout.ts';
import { planFromJson, planToJson } from '../../control/plan/json.ts';
import { PlanError, validatePlan } from '../../control/plan/validate.ts';
import { asEncoded, randomPlan, samplePlan } from '../rig/plans.ts';
import { seededRandom } from '../rig/random.ts';

describe('HostPlan', () => {
  test('the HostPlan of every host contains the CommPlan', () => {
    const plan = samplePlan();
    plan.hosts.forEach((_, index) => {
      const bytes = encodeHostPlan(plan, index);
      expect(isHostPlan(bytes)).toBe(true);
      const decoded = decodeHostPlan(bytes);
      expect(decoded.plan).toEqual(asEncoded(plan, index));
      expect(decoded.hostIndex).toBe(index);
    });
  });

  test('both sides of an edge inside a host share one connection, and no two edges share it', () => {
    const random = seededRandom(7);
    for (let round = 0; round < 200; round++) {
      const plan = randomPlan(random);
      validatePlan(plan);
      const encoded = encodePlan(plan);
      plan.hosts.forEach((_, host) => {
        const { locals, segment } = decodeHostPlan(assembleHostPlan(encoded.body, encoded.host(host).bytes));
        const pairsEnd = segment.pairOffset + locals.length ** 2 * segment.pairStride;
        const senders = new Map<number, string>();
        const receivers = new Map<number, string>();
        for (const { rank, edges } of locals) {
          expect(edges).toHaveLength(plan.peers.length > 1 ? 2 * plan.channels.length : 0);
          for (const edge of edges) {
            const ring = plan.channels[edge.channel]?.ring ?? [];
            const place = ring.indexOf(rank);
            const neighbour = edge.sends ? ring[(place + 1) % ring.length] : ring.at(place - 1);
            expect(edge.peer).toBe(neighbour);
            const sameHost = plan.peers[edge.peer]?.host === host;
            expect(edge.transport).toBe(sameHost ? plan.transports.sameHost : plan.transports.otherHost);
            if (edge.transport !== 'shm') {
              expect(edge.segmentOffset).toBe(0);
              continue;
            }
            expect(edge.segmentOffset % 4096).toBe(0);
            expect(edge.segmentOffset).toBeGreaterThanOrEqual(pairsEnd);
            const name = edge.sends
              ? `${edge.channel}: ${rank} → ${edge.peer}`
              : `${edge.channel}: ${edge.peer} → ${rank}`;
            const ends = edge.sends ? senders : receivers;
            expect(ends.has(edge.segmentOffset)).toBe(false);
            ends.set(edge.segmentOffset, name);
          }
        }
        expect(senders).toEqual(receivers);
      });
    }
  });

  test('decodeHostPlan names the section that lies beyond the plan, and how long the plan is', () => {
    const bytes = encodeHostPlan(samplePlan(), 0);
    const sentences: string[] = [];
    for (let at = 0; at < PLAN_HEADER_BYTES; at += 4) {
      const damaged = Buffer.from(bytes);
      damaged.writeUInt32LE(100_000, at);
      try {
        decodeHostPlan(damaged);
      } catch (error) {
        if (messageOf(error).includes('lie beyond')) sentences.push(messageOf(error));
      }
    }
    expect(sentences.length).toBeGreaterThan(8);
    for (const sentence of sentences)
      expect(sentence).toMatch(
        new RegExp(`^\\w+: \\d+ records of \\d+ bytes at \\d+ lie beyond ${bytes.length} bytes$`),
      );
  });

  test('decodeHostPlan rejects truncated and damaged plans', () => {
    const random = seededRandom(11);
    const bytes = encodeHostPlan(samplePlan(), 0);
    for (let length = 0; length < bytes.length; length += 7) {
      expect(() => decodeHostPlan(bytes.subarray(0, length))).toThrow(PlanError);
    }
    for (let round = 0; round < 3000; round++) {
      const damaged = bytes.slice();
      for (let change = 0; change <= random(4); change++) damaged[random(damaged.length)] = random(256);
      try {
        validatePlan(decodeHostPlan(damaged).plan);
      } catch (error) {
        expect(error).toBeInstanceOf(PlanError);
      }
    }
  });

  test('a plan of 100,000 ranks is encoded within 5 s', () => {
    const nics = samplePlan().hosts[0]?.nics ?? [];
    const hosts = Array.from({ length: 12_500 }, (_, index) => ({
      name: `node${index}`,
      address: '10.0.0.1',
      nics,
      gpuNics: [],
    }));
    const peers = Array.from({ length: 100_000 }, (_, rank) => ({
      host: Math.floor(rank / 8),
      listenPort: 4000,
      pairNic: rank % 2,
    }));
    const ring = peers.map((_, rank) => rank);
    const tree = peers.map((_, rank) => Math.max(0, rank % 8 === 0 ? rank - 8 : rank - 1));
    const reversed = ring.toReversed();
    const channels = [ring, reversed, ring].map((order, rail) => ({ ring: order, tree, rail: rail % 2 }));
    const plan = { ...samplePlan(), hosts, peers, channels };
    const start = performance.now();
    const encoded = encodePlan(plan);
    const bytes = hosts.reduce((sum, _, index) => sum + encoded.host(index).bytes.length, 0);
    expect(bytes / hosts.length).toBeLessThan(2200);
    expect(performance.now() - start).toBeLessThan(5000);
  });
});

describe('a CommPlan as JSON', () => {
  test('a CommPlan survives JSON', () => {
    const { aggregators: _ofJob, ...written } = samplePlan();
    expect(planFromJson(planToJson(samplePlan()), 'plan.json')).toEqual(written);
  });

  const cases: readonly (readonly [string, (text: string) => string, RegExp])[] = [
    ['truncated JSON', (text) => text.slice(0, 40), /^p\.json: no JSON: /],
    [
      'an unknown algorithm',
      (text) => text.replace('"directTwoShot"', '"magic"'),
      /^p\.json: tuning\.1\.variants\.0\.algorithm: /,
    ],
    [
      'an unknown field',
      (text) => text.replace('"stepBytes"', '"stepByte"'),
      /^p\.json: ringBuffer\.stepByte: there is no such field; ringBuffer\.stepBytes is missing$/,
    ],
    ['a missing field', (text) => text.replace(/"steps": 8,/, ''), /^p\.json: ringBuffer\.steps: is missing$/],
    [
      'an extra field',
      (text) => text.replace('"steps": 8', '"steps": 8, "stops": 8'),
      /^p\.json: ringBuffer\.stops: there is no such field$/,
    ],
    ['a number as text', (text) => text.replace('"steps": 8', '"steps": "8"'), /^p\.json: ringBuffer\.steps: /],
    [
      'a broken ring',
      (text) => text.replace(/"ring": \[\s*\d+/, '"ring": [1'),
      /^p\.json: channels\[0\]\.ring\[\d\]: rank 1 comes twice/,
    ],
  ];
  test.each(cases)('a plan with %s is rejected with its position', (_, damage, expected) => {
    const text = damage(planToJson(samplePlan()));
    expect(() => planFromJson(text, 'p.json')).toThrow(expected);
  });
});

test('readPlanFile reads JSON or a host plan, or fails with the name of the file', () => {
  const directory = mkdtempSync(join(tmpdir(), 'ncclrun-plan-'));
  const file = (name: string, content: string | Uint8Array): string => {
    const path = join(directory, name);
    writeFileSync(path, content);
    return path;
  };
  const sample = samplePlan();
  const rows = sample.tuning.filter(({ collective }) => collective === 'sendRecv');
  const plan = {
    ...sample,
    tuning: [...sample.tuning, ...rows.map((row) => ({ ...row, collective: 'barrier' as const }))],
  };
  try {
    expect(() => readPlanFile(file('few.json', planToJson({ ...sample, tuning: sample.tuning.slice(0, 3) })))).toThrow(
      /few\.json: tuning: has no row for barrier and sendRecv; every plan needs rows for allReduce, barrier and sendRecv$/,
    );
    const { aggregators: _ofJob, ...written } = plan;
    expect(readPlanFile(file('a.json', planToJson(plan)))).toEqual(written);
    expect(readPlanFile(file('b.plan', encodeHostPlan(plan, 1)))).toEqual(asEncoded(plan, 1));
    const cut = file('c.plan', encodeHostPlan(plan, 1).subarray(0, 488));
    expect(() => readPlanFile(cut)).toThrow(`${cut}: totalBytes: `);
    expect(() => readPlanFile(join(directory, 'none'))).toThrow(`${join(directory, 'none')}: cannot be read: ENOENT`);
    expect(() => readPlanFile(file('d.json', ''))).toThrow(/d\.json: no JSON: /);
  } finally {
    rmSync(directory, { recursive: true });
  }
});
