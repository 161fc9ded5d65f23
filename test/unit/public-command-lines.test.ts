/** Command lines that public scripts and pages hold, with their faults: each is read as its launcher reads it, or answered. */
import { describe, expect, test } from 'vitest';
import { jobRequest } from '../../launcher/cli/job-request.ts';
import { normalisedCommand, shellLine } from '../../launcher/cli/normalise.ts';
import { type JobOptionName, runCommandLine } from '../../launcher/cli/options.ts';
import {
  notesOnWordBehindFlag,
  programNotes,
  refuseDetachedValue,
  refuseNoProgram,
} from '../../launcher/cli/program-word.ts';
import { readCommandLine } from '../../launcher/cli/read-command-line.ts';
import { splitCommandLine } from '../../launcher/cli/split.ts';
import { failureFrom } from './failure-from.ts';

const nowhere = { XDG_CONFIG_HOME: '/nonexistent' };

const read = (argv: readonly string[]) => readCommandLine<JobOptionName>(argv, runCommandLine, nowhere);

function understood(text: string): string {
  const { settings, words, further } = read(text.split(' '));
  jobRequest(settings, words, further);
  const [, ...command] = normalisedCommand(runCommandLine, settings, words, further);
  return shellLine(command);
}

function refusedBy(run: () => unknown): string {
  const failure = failureFrom(run);
  if (failure.type !== 'usage') throw new Error(`a failure of type ${failure.type}`);
  return `${failure.message}\n${failure.remedy ?? ''}`;
}

const refused = (text: string) => refusedBy(() => understood(text));

const notesBehindFlag = (...argv: readonly string[]) =>
  notesOnWordBehindFlag(argv, splitCommandLine(argv, runCommandLine).words, '/bin');

const notes = (text: string, isManaged = false) => {
  const { settings, words } = read(text.split(' '));
  return programNotes(settings, words, isManaged).join('\n');
};

test.each([
  ['--map-by :OVERSUBSCRIBE -n 8 p', '-n 8 --map-by :OVERSUBSCRIBE p'],
  ['--launcher OPENMPI --num_nodes 2 --num_gpus 8 train.py', '-n 16 -N 8 train.py'],
  ['--num_nodes 2 --num_accelerators 8 train.py', '-n 16 -N 8 train.py'],
  ['-r ssh -n 2 p', '-n 2 p'],
  ['-n 4 -ppn 2 --line-buffer --no-vni --label --depth=8 p', '-n 4 -N 2 --tag-output=rank p'],
  ['-n 8 -N 4 -d 2 -j 1 -ss ./a.out', '-n 8 -N 4 ./a.out'],
  ['-n 4 -e OMP_NUM_THREADS=2 ./a.out', '-n 4 -x OMP_NUM_THREADS=2 ./a.out'],
  ['-n 4 --env OMP_NUM_THREADS=8 --env OMP_PLACES=threads p', '-n 4 -x OMP_NUM_THREADS=8 -x OMP_PLACES=threads p'],
  ['-n 64 -N 16 -cc numa_node -B ./a.out', '-n 64 -N 16 --bind-to numa ./a.out'],
  ['-gn 4 -gwdir /tmp -ghost h1:4 -silent-abort p', '-n 4 --wdir /tmp -H h1:4 p'],
  ['-d --debug-daemons -ompi-server file:x -np 2 p', '-n 2 p'],
  ['-O -n 4 p', '-n 4 --oversubscribe p'],
  ['--test-only -n 4 -T 2 --slurmd-debug=verbose --segment=16 -E p', '-n 4 p'],
  ['-n 4 -gpus-per-proc=1 p', '-n 4 p'],
  ['--nproc-per-node=2 --signals-to-handle=SIGTERM --virtual-local-rank t.py', '-N 2 t.py'],
])('the public line "%s" is read as "%s"', (typed, command) => {
  expect(understood(typed)).toBe(command);
});

test.each([
  [
    '--map-by socket:PE=6 --rank-by core -n 8 p',
    /2 options.*--map-by: write --map-by numa --bind-to numa.*--rank-by:/su,
  ],
  ['--map-by slot:PE=4 -n 2 p', /leave PE=N out, and write --bind-to core .* or --bind-to numa/u],
  ['--map-by core -n 3 --bycore p', /2 options.*--map-by: write --map-by slot --bind-to core/su],
  ['--map-by ppr:4:socket -n 8 p', /write --map-by ppr:N:numa/u],
  ['--map-by rankfile:file=rf p', /a line for each rank, and --map-by seq/u],
  ['--map-by pe-list=0,1:ordered p', /taskset -c LIST PROGRAM/u],
  ['--map-by dist:auto:mlx5_0 p', /--map-by gpu .*or --map-by numa/u],
  ['-by-core -bind-to-core -np 2 p', /-by-core is an option of Open MPI.*\nwrite --map-by slot --bind-to core/u],
  ['--mca btl=self,tcp p', /--mca btl=self,tcp is an option of Open MPI.*\nwrite --mca K V, with a blank/u],
  ['-gtool vtune -ckpoint on -n 2 p', /2 options.*-gtool: .*TOOL PROGRAM\n-ckpoint: write --on-failure restart/su],
  ['--rtos recoverable -np 2 p', /--on-failure shrink/u],
  ['--with-ft ulfm -np 2 p', /--on-failure shrink/u],
  ['-np 2 --dvm-uri file:x p', /leave it out/u],
  ['-bind-to user:0,1 -n 2 p', /-bind-to user:0,1 is an option of MPICH/u],
  [
    '-n 4 -ppn 4 --cpu-bind depth -d 16 p',
    /--cpu-bind depth is an option of Cray PALS.*\nwrite --bind-to core .* numa/u,
  ],
  ['-n 4 -B 4-4:2-2 -L a,b p', /-L is an option of Cray ALPS.*\nwrite -H a,b/u],
  ['-n2 -c4 ./hybrid', /-n2: did you mean -n 2\?\n-c4: as in Open MPI: write -n 4; as in Slurm: leave it out/u],
  ['-K0 -t00:10 -n 2 p', /2 options.*-K0: write --on-failure shrink.*-t00:10: .*--timeout/su],
  ['-n 4 -std-proc log/NOUT p', /write --output file=/u],
  ['-R exec -w a -b hostname', /2 options.*-R: .*--rsh.*-b: write --fold/su],
  ['-d afterok:123 -n 2 p', /-d afterok:123 is an option of Slurm.*\n.*salloc/u],
  ['-g compute -a hostname', /2 options.*-g: .*-H or --hostfile.*-a: .*-H or --hostfile/su],
])('the public line "%s" is answered with what to write instead', (typed, message) => {
  expect(refused(typed)).toMatch(message);
});

describe('a word that stands where the program is expected', () => {
  test.each([
    ['MV2_A=48 ./p', null, /MV2_A=48 stands where the program is expected\nwrite -x MV2_A=48 before the program/u],
    ['A=1 B=2 ./p -d C=3', null, /write -x A=1 -x B=2 before/u],
    ['–np 2 p', null, /–np begins with a dash .* not "-"\nwrite --np/u],
    ['—n 2 p', null, /write -n/u],
    ['\u00a0./p', null, /begins with a blank/u],
    ['h2:1 ./p', 'h1:1', /h2:1 stands where the program is expected\nhosts have commas between them: -H h1:1,h2:1/u],
  ])('"%s" is refused', (words, hostList, message) => {
    expect(refusedBy(() => refuseNoProgram(words.split(' '), hostList))).toMatch(message);
  });

  test('a lone blank, as a backslash with a blank behind it leaves, is refused', () => {
    expect(refusedBy(() => refuseNoProgram([' '], null))).toContain('a backslash continues a line only as its last');
  });

  test.each([
    ['./A=1', null],
    ['h2:1', null],
    ['bin/a:1', 'h1'],
    ['a-b=c', null],
    ['', null],
  ])('the program "%s" is no such word', (word, hostList) => {
    expect(() => refuseNoProgram([word], hostList)).not.toThrow();
  });

  test('a word behind an option without a value, which is no program here, is noted', () => {
    expect(notesBehindFlag('-n', '2', '-q', 'regular', '-C', 'gpu')).toEqual([
      '-q has no value here, so "regular" is the program',
    ]);
    expect(notesBehindFlag('-l', 'root', '-w', 'a,b', 'hostname')).toEqual([
      '-l has no value here, so "root" is the program',
    ]);
    expect(notesBehindFlag('-q', 'sh', '-c', 'true')).toEqual([]);
    expect(notesBehindFlag('-n', '2', 'regular', '-C')).toEqual([]);
    expect(notesBehindFlag('--color=never', 'regular', '-C')).toEqual([]);
    expect(notesBehindFlag('-q', 'train.py', '--lr', '1')).toEqual([]);
  });
});

describe('what is noted of programs', () => {
  test.each([
    '-n 4 mpirun -np 4 p',
    'mpirun -np 4 p',
    '-n 2 /usr/bin/torchrun --nproc_per_node 2 t.py',
    '-n 2 python3 -m torch.distributed.run t.py',
    '-H a:4,b:4 -N 4 accelerate launch t.py',
  ])('"%s" starts a launcher in each rank', (text) => {
    expect(notes(text)).toMatch(/starts processes itself: each rank is a job of its own/u);
  });

  test.each([
    '-N 1 -H a,b torchrun t.py',
    '-n 1 mpirun p',
    '-n 2 ./mpirun-me',
    '-H a:1,b:1 torchrun t.py',
    '-n 2 accelerate config',
  ])('"%s" starts no second job beside another', (text) => {
    expect(notes(text)).toBe('');
  });

  test('the hosts of an allocation may each have a launcher', () => {
    expect(notes('-n 2 torchrun t.py', true)).toBe('');
  });

  test('a program that quotes made one word of is noted', () => {
    const { settings } = read(['p']);
    expect(programNotes(settings, ['python3 train.py'], false)).toEqual([
      'the program is "python3 train.py", one word with blanks: without its quotes it is python3 with arguments',
    ]);
    expect(programNotes(settings, ['/my dir/train'], false)).toEqual([]);
    expect(programNotes(settings, ['sh', '-c', 'a b'], false)).toEqual([]);
  });

  test('a file that is given as a host is named', () => {
    expect(notes('-H package.json -n 2 p')).toBe(
      '-H package.json is a host of that name; the file package.json is --hostfile package.json',
    );
    expect(notes('-H node1,node2 -n 2 p')).toBe('');
  });
});

test.each([
  ['-n 4 --collnet 2 ./a.out', '"2" behind --collnet stands where the program is expected\nwrite --collnet=2, or --'],
  [
    '-n 4 --tag-output host p',
    '"host" behind --tag-output stands where the program is expected\nwrite --tag-output=host,',
  ],
])('a value that is a word of its own is refused: %s', (typed, message) => {
  const argv = typed.split(' ');
  const { words } = splitCommandLine(argv, runCommandLine);
  expect(refusedBy(() => refuseDetachedValue(argv, words, runCommandLine.options, '/nowhere'))).toContain(message);
});

test.each(['-n 4 --collnet ./a.out', '-n 4 --tag-output cat', '--tag-output=host p'])('%s has a program', (typed) => {
  const argv = typed.split(' ');
  const { words } = splitCommandLine(argv, runCommandLine);
  refuseDetachedValue(argv, words, runCommandLine.options, '/bin');
  expect(words).toHaveLength(1);
});
