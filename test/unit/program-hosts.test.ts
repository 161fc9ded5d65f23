/** The hosts of programs with a -H each, sequences of lines, and the bindings that are reported. */
import { describe, expect, test } from 'vitest';
import type { HostTopology } from '../../control/messages/topology.ts';
import { jobRequest } from '../../launcher/cli/job-request.ts';
import { type JobOptionName, runCommandLine } from '../../launcher/cli/options.ts';
import { readCommandLine } from '../../launcher/cli/read-command-line.ts';
import { bindRanks, needsTopology, reportedBinding } from '../../launcher/mapping/bind.ts';
import { mapRanks } from '../../launcher/mapping/map-ranks.ts';
import { allocateJob } from '../../launcher/mapping/program-hosts.ts';
import type { JobRequest } from '../../launcher/model/types.ts';
import { hostNamed } from '../rig/host-slots.ts';
import { fakeMachine } from './allocation-machine.ts';
import { failureFrom } from './failure-from.ts';

const machine = fakeMachine({ f: 'a:2\nu@b:2\nc:2\nd:2\n', seq: 'a\nb\na\n' });

function requestOf(words: string): JobRequest {
  const {
    settings,
    words: program,
    further,
  } = readCommandLine<JobOptionName>(words.split(' '), runCommandLine, { XDG_CONFIG_HOME: '/none' });
  return jobRequest(settings, program, further);
}

/** `host:program` of each rank; then who is left out. */
function mapped(words: string): string[] {
  const request = requestOf(words);
  const { allocation, hostsOf } = allocateJob(request, machine);
  const map = mapRanks(allocation, request, null, hostsOf);
  const ranks = map?.ranks.map(
    ({ host, program }) => `${map.hosts[host]?.user ?? ''}${map.hosts[host]?.name}:${program}`,
  ) ?? ['unknown'];
  return [ranks.join(' '), ...allocation.leftOut.map(({ name, reason }) => `${name}: ${reason}`)];
}

const refused = (words: string): string => {
  const failure = failureFrom(() => mapped(words));
  return failure.type === 'allocation' ? `${failure.message}; ${failure.remedy}` : failure.type;
};

describe('programs with hosts of their own', () => {
  test.each<[string, string[]]>([
    ['-n 2 -H a:2,b:2 p', ['a:0 a:0']],
    ['-n 1 -H a:2 p : -n 2 -H b:2 q', ['a:0 b:1 b:1']],
    ['-H a:1 p : -H b:1,a:1 q', ['a:0 a:1 b:1']],
    ['-n 1 -f f p : -n 3 q', ['a:0 a:1 ub:1 ub:1']],
    ['-f f -n 1 -H b p : -n 1 -H d q', ['ub:0 d:1', 'a: -H does not name it', 'c: -H does not name it']],
    ['-f f -n 1 -H x@c p : -n 1 -H d q', ['xc:0 d:1', 'a: -H does not name it', 'b: -H does not name it']],
    ['-f f -n 2 -H a p : -H +e:1 q', ['a:0 a:0 ub:1 ub:1']],
    [
      '-f f --oversubscribe -n 5 -H a p : -n 1 -H d q',
      ['a:0 a:0 a:0 a:0 a:0 d:1', 'b: -H does not name it', 'c: -H does not name it'],
    ],
    ['-f f -n 2 -H a p : -n 1 -H +e:1 q : -n 1 -H +e:1 r', ['a:0 a:0 ub:1 c:2']],
  ])('"%s" maps its ranks to %j', (words, expected) => {
    expect(mapped(words)).toEqual(expected);
  });

  test.each([
    [
      '-f f -n 1 -H a:1 p : -n 1 q',
      'q: 1 rank asked for beside the 1 of the programs before it, but there are 1 slots (a: 1)',
    ],
    ['-f f -n 3 -H a p', '3 ranks asked for, but there are 2 slots'],
  ])('"%s" is refused', (words, message) => {
    expect(refused(words)).toContain(message);
  });
});

describe('--map-by seq', () => {
  test.each<[string, string[]]>([
    ['-f seq --map-by seq p', ['a:0 b:0 a:0']],
    ['-f seq --map-by seq -n 2 p', ['a:0 b:0']],
    ['-f seq --map-by seq -n 1 p : -n 2 q', ['a:0 b:1 a:1']],
  ])('"%s" follows the lines', (words, expected) => {
    expect(mapped(words)).toEqual(expected);
  });

  test.each([
    [
      '-f seq --map-by seq -n 4 p',
      "--map-by seq puts a rank on each line's host; 4 ranks asked for, but there are 3 lines; list a host as often as it is to get a rank",
    ],
    [
      '-f seq --map-by seq -n 3 p : -n 1 q',
      "--map-by seq puts a rank on each line's host; 1 rank asked for, but there are 0 lines left for ",
    ],
    ['-f seq --map-by seq p : q', '; 1 rank asked for, but there are 0 lines left for '],
  ])('"%s" is refused', (words, message) => {
    expect(refused(words)).toContain(message);
  });
});

describe('bindings', () => {
  const topology: HostTopology = {
    cores: [0, 1, 2, 3].map((core) => ({ cpus: [core, core + 4], numa: core < 2 ? 0 : 1 })),
    gpus: [
      { cpus: [2, 3], numa: 1 },
      { cpus: [], numa: 0 },
    ],
  };
  const gpusOf = (devices: readonly number[] | null, gpus = topology.gpus) => {
    const host = hostNamed('a', { devices, slots: 4 });
    const ranks = [0, 1, 2].map((rank) => ({
      rank,
      host: 0,
      program: 0,
      localRank: rank,
      localSize: 3,
      numa: null,
      gpu: null,
    }));
    const request = { bindTo: 'none', oversubscribe: false } as const;
    return bindRanks({ hosts: [host], ranks }, request, new Map([['a', { ...topology, gpus }]])).map(({ gpu }) => gpu);
  };

  test('ranks use the GPUs that the allocation names, in turn', () => {
    expect([gpusOf(null), gpusOf([1]), gpusOf([1, 0]), gpusOf([0, 2, 1]), gpusOf([2, 3]), gpusOf([0], [])]).toEqual([
      [0, 1, 0],
      [1, 1, 1],
      [1, 0, 1],
      [0, 1, 0],
      [0, 1, 0],
      [null, null, null],
    ]);
  });

  test('a report has the CPUs of the binding, or all that the job may use', () => {
    const topologies = new Map([['a', topology]]);
    expect(reportedBinding({ cpus: [1], numa: 0, gpu: 2 }, 'a', topologies)).toEqual({
      host: 'a',
      bound: true,
      cpus: [1],
      numa: 0,
      gpu: 2,
    });
    expect(reportedBinding({ cpus: [], numa: 0, gpu: null }, 'a', topologies)).toEqual({
      host: 'a',
      bound: false,
      cpus: [0, 1, 2, 3, 4, 5, 6, 7],
      numa: null,
      gpu: null,
    });
    expect(reportedBinding({ cpus: [], numa: null, gpu: null }, 'b', topologies).cpus).toEqual([]);
  });

  test.each<[string, boolean]>([
    ['p', false],
    ['--bind-to core p', true],
    ['--report-bindings p', true],
    ['--isolate-gpus p', true],
    ['--map-by numa p', true],
    ['--map-by ppr:1:gpu p', true],
    ['--map-by ppr:1:node p', false],
    ['--nproc-per-node gpu p', true],
  ])('whether "%s" needs the topologies of hosts: %s', (words, expected) => {
    expect(needsTopology(requestOf(words))).toBe(expected);
  });
});
