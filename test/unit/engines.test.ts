/** The processes that use the engine on one host: who they are, their telemetry pages, and whom the agent refuses. */
import { describe, expect, test } from 'vitest';
import { BOOTSTRAP_PROTOCOL } from '../../control/messages/bootstrap.ts';
import { ByteReader, ByteWriter } from '../../control/messages/bytes.ts';
import { FrameKind } from '../../control/messages/frame.ts';
import { EngineChannel, type Engine } from '../../worker/agent/engine.ts';
import { Engines } from '../../worker/agent/engines.ts';
import type { LocalServer, Native } from '../../worker/engine/native.ts';
import { newKey } from '../rig/rendezvous.ts';
import { watchedEngine } from '../rig/watched-engine.ts';

const key = newKey();
const server: LocalServer = Object.create(null);

function hello({ rank = 1, pid = process.pid, job = 'test', protocol = BOOTSTRAP_PROTOCOL } = {}): Uint8Array {
  return new ByteWriter().u32(protocol).u32(pid).i32(rank).string(job).string('0.0.0').finish();
}

/** `log`: what engines got, one line each. Pages are those of a rank of a communicator, by their order. */
function host() {
  const log: string[] = [];
  let pages = 0;
  const native: Native = Object.assign(Object.create(null), {
    telemetryCreate: () => ({ handle: Object.create(null), view: watchedEngine(key, pages++).telemetry[0] }),
    recorderCreate: () => ({ handle: Object.create(null), view: new Uint8Array(0) }),
    close: () => void log.push('close'),
    localServerSend(
      _: LocalServer,
      to: number,
      kind: number,
      __: number,
      ___: number,
      request: number,
      payload: Uint8Array,
      handles: readonly unknown[],
    ) {
      const refused = (): string => {
        const reader = new ByteReader(payload, 'refusal');
        return `refused with ${reader.u32('result')}: ${reader.string('sentence')}`;
      };
      const what = { [FrameKind.welcome]: 'welcome', [FrameKind.telemetry]: 'page' }[kind] ?? refused();
      log.push(`${to}, ${request}: ${what}, ${handles.length} handles`);
    },
  });
  let deserted = 0;
  const welcome = { hostIndex: 0, hostCount: 1, rankCount: 2, epoch: 0, jobId: 'test', hostName: 'h' };
  const engines = new Engines(native, new EngineChannel(native, server), welcome, () => void (deserted += 1));
  const known = (connection: number): Engine => {
    const engine = engines.get(connection);
    if (engine === undefined) throw new Error(`connection ${connection} is unknown`);
    return engine;
  };
  const ranks = (): number[] => engines.telemetry().flatMap(({ slots }) => slots.map(({ rank }) => rank));
  return { engines, log, known, ranks, deserted: () => deserted };
}

describe('a process that introduces itself', () => {
  test('it gets a page, and is the rank that it says', () => {
    const { engines, log, known } = host();
    engines.connected(7, 4711);
    engines.introduce(7, 3, hello());
    expect(log).toEqual(['7, 3: welcome, 2 handles', 'close', 'close']);
    expect(known(7)).toMatchObject({ connection: 7, pid: 4711, jobRank: 1, gone: false });
    expect(engines.isRank(known(7))).toBe(false);
  });

  test('what the guardian started counts more, also for what descends from it', () => {
    const { engines, known } = host();
    engines.rankSpawned(4, process.ppid);
    engines.connected(7, process.pid);
    engines.introduce(7, 3, hello());
    expect([known(7).jobRank, engines.isRank(known(7))]).toEqual([4, false]);
    engines.connected(8, process.ppid);
    engines.introduce(8, 3, hello());
    expect([known(8).jobRank, engines.isRank(known(8))]).toEqual([4, true]);
  });

  test('a stranger is refused, and a process that does it twice', () => {
    const { engines, log } = host();
    engines.connected(7, 4711);
    engines.introduce(7, 1, hello({ job: 'other' }));
    engines.introduce(7, 2, hello({ protocol: BOOTSTRAP_PROTOCOL + 1 }));
    expect(engines.get(7)).toBeUndefined();
    engines.introduce(7, 3, hello());
    engines.introduce(7, 4, hello());
    expect(log.map((line) => line.replace(/: use the .*,/u, ','))).toEqual([
      "7, 1: refused with 5: pid 4711 belongs to job 'other', the agent at this socket serves job 'test', 0 handles",
      `7, 2: refused with 5: the engine of pid 4711 speaks version ${BOOTSTRAP_PROTOCOL + 1} of the bootstrap protocol, its agent version ${BOOTSTRAP_PROTOCOL}, 0 handles`,
      '7, 3: welcome, 2 handles',
      'close',
      'close',
      '7, 4: refused with 3: pid 4711 has introduced itself before, 0 handles',
    ]);
  });
});

describe('telemetry pages', () => {
  test('an engine gets as many as it asks for, up to 4096', () => {
    const { engines, log, known } = host();
    engines.connected(7, 4711);
    engines.introduce(7, 1, hello());
    engines.morePages(known(7), 2);
    expect(log.slice(3)).toEqual(['7, 2: page, 1 handles', 'close']);
    const { telemetry } = known(7);
    telemetry.push(...Array.from({ length: 4096 - telemetry.length - 1 }, () => new Uint8Array(0)));
    engines.morePages(known(7), 3);
    engines.morePages(known(7), 4);
    expect(log.slice(5)).toEqual([
      '7, 3: page, 1 handles',
      'close',
      '7, 4: refused with 2: pid 4711 has 4096 telemetry pages, which is all that one process gets, 0 handles',
    ]);
  });

  test('those of processes that have ended can still be read, the last 1024 of them', () => {
    const { engines, known, ranks, deserted } = host();
    engines.connected(7, 4711);
    engines.connected(8, 4712);
    engines.introduce(7, 1, hello());
    engines.introduce(8, 1, hello());
    expect(ranks()).toEqual([0, 1]);
    const first = known(7);
    engines.forget(7);
    expect([first.gone, engines.get(7), ranks(), deserted()]).toEqual([true, undefined, [0, 1], 0]);
    for (let page = 0; page < 1023; page++) engines.morePages(known(8), 1);
    engines.forget(8);
    expect([ranks().length, ranks()[0], deserted()]).toEqual([1024, 1, 1]);
    engines.forget(8);
    expect(deserted()).toBe(1);
  });

  test('the end forgets all who are there', () => {
    const { engines, known, deserted } = host();
    engines.connected(7, 4711);
    engines.introduce(7, 1, hello());
    const engine = known(7);
    engines.close();
    expect([engine.gone, engines.get(7), deserted()]).toEqual([true, undefined, 1]);
  });
});
