/**
 * A private agent, which processes of one host share that ncclrun did not start. The first of them starts it with a listening socket
 * (native/agent/private_agent.h); it exits with the last of them. It has no ranks, guardian or launcher, so it runs the launcher's
 * rendezvous itself, for a job of one host with an unknown number of ranks. Only the process that starts it reads its output, in case it
 * exits before its first answer.
 */
import { availableParallelism, hostname } from 'node:os';
import { messageOf } from '../../control/message-of.ts';
import type { DeviceName } from '../../control/plan/types.ts';
import type { PlannedHost } from '../../control/planner/input/input.ts';
import type { AnnouncedMachine } from '../../control/planner/known-machine.ts';
import { Planner } from '../../control/planner/planner.ts';
import { printable } from '../../control/printable.ts';
import { Hub } from '../../control/rendezvous/hub.ts';
import { deliverPlan, planJoined } from '../../control/rendezvous/planning.ts';
import { leave, loadNative } from '../engine/load.ts';
import type { Native } from '../engine/native.ts';
import { Bootstrap } from './bootstrap.ts';
import type { Tables } from '../../control/planner/measured/tables.ts';
import { refuseSpread, spreadOf } from './spread.ts';
import { findOwnMachine, readGiven, topologyFiles, type TopologyFiles } from './topology-files.ts';
import { findTables } from './tuning.ts';

/** Where whoever starts us puts the socket. */
const LISTENER = 3;
const HOST = 0;
const EPOCH = 0;

export function servePrivately(): void {
  try {
    serve();
  } catch (error) {
    process.stderr.write(`Error: ${printable(messageOf(error).replaceAll('\n', ' '))}\n`);
    process.exit(125);
  }
}

function serve(): void {
  const hostName = hostname();
  const environment = process.env;
  const planner = new Planner(null, environment);
  const spread = spreadOf(environment);
  const native = loadNative();
  native.blockSigusr1(true); // for a Node without --disable-sigusr1
  const files = topologyFiles({ programs: [{ environment: {}, workingDirectory: process.cwd() }] }, environment);
  const finding = files === null ? null : findMachines(native, files);
  const measured = findTables(environment, { used: () => undefined, problem: () => undefined })();
  // Known before the first frame goes to the hub.
  let machines: Machines = NO_MACHINES;
  let tables: Tables | null = null;
  const ready =
    finding === null && measured === null
      ? null
      : Promise.all([finding, measured]).then(([found, all]) => {
          machines = found ?? NO_MACHINES;
          tables = all;
          return undefined;
        });
  const host = (_host: number, device: DeviceName): PlannedHost => ({
    name: hostName,
    address: '',
    cores: availableParallelism(),
    machine: machines[device],
    tables,
  });
  const hub = new Hub({
    epoch: EPOCH,
    hostNames: [hostName],
    rankHosts: [],
    send: (_host, frame) => bootstrap.receive(frame),
    join: (gather) =>
      deliverPlan(gather.key, planJoined(gather, host, planner, false), (_host, frame) => bootstrap.receive(frame)),
    // Ranks that ncclrun has not started have their own launcher, which judges and reports.
    late() {},
    missing() {},
    suspected() {},
    departed() {},
    timedOut() {},
    initTimeoutMs: null,
  });
  const bootstrap = new Bootstrap({
    native,
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
    machine: (device) => finding?.then((found) => found[device]) ?? null,
    sendUp(frame) {
      const refusal = spread === null ? null : refuseSpread(spread, frame);
      if (refusal !== null) bootstrap.receive(refusal);
      else if (ready === null) hub.receive(HOST, frame);
      else void ready.then(() => hub.receive(HOST, frame));
    },
    onDeserted: () => leave(0),
  });
}

type Machines = Readonly<Record<DeviceName, AnnouncedMachine | null>>;
const NO_MACHINES: Machines = { cuda: null, host: null };

/** Ignores a malformed file, because nobody reads the notices of a private agent. */
async function findMachines(native: Native, files: TopologyFiles): Promise<Machines> {
  try {
    const found = findOwnMachine(native, files, await readGiven(files), () => undefined);
    return { cuda: await found('cuda'), host: await found('host') };
  } catch {
    return NO_MACHINES;
  }
}
