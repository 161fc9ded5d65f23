/**
 * A private agent: processes that ncclrun has not started share it, on one host. The first of them starts it with a socket that listens
 * already (native/core/private_agent.h); it ends with the last of them. It has no ranks, guardian or launcher, so it is its own
 * launcher's rendezvous: a job of one host of which nobody knows how many ranks it has. Nobody reads what it says, but for the process that
 * starts it, should it end before it has answered.
 */
import { availableParallelism, hostname } from 'node:os';
import { Planner } from '../../control/planner/planner.ts';
import { Hub } from '../../control/rendezvous/hub.ts';
import { deliverPlan, planJoined } from '../../control/rendezvous/planning.ts';
import { leave, loadNative } from '../engine/load.ts';
import { Bootstrap } from './bootstrap.ts';
import { refuseSpread, spreadOf } from './spread.ts';

/** Where whoever starts us puts the socket. */
const LISTENER = 3;
const HOST = 0;
const EPOCH = 0;

export function servePrivately(): void {
  try {
    serve();
  } catch (error) {
    process.stderr.write(`Error: ${error instanceof Error ? error.message.replaceAll('\n', ' ') : String(error)}\n`);
    process.exit(125);
  }
}

function serve(): void {
  const hostName = hostname();
  const environment = process.env;
  const planner = new Planner(null, environment);
  const spread = spreadOf(environment);
  const hosts = [{ name: hostName, address: '', cores: availableParallelism() }];
  const hub = new Hub({
    epoch: EPOCH,
    hostNames: [hostName],
    rankHosts: [],
    send: (_host, frame) => bootstrap.receive(frame),
    join: (gathering) =>
      deliverPlan(gathering.key, planJoined(gathering, hosts, planner, false), (_host, frame) =>
        bootstrap.receive(frame),
      ),
    // Of ranks that ncclrun has not started, their own launcher judges and tells.
    late() {},
    missing() {},
    suspected() {},
    departed() {},
    timedOut() {},
    initTimeoutMs: null,
  });
  const bootstrap = new Bootstrap({
    native: loadNative(),
    socket: LISTENER,
    hostIndex: HOST,
    hostName,
    hostCount: 1,
    rankCount: 0,
    localRankCount: 0, // so nothing waits for more of them before it goes to the hub
    jobId: '',
    epoch: EPOCH,
    plansLocally: true,
    environment,
    sendUp(frame) {
      const refusal = spread === null ? null : refuseSpread(spread, frame);
      if (refusal === null) hub.receive(HOST, frame);
      else bootstrap.receive(refusal);
    },
    onDeserted: () => leave(0),
  });
}
