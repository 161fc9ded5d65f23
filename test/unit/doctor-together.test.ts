/** What hosts find out with each other: here several processes' parts in one process, over the loopback interface. */
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { togetherAnswer, type TogetherAnswer } from '../../control/together.ts';
import { togetherFindings } from '../../launcher/doctor/together.ts';
import { lookTogether } from '../../worker/readings/together.ts';
import * as v from 'valibot';

let root = '';
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'ncclrun-together-'));
  for (const name of ['shared', 'own']) mkdirSync(join(root, name));
});
afterEach(() => rmSync(root, { recursive: true }));

const well: TogetherAnswer = { file: 'seen', listened: true, unreached: [] };
const timedOut = (host: string) => ({ host, address: '10.0.0.9', error: 'connection timed out' });

/** What is not well. */
const findings = (answers: Readonly<Record<string, Partial<TogetherAnswer>>>) =>
  togetherFindings(
    Object.entries(answers).map(([name, answer]) => ({ name, answer: { ...well, ...answer } })),
    20_000,
  ).filter(({ answer }) => answer !== 'ok');

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, () => resolve()));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === 'object' && address !== null ? address.port : 0;
}

describe('the part of a host', () => {
  /** Both listen on one port of the same machine, so the second one cannot: the first one's address serves for both. */
  it('a host that shares the directory sees the file, one that does not misses it, and the file is removed', async () => {
    const port = await freePort();
    const hosts = ['m1', 'm2', 'm3'].map((machine) => ({ name: machine, machine, addresses: ['127.0.0.1'] }));
    const order = { sign: '0123456789abcdef', port, hosts };
    const first = lookTogether(order, { machine: 'm1', directory: join(root, 'shared') });
    const sharing = lookTogether(order, { machine: 'm2', directory: join(root, 'shared') });
    const apart = lookTogether(order, { machine: 'm3', directory: join(root, 'own') });
    expect(await sharing).toMatchObject({ file: 'seen', unreached: [] });
    expect(await apart).toMatchObject({ file: 'absent', unreached: [] });
    expect(readdirSync(join(root, 'shared'))).toEqual(['.ncclrun-doctor-0123456789abcdef']);
    const answer = await first;
    expect(v.parse(togetherAnswer, answer)).toEqual({ file: 'written', listened: true, unreached: [] });
    expect(readdirSync(join(root, 'shared'))).toEqual([]);
  }, 30_000);

  it('a host that is not there is named with its address and the reason', async () => {
    const order = {
      sign: '0123456789abcdef',
      port: await freePort(),
      hosts: [
        { name: 'm1', machine: 'm1', addresses: [] },
        { name: 'm2', machine: 'm2', addresses: ['127.0.0.9'] },
      ],
    };
    const answer = await lookTogether(order, { machine: 'm2', directory: root });
    expect(answer).toEqual({
      file: 'unknown',
      listened: true,
      unreached: [{ host: 'm1', address: '', error: 'it has no address' }],
    });
  }, 30_000);
});

describe('the findings', () => {
  it('hosts that reach each other in one directory are well', () => {
    expect(findings({ a: { file: 'written' }, b: {} })).toEqual([]);
    expect(
      togetherFindings(
        [
          { name: 'a', answer: { ...well, file: 'written' } },
          { name: 'b', answer: well },
        ],
        1,
      ).map(({ check, host }) => [check, host]),
    ).toEqual([
      ['network.mesh', 'a'],
      ['network.mesh', 'b'],
      ['files.shared', 'a'],
      ['files.shared', 'b'],
    ]);
  });

  it('a pair without a connection is named with address, port and reason', () => {
    expect(findings({ a: { file: 'written' }, b: { unreached: [timedOut('c')] }, c: {} })).toMatchObject([
      {
        check: 'network.mesh',
        answer: 'fail',
        host: 'b',
        message: 'does not reach c at 10.0.0.9, port 20000: connection timed out',
      },
    ]);
  });

  it('a host that most others do not reach is named once', () => {
    const inVain = { unreached: [timedOut('c')] };
    expect(findings({ a: { file: 'written', ...inVain }, b: inVain, c: {} })).toMatchObject([
      { host: 'c', message: '2 of 2 hosts do not reach it at 10.0.0.9, port 20000: connection timed out' },
    ]);
  });

  it('a host that could not listen, or did not answer, is not blamed', () => {
    const inVain = { unreached: [timedOut('c')] };
    expect(findings({ a: { file: 'written', ...inVain }, b: inVain, c: { listened: false } })).toMatchObject([
      { host: 'c', answer: 'unknown', message: 'port 20000 is in use there, so nobody could try to reach it' },
    ]);
    expect(findings({ a: { file: 'written', ...inVain }, b: inVain })).toEqual([]);
  });

  it('a working directory of its own is a note, and so is one that cannot be tried', () => {
    expect(findings({ a: { file: 'written' }, b: { file: 'absent' }, c: { file: 'unknown' } })).toMatchObject(
      [{ check: 'files.shared', answer: 'note', host: 'b', message: /not that of a/u }].map((row) => ({
        ...row,
        message: expect.stringMatching(row.message),
      })),
    );
    expect(findings({ a: { file: 'unwritable' }, b: { file: 'absent' } })).toMatchObject([
      { check: 'files.shared', answer: 'note', host: 'a' },
    ]);
  });
});
