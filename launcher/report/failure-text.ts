/** A failure in a sentence for people, with what to do next. */
import { busyGpuText } from '../../control/busy-gpus-text.ts';
import type { BusyGpu } from '../../control/messages/gpu.ts';
import { printable } from '../../control/printable.ts';
import { hangStackLines } from './hang-stack-text.ts';
import { hangText } from './hang-text.ts';
import type {
  Failure,
  HostLostFailure,
  HostUnreachableFailure,
  SourcePosition,
  SpawnFailure,
} from '../model/failure.ts';
import { signalStatus } from '../model/failure-error.ts';
import { signalWithMeaning } from './signal-name.ts';
import { rankName } from '../text/rank-name.ts';
import { xidLines, xidRemedy } from './xid-text.ts';

interface FailureText {
  /** One sentence without a final full stop. */
  readonly sentence: string;
  /** Lines that belong to it: the place in a file, what a remote shell said. */
  readonly details: readonly string[];
  readonly remedy: string | null;
}

export function failureText(failure: Failure): FailureText {
  switch (failure.type) {
    case 'usage':
      return placedText(failure.message, failure.position ?? null, failure.remedy);
    case 'allocation':
    case 'unrepeatable':
      return { sentence: failure.message, details: [], remedy: failure.remedy };
    case 'hostfile':
      return placedText(failure.message, failure.position, failure.remedy);
    case 'host-unreachable':
      return unreachableText(failure);
    case 'agent':
      return {
        sentence: `${failure.host}: ${failure.message} (${failure.phase})`,
        details: [],
        remedy: failure.remedy,
      };
    case 'gpus-busy':
      return {
        sentence: `${failure.host}: ${failure.gpus.map(busyGpuText).join('; ')}`,
        details: [],
        remedy: `wait for the end of that job, ${withoutBusy(failure.host, failure.gpus)}, or share them (--busy-gpus ignore)`,
      };
    case 'host-lost':
      return {
        sentence: lostSentence(failure.host, failure.cause, failure.silentMs),
        details: [...xidLines(failure.xids ?? [], null), ...quoted(failure.detail)],
        remedy: lostRemedy(failure.host, failure.cause),
      };
    case 'spawn':
      return spawnText(failure);
    case 'rank-exit':
      return {
        sentence: `${rankName(failure)} exited with status ${failure.exitCode}${memoryText(failure)}`,
        details: [...xidLines(failure.xids ?? [], failure.rank), ...lastWords(failure.stderrTail)],
        remedy: failure.outOfMemory
          ? memoryRemedy(failure.host)
          : (xidRemedy(failure.xids ?? []) ?? exitRemedy(failure.exitCode, failure.stderrTail)),
      };
    case 'rank-signal':
      return {
        sentence: `${rankName(failure)} died of ${signalWithMeaning(failure.signal)}, status ${signalStatus(failure.signal)}${memoryText(failure)}`,
        details: [...xidLines(failure.xids ?? [], failure.rank), ...lastWords(failure.stderrTail)],
        remedy: failure.outOfMemory
          ? memoryRemedy(failure.host)
          : (xidRemedy(failure.xids ?? []) ?? signalRemedies[failure.signal]?.(failure.host) ?? null),
      };
    case 'rank-missing':
      return {
        sentence: failure.message,
        details: [...xidLines(failure.xids ?? [], failure.rank), ...lastWords(failure.stderrTail)],
        remedy:
          xidRemedy(failure.xids ?? []) ??
          'every rank of a communicator must initialise it, take part in every operation and close it; see what that one did',
      };
    case 'mpi-abort':
      return {
        sentence: `rank ${failure.rank} on ${failure.host} called MPI_Abort with status ${failure.exitCode}`,
        details: lastWords(failure.stderrTail),
        remedy: exitRemedy(failure.exitCode, failure.stderrTail),
      };
    case 'preflight':
      return {
        sentence: `doctor found what makes jobs fail${failure.hosts.length === 0 ? '' : ` on ${shortList(failure.hosts)}`}; no rank was started`,
        details: failure.findings.map(({ check, message, remedy }) =>
          printable(`${check}  ${message}${remedy === null ? '' : `; next: ${remedy}`}`),
        ),
        remedy: 'mend that, leave the hosts out (--exclude), or start without --doctor',
      };
    case 'timeout':
      return {
        sentence: `the job did not end within ${failure.seconds} s and was ended`,
        details: [],
        remedy: 'raise --timeout, or find out which rank hangs',
      };
    case 'spawn-timeout':
      return {
        sentence: `the ranks had not all started within ${failure.seconds} s, and the job was ended; late: ${shortList(failure.late)}`,
        details: [],
        remedy: 'see what keeps them, or raise --spawn-timeout',
      };
    case 'init-timeout':
      return {
        sentence: `${failure.what} waited ${failure.seconds} s for ${shortList(failure.missing)}, and the job was ended`,
        details: failure.stderr === null ? [] : lastWords(failure.stderr.tail, `rank ${failure.stderr.rank}’s`),
        remedy: 'see why they do not join it, or raise --init-timeout if they only take long',
      };
    case 'hang':
      return {
        sentence: `${hangText(failure)}; the job was ended`,
        details: [...xidLines(failure.xids ?? [], null), ...hangStackLines(failure.verdict)],
        remedy: xidRemedy(failure.xids ?? []) ?? failure.verdict.remedy,
      };
    case 'interrupt':
      return { sentence: `ended by ${signalWithMeaning(failure.signal)}`, details: [], remedy: null };
    case 'output':
      return {
        sentence: `cannot write the output: ${failure.message}`,
        details: [],
        remedy: 'make room, or send the output elsewhere',
      };
    case 'system':
      return { sentence: failure.message, details: [], remedy: failure.remedy };
    case 'internal':
      return {
        sentence: `internal error: ${failure.message}`,
        details: [],
        remedy: 'this is a defect of ncclrun; NCCLRUN_DEBUG=1 shows where it happened',
      };
    default:
      return unknownFailure(failure);
  }
}

function unknownFailure(failure: never): FailureText {
  return { sentence: `unknown failure ${JSON.stringify(failure)}`, details: [], remedy: null };
}

/** What to do besides waiting. */
function withoutBusy(host: string, gpus: readonly BusyGpu[]): string {
  const slots = gpus.flatMap(({ slot }) => slot ?? []).join(',');
  return slots === '' ? 'take another host' : `leave the GPUs out (--exclude ${host}:${slots})`;
}

function memoryText({ outOfMemory }: { readonly outOfMemory: boolean }): string {
  return outOfMemory ? ': the kernel ended it because memory ran out' : '';
}

function memoryRemedy(host: string): string {
  return `give the job more memory on ${host} (the machine’s, or its control group’s), or start fewer ranks there`;
}

function lastWords(lines: readonly string[], whose = 'its'): string[] {
  return lines.length === 0 ? [] : [`the end of ${whose} stderr:`, ...lines.map((line) => `  ${line}`)];
}

const shownNames = 8;

function shortList(names: readonly string[]): string {
  const shown = names.slice(0, shownNames).join(', ');
  return names.length > shownNames ? `${shown} and ${names.length - shownNames} more` : shown;
}

/** Lines shown of what a remote side said. */
const QUOTED_LINES = 16;

/** What a remote side said, marked line by line: none of it can pass for a line of ours. */
function quoted(text: string): string[] {
  const lines = text.split(/\r?\n/u).filter((line) => line.trim() !== '');
  const more = lines.length - QUOTED_LINES;
  const shown = lines.slice(0, QUOTED_LINES).map((line) => `| ${line}`);
  return more > 0 ? [...shown, `… (${more} more lines)`] : shown;
}

function placedText(message: string, position: SourcePosition | null, remedy: string | null): FailureText {
  if (position === null) return { sentence: message, details: [], remedy };
  const { source, line, column } = position;
  return { sentence: `${source}:${line}:${column}: ${message}`, details: squiggle(position), remedy };
}

/** The line, and below it what is wrong with it; only the neighbourhood of a very long line. */
function squiggle(position: SourcePosition): string[] {
  const start = Math.max(0, position.column - 1 - 60);
  const shown = position.text.slice(start, start + 120);
  const from = position.column - 1 - start;
  const before = printable(shown.slice(0, from)).replaceAll(/[^\t]/gu, ' ');
  const marked = Math.max(1, printable(shown.slice(from, from + position.length)).length);
  return [printable(shown), `${before}${'~'.repeat(marked)}`];
}

const unreachableCauses: Readonly<Record<HostUnreachableFailure['cause'], string>> = {
  'unknown-host': 'no such host',
  'no-route': 'no way to reach it',
  refused: 'it refuses the connection',
  'host-key': 'its host key is not the known one',
  authentication: 'it does not let us in',
  timeout: 'it does not answer',
  shell: 'the remote shell could not start ncclrun',
  other: 'the connection failed',
};

function unreachableText(failure: HostUnreachableFailure): FailureText {
  return {
    sentence: `cannot reach ${failure.host}: ${unreachableCauses[failure.cause]} (phase: ${failure.phase})`,
    details: quoted(failure.detail),
    remedy: failure.remedy,
  };
}

function lostSentence(host: string, cause: HostLostFailure['cause'], silentMs: number | null): string {
  if (cause === 'guardian-died') return `${host} is lost: the guardian of its ranks died`;
  if (cause === 'protocol') return `${host} was cut off: its agent sent what no agent sends`;
  if (cause === 'link-closed') return `${host} is lost: its connection closed in the middle of the job`;
  const seconds = silentMs === null ? '' : ` for ${(silentMs / 1000).toFixed(1)} s`;
  if (cause === 'launcher-silent') return `${host} ended its ranks: it had heard nothing of this launcher${seconds}`;
  return `${host} is lost: nothing was heard of it${seconds}`;
}

function lostRemedy(host: string, cause: HostLostFailure['cause']): string {
  if (cause === 'launcher-silent')
    return 'stop a job with ^Z, which its hosts are told of; otherwise see what kept this machine so busy';
  if (cause === 'protocol') return `see whether somebody else controls ${host}, and install ncclrun there anew`;
  if (cause === 'guardian-died')
    return `see who killed it on ${host}: the kernel's log (dmesg) tells of memory shortage`;
  return `see whether ${host} is up and its network works; its own lease ends the ranks there`;
}

/** Where the file itself is executable. */
const refusedText: Readonly<Record<string, string>> = {
  ENOEXEC: 'this host cannot run it',
  E2BIG: 'its arguments and variables are too long',
  ETXTBSY: 'the file is being written',
  ELOOP: 'its path has too many symbolic links',
  ENAMETOOLONG: 'its name is too long',
  ELIBBAD: 'its interpreter cannot be used',
  EPERM: 'it is not permitted',
};

function spawnText(failure: SpawnFailure): FailureText {
  const where = `on ${failure.host} for rank ${failure.rank}`;
  const base = { details: [], remedy: failure.remedy };
  switch (failure.cause) {
    case 'not-found':
      return {
        ...base,
        sentence: `cannot start ${failure.program} ${where}: there is no such program (${failure.errno})`,
        remedy: failure.remedy ?? `check the name and the PATH; the program must exist on ${failure.host} too`,
      };
    case 'not-executable':
      return {
        ...base,
        sentence: `cannot start ${failure.program} ${where}: ${refusedText[failure.errno] ?? 'it is not executable'} (${failure.errno})`,
        remedy:
          failure.remedy ??
          `chmod +x ${failure.program}, or name its interpreter before it; a script says in its first line (#!/bin/sh) what runs it`,
      };
    case 'working-directory':
      return {
        ...base,
        sentence: `cannot start ${failure.program} ${where}: its working directory cannot be entered (${failure.errno})`,
        remedy: failure.remedy ?? `give one that exists on ${failure.host} with --wdir`,
      };
    case 'system':
      return { ...base, sentence: `cannot start ${failure.program} ${where}: ${failure.errno}` };
    default:
      return unknownFailure(failure.cause);
  }
}

/** What only Open MPI says, whose ranks die so where the variables of a Slurm step surround them without a PMIx server of Slurm. */
const OPEN_MPI_ABORT = /Local abort before MPI_INIT completed/u;

function exitRemedy(exitCode: number, stderrTail: readonly string[]): string {
  if (stderrTail.some((line) => OPEN_MPI_ABORT.test(line)))
    return 'Open MPI finds its ranks by PMIx alone: start the program with mpirun or srun --mpi=pmix, or build it against MPICH';
  if (exitCode === 127) return 'status 127: a shell found no such program, or the loader no such shared library';
  if (exitCode === 126) return 'status 126 is how a shell says that a program is not executable';
  if (exitCode > 128 && exitCode < 160)
    return `status ${exitCode} may be a shell's way to say: died of signal ${exitCode - 128}`;
  return 'its own messages above, if any, say why';
}

const crash = () => 'a core file (ulimit -c unlimited) and a debugger show where';
const limit = (host: string) => `a resource limit of ${host} was hit: see ulimit -a there`;

const signalRemedies: Partial<Record<NodeJS.Signals, (host: string) => string>> = {
  SIGKILL: (host) =>
    `if nobody sent it, ${host} may have run out of memory: see its kernel's log (dmesg | grep -i "killed process")`,
  SIGBUS: (host) => `often a full /dev/shm or a file cut short while mapped: see df -h on ${host}`,
  SIGSEGV: crash,
  SIGABRT: crash,
  SIGFPE: crash,
  SIGILL: crash,
  SIGTRAP: crash,
  SIGXCPU: limit,
  SIGXFSZ: limit,
};
