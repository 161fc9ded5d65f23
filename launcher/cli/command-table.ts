/** What every command takes and is good for: parser, help, man page and completion of the commands are made from this. */
import { COLLECTIVE_WORDS } from '../../control/collectives.ts';
import { type CommandName, commandNames } from '../model/command-names.ts';
import type { CommandLine } from '../model/option.ts';
import {
  batchCommandLine,
  configCommandLine,
  doctorCommandLine,
  hostsCommandLine,
  perfCommandLine,
  planCommandLine,
  runCommandLine,
  topoCommandLine,
  tuneCommandLine,
} from './options.ts';
import { jobsOptions, releaseOptions, submitOptions } from './options/batch.ts';
import {
  attachOptions,
  buildOptions,
  bundleOptions,
  dumpOptions,
  logsOptions,
  plainOptions,
  psOptions,
  replayOptions,
  sbatchOptions,
  stackOptions,
} from './options/commands.ts';

/** What a command's own words are. */
export type Words =
  | { readonly type: 'none' }
  | { readonly type: 'program' }
  | { readonly type: 'files' }
  | {
      readonly type: 'choice';
      readonly choices: readonly string[];
      readonly required: boolean;
      /** What one of them is, for messages. */
      readonly noun: string;
    };

export interface CommandEntry {
  readonly line: CommandLine;
  readonly words: Words;
  /** After `ncclrun`, without the options. */
  readonly usage: string;
  /** For the list of commands. */
  readonly summary: string;
  readonly about: string;
  readonly examples: readonly string[];
}

export const shells = ['bash', 'zsh', 'fish'] as const;
export const collectives = Object.values(COLLECTIVE_WORDS);
/** What perf measures beside collectives. */
export const NETWORK_WORD = 'net';

export const runEntry: CommandEntry = {
  line: runCommandLine,
  words: { type: 'program' },
  usage: 'ncclrun [options] PROGRAM [arguments]',
  summary: 'start a job',
  about:
    'Starts one worker per slot on many hosts, wires them up for barriers and collectives, and ends them together.',
  examples: ['ncclrun -n 4 hostname', 'ncclrun --hostfile hosts -N 8 python3 train.py --lr 0.1'],
};

/** In the order of the help. */
export const commandTable: Readonly<Record<CommandName, CommandEntry>> = {
  perf: {
    line: perfCommandLine,
    words: { type: 'choice', choices: [...collectives, NETWORK_WORD], required: true, noun: 'collective' },
    usage: 'ncclrun perf COLLECTIVE|net [options]',
    summary: 'measure a collective, or the network between hosts',
    about: `Measures a collective as nccl-tests does. Collectives: ${collectives.join(', ')}. net: latency and bandwidth between the NICs of every two hosts, one pair after another, as perftest measures them; of the options of the measurement it takes --sizes and --nics.`,
    examples: ['ncclrun perf all_reduce -n 4 -b 8 -e 64M --check', 'ncclrun perf net --hostfile hosts --sizes 64K,1M'],
  },
  tune: {
    line: tuneCommandLine,
    words: { type: 'none' },
    usage: 'ncclrun tune [options]',
    summary: 'measure every variant here; jobs then take the fastest',
    about:
      'Measures every variant of every collective (algorithm, protocol, channels) between ranks of one host or several, and stores the times in the cache directory. Jobs with as many ranks on the same hardware and network take of each size the variant that was fastest; NCCLRUN_TUNE=0: they do not.',
    examples: ['ncclrun tune -n 4', 'ncclrun tune -n 8 --device cuda --collective all_reduce,all_gather -e 256M'],
  },
  plan: {
    line: planCommandLine,
    words: { type: 'files' },
    usage: 'ncclrun plan [--topo F.xml[:N]]... [--nodes N] [--ranks R] [options]',
    summary: 'show how ranks would talk: channels, trees, times',
    about:
      "Plans the channels of a job from topologies in NCCL's XML, without starting anything: rings, trees and CollNet's chains with their bandwidths, the orders of ranks, the NICs, and the predicted time of a collective for each size.",
    examples: ['ncclrun plan --topo dgx_h100.xml --nodes 16', 'ncclrun plan --topo a.xml:2 --topo b.xml:3 --explain'],
  },
  hosts: {
    line: hostsCommandLine,
    words: { type: 'files' },
    usage: 'ncclrun hosts [FILE|LIST] [options]',
    summary: 'print hosts and their slots, or convert a hostfile',
    about:
      'Prints the hosts of a hostfile or list with their slots and where these come from, or writes them as another tool reads them. Without FILE or LIST: the hosts that a job started here would use.',
    examples: ['ncclrun hosts hostfile', "ncclrun hosts 'node[01-04]:8' --to openmpi"],
  },
  doctor: {
    line: doctorCommandLine,
    words: { type: 'none' },
    usage: 'ncclrun doctor [-H LIST | --hostfile FILE] [--quick|--passive] [--json]',
    summary: 'find what is wrong with hosts and the network between',
    about:
      'Looks at every host (processors, memory, limits, files, clock, network cards, GPUs), compares hosts with each other, measures the network between every two, and says what is wrong, where, and what to do. It changes nothing. Exit status: 0 if all is well, 1 if something is wrong or could not be checked, 125 if a host was not reached.',
    examples: ['ncclrun doctor --hostfile hosts', 'ncclrun doctor --quick -H node1,node2 --json'],
  },
  topo: {
    line: topoCommandLine,
    words: { type: 'none' },
    usage: 'ncclrun topo [--from FILE | --host HOST] [--format text|json|xml|svg]',
    summary: 'show what a machine is: GPUs, NICs and the links between',
    about:
      "Shows a machine: processors, PCI switches, GPUs with their NVLinks, NICs, what each link carries, and the paths between GPUs and NICs. It is found out here, on another host, or read from a file in NCCL's format.",
    examples: ['ncclrun topo --host node1', 'ncclrun topo --format svg > node.svg'],
  },
  config: {
    line: configCommandLine,
    words: { type: 'none' },
    usage: 'ncclrun config [--explain] [options of a job]',
    summary: 'print the settings in force, and where each comes from',
    about:
      'Prints the settings that a job started here would have: from the options given, the environment, ./ncclrun.json, $XDG_CONFIG_HOME/ncclrun/config.json, and the defaults.',
    examples: ['ncclrun config --explain', 'ncclrun config --json -n 4 --hostfile hosts'],
  },
  ps: {
    line: { command: 'ps', options: psOptions, words: 'words' },
    words: { type: 'none' },
    usage: 'ncclrun ps [--json]',
    summary: 'list your jobs that run from this machine',
    about:
      'Lists the jobs that you have started from this machine and that run: which ranks they have on which hosts, for how long, and the process of ncclrun.',
    examples: ['ncclrun ps', 'ncclrun ps --json'],
  },
  stop: {
    line: { command: 'stop', options: plainOptions, words: 'words' },
    words: { type: 'files' },
    usage: 'ncclrun stop JOB',
    summary: 'end a job of yours that runs from this machine',
    about:
      'Ends a job that ncclrun ps lists, and waits for that: its ranks get SIGTERM, and SIGKILL after its --grace. JOB is its id, the beginning of that, or the process of ncclrun.',
    examples: ['ncclrun stop 5f3a', 'ncclrun stop 4711'],
  },
  logs: {
    line: { command: 'logs', options: logsOptions, words: 'words' },
    words: { type: 'files' },
    usage: 'ncclrun logs JOB [--rank LIST] [-f]',
    summary: 'show the last output of a job of yours that runs',
    about:
      'Shows what the ranks of a job that ncclrun ps lists have written, as far as its ncclrun keeps it: the last MiB, with the tags of its terminal. A reader who is too slow for the job misses output, and is told how much. JOB is its id, the beginning of that, or the process of ncclrun.',
    examples: ['ncclrun logs 5f3a --rank 0', 'ncclrun logs -f 4711'],
  },
  attach: {
    line: { command: 'attach', options: attachOptions, words: 'words' },
    words: { type: 'files' },
    usage: 'ncclrun attach JOB [--rank LIST]',
    summary: 'show the output of a job of yours from now on',
    about:
      'Shows what the ranks of a job that ncclrun ps lists write from now on, until it ends, and exits with its status. ^C detaches, and the job goes on. Stdin is not passed on. JOB is its id, the beginning of that, or the process of ncclrun.',
    examples: ['ncclrun attach 5f3a', 'ncclrun attach 4711 --rank 0-3'],
  },
  stack: {
    line: { command: 'stack', options: stackOptions, words: 'words' },
    words: { type: 'files' },
    usage: 'ncclrun stack JOB [--rank LIST] [--json]',
    summary: 'show in which functions the ranks of a job are',
    about:
      'Reads the stacks of the ranks of a job that ncclrun ps lists: C, C++ and Python functions, and JavaScript where Node names it. Ranks with equal frames are one line of a tree, with their number and their list. Each process stands still for a moment, and goes on. JOB is its id, the beginning of that, or the process of ncclrun.',
    examples: ['ncclrun stack 5f3a', 'ncclrun stack 4711 --rank 0,3-5'],
  },
  status: {
    line: { command: 'status', options: psOptions, words: 'words' },
    words: { type: 'files' },
    usage: 'ncclrun status JOB [--json]',
    summary: 'show how the ranks of a running job get on',
    about:
      'Shows the communicators of a job that ncclrun ps lists, grouped by equal shape and state, the ranks that stand out first, and its verdicts so far. It reads every rank’s position twice, and the job goes on undisturbed. JOB is its id, the beginning of that, or the process of ncclrun.',
    examples: ['ncclrun status 5f3a', 'ncclrun status 4711 --json'],
  },
  dump: {
    line: { command: 'dump', options: dumpOptions, words: 'words' },
    words: { type: 'files' },
    usage: 'ncclrun dump JOB [-o FILE]',
    summary: 'write what the ranks of a running job have recorded',
    about:
      'Writes the last operations of every rank of a job that ncclrun ps lists into a file, which ncclrun replay shows; the job goes on. Of each rank it has 256 operations, of the first ten all that their flight recorders hold. JOB is its id, the beginning of that, or the process of ncclrun.',
    examples: ['ncclrun dump 5f3a', 'ncclrun dump 4711 -o now.json'],
  },
  replay: {
    line: { command: 'replay', options: replayOptions, words: 'words' },
    words: { type: 'files' },
    usage: 'ncclrun replay FILE [--rank R] [--last N] [--html FILE] [--perfetto FILE] [--redact]',
    summary: 'show what each rank did before a failure or hang',
    about:
      "Shows the operations in the file of a failed job's --report, or of ncclrun dump: of each communicator what was called, when each rank began and ended it, who was last, and who is missing.",
    examples: ['ncclrun replay report.json --rank 3', 'ncclrun replay report.json --html report.html'],
  },
  batch: {
    line: batchCommandLine,
    words: { type: 'files' },
    usage: 'ncclrun batch FILE [options]',
    summary: 'run a file full of jobs',
    about:
      'Runs the jobs of a batch file on the hosts of a hostfile: each as soon as its hosts are free and what it depends on has ended. Every step is on the disk before it is done, so a batch whose scheduler was killed goes on with --resume, and no job is lost or runs twice. ^C starts nothing more, a second one ends what runs, a third one leaves it running. With --via slurm the file becomes submissions to Slurm, which schedules them: ^C ends the watch alone. Exit status: 0 if no task failed, 1 if one did, 130 after ^C.',
    examples: ['ncclrun batch sweep.yaml --hostfile hosts', 'ncclrun batch sweep.yaml --via slurm'],
  },
  submit: {
    line: { command: 'submit', options: submitOptions, words: 'program' },
    words: { type: 'program' },
    usage: 'ncclrun submit [options] -- PROGRAM [arguments]',
    summary: 'add one more job to a batch',
    about:
      'Adds a job to a batch that runs on this machine, in whose queue it takes its turn. It starts in the directory where it was submitted. To a batch whose scheduler has ended, --to adds it for the time when that goes on.',
    examples: [
      'ncclrun submit -n 8 --time-limit 2h -- python3 train.py',
      'ncclrun submit --to sweep-1 --after train -- ./eval.sh',
    ],
  },
  jobs: {
    line: { command: 'jobs', options: jobsOptions, words: 'words' },
    words: { type: 'files' },
    usage: 'ncclrun jobs [BATCH[/TASK]] [options]',
    summary: 'show the batches of this machine, or the tasks of one',
    about:
      'Shows the batches that were submitted on this machine; of one batch its tasks, where they run, and what those wait for that do not.',
    examples: ['ncclrun jobs', 'ncclrun jobs sweep-1/train --failed'],
  },
  cancel: {
    line: { command: 'cancel', options: plainOptions, words: 'words' },
    words: { type: 'files' },
    usage: 'ncclrun cancel BATCH[/TASK]',
    summary: 'end tasks of a batch',
    about:
      'Ends tasks of a batch, those that run and those that wait: all of it, a job, or some of an array. ncclrun hold, release and rerun take the same words.',
    examples: ['ncclrun cancel sweep-1', 'ncclrun cancel sweep-1/train[3-5]'],
  },
  hold: {
    line: { command: 'hold', options: plainOptions, words: 'words' },
    words: { type: 'files' },
    usage: 'ncclrun hold BATCH[/TASK]',
    summary: 'keep waiting tasks of a batch from starting',
    about: 'Keeps tasks of a batch that wait from starting, until ncclrun release.',
    examples: ['ncclrun hold sweep-1/train', 'ncclrun hold sweep-1/train[3-5]'],
  },
  release: {
    line: { command: 'release', options: releaseOptions, words: 'words' },
    words: { type: 'files' },
    usage: 'ncclrun release BATCH[/TASK] [--host HOST]',
    summary: 'let held tasks of a batch start',
    about:
      'Lets held tasks of a batch start. With --host: gives tasks to a host again that was taken out because tasks failed there.',
    examples: ['ncclrun release sweep-1/train', 'ncclrun release sweep-1 --host node7'],
  },
  rerun: {
    line: { command: 'rerun', options: plainOptions, words: 'words' },
    words: { type: 'files' },
    usage: 'ncclrun rerun BATCH[/TASK]',
    summary: 'run tasks of a batch again that did not succeed',
    about:
      'Queues tasks of a batch again that failed, were lost, cancelled or skipped. Where its scheduler has ended, ncclrun batch --resume then runs them.',
    examples: ['ncclrun rerun sweep-1', 'ncclrun rerun sweep-1/train[4]'],
  },
  sbatch: {
    line: { command: 'sbatch', options: sbatchOptions, words: 'program' },
    words: { type: 'program' },
    usage: "ncclrun sbatch [--print] [sbatch's options] -- [options] PROGRAM [arguments]",
    summary: 'submit a job to Slurm',
    about:
      'Writes a batch script and gives it to sbatch, with whatever options of sbatch stand before the --. In the allocation the script becomes ncclrun itself, which takes its hosts, tasks and GPUs from there. With --signal=B:USR1@60 the ranks get SIGUSR1 a minute ahead of the time limit.',
    examples: [
      'ncclrun sbatch --nodes 4 --gpus-per-node 8 --time 12:00:00 -- python3 train.py',
      'ncclrun sbatch --print -N 2 --ntasks-per-node 4 -- --tag-output=host ./app',
    ],
  },
  bundle: {
    line: { command: 'bundle', options: bundleOptions, words: 'words' },
    words: { type: 'none' },
    usage: 'ncclrun bundle [-o FILE]',
    summary: 'write the archive that hosts without ncclrun get',
    about:
      'Writes what a job copies to a host without ncclrun, Node included, as an archive for hosts that are installed by hand.',
    examples: [
      'ncclrun bundle',
      'ncclrun bundle -o - | ssh node1 "mkdir -p ~/.cache/ncclrun && tar -xzf - -C ~/.cache/ncclrun"',
    ],
  },
  build: {
    line: { command: 'build', options: buildOptions, words: 'words' },
    words: { type: 'none' },
    usage: 'ncclrun build [--kernels [LIST]]',
    summary: 'build a checkout, or kernels for more GPUs',
    about:
      'Builds what has changed in a checkout, as npm install did. Kernels take minutes, so npm install makes only those for the GPUs of the machine it runs on, or none; --kernels makes others, and later builds remember which (80: A100; 86: A10, RTX 30; 89: L40S, RTX 40; 90: H100, H200; 100: B200; 120: RTX 50). It needs nvcc.',
    examples: ['ncclrun build --kernels', 'ncclrun build --kernels 80,90'],
  },
  prefix: {
    line: { command: 'prefix', options: plainOptions, words: 'words' },
    words: { type: 'none' },
    usage: 'ncclrun prefix',
    summary: 'print a directory with lib and include, for C programs',
    about:
      'Prints a directory that has lib/libnccl.so, include/nccl.h and lib/pkgconfig/nccl.pc of this installation, for builds that ask where NCCL is.',
    examples: [
      'make NCCL_HOME=$(ncclrun prefix)',
      'PKG_CONFIG_PATH=$(ncclrun prefix)/lib/pkgconfig pkg-config --cflags --libs nccl',
    ],
  },
  completion: {
    line: { command: 'completion', options: plainOptions, words: 'words' },
    words: { type: 'choice', choices: shells, required: true, noun: 'shell' },
    usage: `ncclrun completion ${shells.join('|')}`,
    summary: 'print a completion script for a shell',
    about: `Prints what makes a shell complete ncclrun's commands, options and their values.`,
    examples: [
      'eval "$(ncclrun completion bash)"',
      'ncclrun completion fish > ~/.config/fish/completions/ncclrun.fish',
    ],
  },
  man: {
    line: { command: 'man', options: plainOptions, words: 'words' },
    words: { type: 'none' },
    usage: 'ncclrun man',
    summary: 'print the manual page',
    about: 'Prints the manual page in the language of man (roff).',
    examples: ['ncclrun man | man -l -', 'ncclrun man > ~/.local/share/man/man1/ncclrun.1'],
  },
  help: {
    line: { command: 'help', options: plainOptions, words: 'words' },
    words: { type: 'choice', choices: [...commandNames, 'all'], required: false, noun: 'command' },
    usage: 'ncclrun help [COMMAND|all]',
    summary: 'print the help, or that of a command',
    about: 'Prints the help of ncclrun or of one of its commands; all: every option of a job.',
    examples: ['ncclrun help', 'ncclrun help perf'],
  },
  version: {
    line: { command: 'version', options: plainOptions, words: 'words' },
    words: { type: 'none' },
    usage: 'ncclrun version',
    summary: 'print the version',
    about: 'Prints the version of ncclrun.',
    examples: ['ncclrun version', 'ncclrun --version'],
  },
};
