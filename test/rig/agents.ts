/** Bootstrap sockets of simulated hosts, all on this machine, with the launcher's hub between them. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Frame } from '../../control/messages/frame.ts';
import type { OwnMachine } from '../../worker/agent/bootstrap-service.ts';
import { Bootstrap } from '../../worker/agent/bootstrap.ts';
import { loadNative } from '../../worker/engine/load.ts';
import { EngineClient } from './engine-client.ts';
import { testHub } from './rendezvous.ts';

export interface TestAgents extends Disposable {
  readonly hub: ReturnType<typeof testHub>;
  readonly bootstraps: readonly Bootstrap[];
  readonly sockets: readonly string[];
  /** Frames from agents to the launcher. */
  readonly up: Frame[];
  /** Engines that have introduced themselves, by rank; `host` and `host + 1` … hold two ranks each. */
  engines(ranks: readonly number[]): Promise<EngineClient[]>;
}

/**
 * Two ranks a host. Rank r of the job lives on host floor(r / 2). `machine`: the topology of each host. `plansLocally`: agents plan the
 * communicators of their own ranks alone.
 */
export function testAgents(hostCount: number, machine?: OwnMachine, plansLocally = true): TestAgents {
  const native = loadNative();
  const directory = mkdtempSync(join(tmpdir(), 'ncclrun-test-'));
  const up: Frame[] = [];
  const clients: EngineClient[] = [];
  const bootstraps: Bootstrap[] = [];
  const hub = testHub(hostCount, { send: (host, frame) => bootstraps[host]?.receive(frame) });
  const sockets = Array.from({ length: hostCount }, (_, host) => join(directory, `agent${host}`));
  for (const [hostIndex, socketPath] of sockets.entries()) {
    const sendUp = (frame: Frame): void => {
      up.push(frame);
      hub.hub.receive(hostIndex, frame);
    };
    const place = { hostIndex, hostName: `node${hostIndex}`, hostCount, rankCount: 2 * hostCount, localRankCount: 2 };
    const job = { jobId: 'test', epoch: 0, plansLocally };
    bootstraps.push(
      new Bootstrap({
        native,
        socket: socketPath,
        ...place,
        ...job,
        sendUp,
        ...(machine === undefined ? {} : { machine }),
      }),
    );
  }
  const engines = async (ranks: readonly number[]): Promise<EngineClient[]> =>
    Promise.all(
      ranks.map(async (rank) => {
        const client = await EngineClient.connect(sockets[Math.floor(rank / 2)] ?? '');
        clients.push(client);
        await client.hello(rank);
        return client;
      }),
    );
  return {
    hub,
    bootstraps,
    sockets,
    up,
    engines,
    [Symbol.dispose]() {
      for (const client of clients) client.close();
      for (const bootstrap of bootstraps) bootstrap.close();
      hub.hub.close();
      rmSync(directory, { recursive: true });
    },
  };
}
