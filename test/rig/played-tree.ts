/** The launcher's end of a tree of agents and theirs, over links in memory: leases, multiplexers and child agents are the real ones, hosts are not. */
import { HEARTBEAT } from '../../control/link/lease.ts';
import type { Link } from '../../control/link/link.ts';
import { MemoryLink } from '../../control/link/memory-link.ts';
import { parseReport } from '../../control/link/validate.ts';
import { encodeJson, makeFrame } from '../../control/messages/codec.ts';
import { FrameKind, type Frame } from '../../control/messages/frame.ts';
import type { AgentOrder } from '../../control/messages/link.ts';
import type { AgentConnection } from '../../launcher/remote/shell/connection.ts';
import { agentStarterOver } from '../../launcher/remote/remote-agent.ts';
import type { RemoteExit } from '../../launcher/remote/shell/shell.ts';
import { TreeShell } from '../../launcher/remote/tree/tree-shell.ts';
import type { ChildLink } from '../../worker/agent/child-agents.ts';
import { Uplink } from '../../worker/agent/uplink.ts';
import { hostNamed } from './host-slots.ts';

export const terms = { heartbeatMs: 1000, leaseMs: 5000 };

/** An agent, or rather what of it has to do with the tree. */
class PlayedAgent {
  readonly heard: Frame[] = [];
  readonly uplink: Uplink;
  readonly link: Link;
  /** When nothing had been heard of the launcher for too long, or its streams ended. */
  launcherGoneAt: number | null = null;

  constructor(link: Link, startChild: (name: string) => ChildLink) {
    this.link = link;
    this.uplink = new Uplink(
      link,
      terms,
      () => this.#launcherGone(),
      ([name = '']) => startChild(name),
    );
    link.open({
      frame: (frame) => {
        if (!this.uplink.receive(frame)) this.heard.push(frame);
      },
      closed: () => {
        this.#launcherGone();
        this.uplink.end();
      },
    });
    link.send(makeFrame(FrameKind.hello));
  }

  #launcherGone(): void {
    this.launcherGoneAt ??= performance.now();
  }
}

/** The launcher's end of the connection to one host. */
interface PlayedHost {
  readonly connection: AgentConnection;
  readonly heard: Frame[];
  /** Of `silent` reports. */
  readonly silences: number[];
  /** Steps of its connection, and why it is reached as it is. */
  readonly told: string[];
  closed: string | null | undefined;
}

export class PlayedTree {
  readonly agents = new Map<string, PlayedAgent>();
  readonly hosts = new Map<string, PlayedHost>();
  /** What travels over the launcher's own links from now on. */
  readonly received: Frame[] = [];
  readonly sent: Frame[] = [];
  /** Hosts whose link to the one that reaches them carries nothing. */
  readonly cut = new Set<string>();
  readonly #unreached: ReadonlySet<string>;
  /** What waits for a launcher that is stopped; null: it is not. */
  #waiting: (() => void)[] | null = null;

  /** `unreached`: hosts that no other host reaches. */
  constructor(names: readonly string[], radix: number, unreached: readonly string[] = []) {
    this.#unreached = new Set(unreached);
    const slots = names.map((name) => hostNamed(name));
    const direct = {
      start: ({ name }: { name: string }) => Promise.resolve(this.#direct(name)),
      commandLine: ({ name }: { name: string }) => [name],
      trial: () => '',
      isTransient: ({ status }: RemoteExit) => status === 255,
    };
    const start = agentStarterOver(new TreeShell(direct, slots, radix), null);
    for (const slot of slots) {
      const played = {
        heard: [] as Frame[],
        silences: [] as number[],
        told: [] as string[],
        closed: undefined as string | null | undefined,
      };
      const connection = start(
        slot,
        { ...order, hostName: slot.name },
        {
          frame(frame) {
            played.heard.push(frame);
            const report = frame.kind === FrameKind.failure ? parseReport(frame.payload) : null;
            if (report?.type === 'silent') played.silences.push(report.silentMs);
          },
          closed: ({ problem }) => (played.closed = problem),
          staging: () => undefined,
          remoteShell: (why) => void played.told.push(why),
          step: (step) => void played.told.push(step),
        },
      );
      this.hosts.set(slot.name, Object.assign(played, { connection }));
    }
  }

  stopLauncher(): void {
    this.#waiting = [];
  }

  continueLauncher(): void {
    const waiting = this.#waiting ?? [];
    this.#waiting = null;
    for (const hear of waiting) hear();
  }

  #direct(name: string) {
    const child = this.#connect(name);
    const link: Link = {
      open: (handler) =>
        child.open({
          closed: (problem) => handler.closed(problem),
          frame: (one) => {
            if (this.#waiting !== null) this.#waiting.push(() => handler.frame(one));
            else handler.frame(one);
            this.received.push(one);
          },
        }),
      send: (frame) => {
        if (this.#waiting !== null) return;
        this.sent.push(frame);
        child.send(frame);
      },
      flush: () => undefined,
      close: () => child.close(),
    };
    const exit = child.died.then(({ stderr }): RemoteExit => ({ status: 0, stderr }));
    return { link, exit, kill: () => child.kill(), letGo: () => child.letGo() };
  }

  /** A remote shell to the host, at whose other end its agent starts. */
  #connect(name: string): ChildLink {
    const [near, far] = MemoryLink.pair();
    const died = Promise.withResolvers<{ waitStatus: number | null; stderr: string }>();
    const end = (): void => {
      near.close();
      died.resolve({ waitStatus: null, stderr: '' });
    };
    this.agents.set(name, new PlayedAgent(this.#cable(name, far), (child) => this.#child(child)));
    return Object.assign(this.#cable(name, near), {
      died: died.promise,
      kill: end,
      letGo: end,
      release: () => undefined,
    });
  }

  /** The same from another host. */
  #child(name: string): ChildLink {
    if (this.#unreached.has(name)) throw new Error('No route to host');
    return this.#connect(name);
  }

  #cable(name: string, link: Link): Link {
    return {
      open: (handler) =>
        link.open({
          frame: (frame) => handler.frame(frame),
          closed: (problem) => this.cut.has(name) || handler.closed(problem),
        }),
      send: (frame) => this.cut.has(name) || link.send(frame),
      flush: () => undefined,
      close: () => link.close(),
    };
  }
}

const order: AgentOrder = {
  schemaVersion: 1,
  version: '1',
  jobId: 'job1',
  epoch: 0,
  maxRestarts: 0,
  stays: false,
  uniqueId: '',
  ...terms,
  outputCredit: 1,
  plansLocally: true,
  installation: '/opt/ncclrun',
  topology: false,
  interfaces: null,
  addressFamily: null,
  verbs: true,
  hangAfterMs: 0,
  preload: false,
  portRange: null,
  busyGpus: 'report',
  outerJob: null,
  hostName: '',
  placement: null,
};

export const isHeartbeat = ({ kind }: Frame): boolean => kind === HEARTBEAT.kind;

/** Suspends leases, or resumes them. */
export function suspension(isBeginning: boolean): Frame {
  return makeFrame(FrameKind.suspend, { flags: isBeginning ? 1 : 0 });
}

export function notice(message: string): Frame {
  return makeFrame(FrameKind.failure, { payload: encodeJson({ type: 'notice', message }) });
}
