/** Faults of the product, planted: what the campaign's oracle must see. Each is a round that has to fail, with a complaint that says why. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { killHard } from '../rig/faults.ts';
import { fine, type Kind, type Verdict } from './kind.ts';

export interface Planted {
  readonly kind: Kind;
  /** Of one of the round's complaints. */
  readonly error: RegExp;
}

/** A process that no job has started. `how`: as planted.c has it, which is at `program`. */
function left(program: string, how: string, error: RegExp): Planted {
  return {
    error,
    kind: {
      name: `planted-${how}`,
      class: 'ends',
      verdicts: { streaming: [fine] },
      async inject({ host }) {
        const child = spawn('nsenter', ['--target', String(host.init), '--all', '--', program, how]);
        await once(child.stdout, 'data'); // it is so far
        return true;
      },
      repair: ({ host }) => Promise.resolve(host.guests().forEach(({ pid }) => killHard(pid))),
    },
  };
}

function file(name: string, path: string): Planted {
  return {
    error: new RegExp(`left behind: .*${path}`),
    kind: {
      name: `planted-${name}`,
      class: 'ends',
      verdicts: { streaming: [fine] },
      inject: ({ host }) => host.exec('touch', path).then(() => true),
      repair: ({ host }) => host.exec('rm', path),
    },
  };
}

/** The job is right, and what is wanted of it wrong. */
function verdict(name: string, wanted: Verdict, error: RegExp): Planted {
  const kind: Kind = {
    name: `planted-${name}`,
    class: 'ends',
    verdicts: { streaming: [wanted] },
    action: { ranks: 'victim', what: 'exit', number: 7 },
  };
  return { error, kind };
}

/** `program`: planted.c, compiled. */
export function plantedFaults(program: string): readonly Planted[] {
  return [
    left(program, 'process', /left behind: .*process \d+ S .*planted process/),
    left(program, 'thread', /left behind: .*process \d+ Z/),
    left(program, 'listener', /left behind: .*TCP socket/),
    left(program, 'socket', /left behind: .*socket @planted/),
    file('file', '/tmp/ncclrun-planted'),
    file('shared-memory', '/dev/shm/ncclrun-planted'),
    verdict('status', { status: 8, reason: 'rank-exit', names: 'rank' }, /status 7, reason rank-exit/),
    verdict('reason', { status: 7, reason: 'rank-signal', names: 'rank' }, /status 7, reason rank-exit/),
    verdict('culprit', { status: 7, reason: 'rank-exit', names: 'nobody' }, /wanted 7 rank-exit, named: nobody/),
    { kind: endless, error: /the job had not ended/ },
  ];
}

/** Nobody tells the ranks to end. */
const endless: Kind = {
  name: 'planted-endless-job',
  class: 'ends',
  verdicts: { streaming: [fine] },
  inject: () => Promise.resolve(true),
  after: () => Promise.resolve(),
};
