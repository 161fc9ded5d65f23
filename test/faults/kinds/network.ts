/** Faults of the network that carries the ranks' data, which the launcher's own connections do not meet. */
import type { ClusterHost } from '../../rig/cluster.ts';
import type { Outcome } from '../../rig/command.ts';
import { killHard, rankOn } from '../../rig/faults.ts';
import type { JobSetup, Kind, Scene, Verdict } from '../kind.ts';

/** The launcher waits for 7 s for more of a rank that others blame, and a job is to have ended after 10 s. */
const TIMEOUT_SECONDS = 1;
/** A rank's call fails with ncclRemoteError or ncclSystemError, and the program ends with status 1. */
const callFailed: Verdict = { status: 1, reason: 'rank-exit', names: 'anybody' };
const killed = { status: 137, reason: 'rank-signal', names: 'rank' } as const;
/** The first of the ports that the whole host may choose. */
const FIRST_PORT = 61_000;
const USUAL_PORTS = '32768 60999';

const netTimeout = (): readonly string[] => ['-x', `NCCLRUN_NET_TIMEOUT=${TIMEOUT_SECONDS}`];

/** The call that failed says why in these words. */
function says(words: RegExp): NonNullable<Kind['check']> {
  return ({ stderr }: Outcome) => (words.test(stderr) ? null : `no rank says ${words.source}`);
}

/** Of the victim's host, by a rule for what comes from the other hosts; the login host is none of them. */
async function rule({ cluster, host }: JobSetup, ...target: readonly string[]): Promise<boolean> {
  for (const other of cluster.hosts.filter((one) => one !== host))
    await host.exec('iptables', '-I', 'INPUT', '-s', other.address, '-p', 'tcp', '-j', ...target);
  return true;
}

function signalRank({ host, rank }: Scene, send: (pid: number) => void): Promise<boolean> {
  const pid = rankOn(host, rank);
  if (pid !== null) send(pid);
  return Promise.resolve(pid !== null);
}

export const networkKinds: readonly Kind[] = [
  {
    name: 'rank-killed-in-collective',
    class: 'ends',
    verdicts: { started: [killed], streaming: [killed] },
    inject: (scene) => signalRank(scene, killHard),
  },
  {
    name: 'receiver-stopped',
    class: 'ends',
    verdicts: { streaming: [callFailed] },
    options: netTimeout,
    inject: (scene) => signalRank(scene, (pid) => process.kill(pid, 'SIGSTOP')),
    check: says(/lost the connection with rank \d+ on host h\d.* has sent no heartbeat for 1 s/),
  },
  {
    name: 'data-cut',
    class: 'ends',
    verdicts: { started: [callFailed], streaming: [callFailed] },
    options: netTimeout,
    inject: (scene) => rule(scene, 'DROP'),
    check: says(/lost the connection with rank \d+ on host h\d.* has not answered for 1 s/),
    repair: ({ host }) => host.accept(),
  },
  {
    name: 'data-reset',
    class: 'ends',
    verdicts: { started: [callFailed], streaming: [callFailed] },
    options: netTimeout, // the host itself sees only that nobody answers
    inject: (scene) => rule(scene, 'REJECT', '--reject-with', 'tcp-reset'),
    check: says(/lost the connection with rank \d+ on host h\d/),
    repair: ({ host }) => host.accept(),
  },
  {
    name: 'ports-exhausted',
    class: 'ends',
    // The agent takes one for the program, the ranks one each.
    verdicts: { connecting: [callFailed, { status: 125, reason: 'agent', names: 'host' }] },
    prepare: ({ host, random }) => usePorts(host, `${FIRST_PORT} ${FIRST_PORT + random(2)}`),
    inject: () => Promise.resolve(true),
    check: says(/net\.ipv4\.ip_local_port_range, 61000 to 6100/),
    repair: ({ host }) => usePorts(host, USUAL_PORTS),
  },
];

function usePorts(host: ClusterHost, range: string): Promise<string> {
  return host.exec('sysctl', '-w', `net.ipv4.ip_local_port_range=${range}`);
}
