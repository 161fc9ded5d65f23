/** A remote shell that a test plays, and what an agent's start over it reports. */
import { expect } from 'vitest';
import type { LinkHandler } from '../../control/link/link.ts';
import { makeFrame } from '../../control/messages/codec.ts';
import type { Frame, FrameKind } from '../../control/messages/frame.ts';
import type { AgentOrder } from '../../control/messages/link.ts';
import { agentStarterOver } from '../../launcher/remote/remote-agent.ts';
import type { ConnectionEnd, ConnectionProgress } from '../../launcher/remote/shell/connection.ts';
import type { RemoteExit, RemoteShell } from '../../launcher/remote/shell/shell.ts';
import { hostNamed } from './host-slots.ts';
import { scriptedJob, turn } from './scripted-host.ts';

/** One run of the remote command. */
export class Played {
  readonly command: string;
  readonly progress: ConnectionProgress;
  readonly sent: Frame[] = [];
  readonly ended: string[] = [];
  readonly exit = Promise.withResolvers<RemoteExit>();
  #handler: LinkHandler | null = null;

  constructor(command: string, progress: ConnectionProgress) {
    this.command = command;
    this.progress = progress;
  }

  get process() {
    const link = {
      open: (handler: LinkHandler) => void (this.#handler = handler),
      send: (frame: Frame) => void this.sent.push(frame),
      flush: () => undefined,
      close: () => void this.ended.push('close'),
    };
    return {
      link,
      exit: this.exit.promise,
      kill: () => void this.ended.push('kill'),
      letGo: (lost: boolean) => void this.ended.push(lost ? 'let go, lost' : 'let go'),
      loginMs: 10_000,
    };
  }

  say(kind: FrameKind, flags = 0, subject = 0): void {
    this.#handler?.frame(makeFrame(kind, { flags, subject }));
  }

  async ends(exit: Partial<RemoteExit> = {}, problem: string | null = null): Promise<void> {
    this.#handler?.closed(problem);
    this.exit.resolve({ status: 0, stderr: '', ...exit });
    for (let round = 0; round < 6; round++) await turn();
  }

  kinds(): FrameKind[] {
    return this.sent.map(({ kind }) => kind);
  }
}

const { agents } = scriptedJob(['node7'], 1);
const order: AgentOrder = agents[0]?.order ?? expect.unreachable();
const identity = { version: '1', key: '1-abc' };

const settle = async () => {
  for (let round = 0; round < 4; round++) await turn();
};

/** `staged`: hosts without ncclrun get it. `isTransient`: another attempt may succeed. */
export async function playedShell(staged = false, isTransient = false) {
  const runs: Played[] = [];
  const seen = { steps: new Array<string>(), frames: new Array<FrameKind>(), ends: new Array<ConnectionEnd>() };
  let refuses: Error | null = null;
  const shell: RemoteShell = {
    async start(_host, command, progress) {
      const run = new Played(command, progress);
      runs.push(run);
      if (refuses !== null) throw refuses;
      return run.process;
    },
    trial: ({ name }, verbose) => `ssh ${verbose ? '-v ' : ''}${name} true`,
    isTransient: () => isTransient,
  };
  const start = (error: Error | null = null) => {
    refuses = error;
    return agentStarterOver(shell, staged ? identity : null)(hostNamed('node7'), order, {
      frame: ({ kind }) => void seen.frames.push(kind),
      remoteShell: () => undefined,
      step: (step) => void seen.steps.push(step),
      staging: () => undefined,
      closed: (end) => void seen.ends.push(end),
    });
  };
  return { runs, seen, start, settle };
}
