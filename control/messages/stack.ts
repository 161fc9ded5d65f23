/**
 * Stacks of ranks.
 *
 * Payload of FrameKind.readStack to the guardian: u32 ms until the deadline, u32 count, count × (u32 rank, u32 process).
 * The guardian answers with a frame per rank (subject = rank), and last with one for ALL_RANKS without content. Its payload (the native twin is
 * native/stack/report.h; str is u32 length + bytes):
 *
 *   u32 problem (StackProblem), u32 detail, u32 process, u32 threads beyond those listed, str why there are no Python frames
 *   u32 threads, then for each, the first thread of the process first:
 *     u32 number, u32 state (a letter as in /proc), u32 flags (1: it was stopped and read, 2: there are more frames), str name
 *     u32 native frames, for each, the innermost first: str function, u64 offset in it or in the module, str module
 *     u32 Python frames, for each, the innermost first: str function, str file, u32 line, u32 flags (1: C code called the interpreter for it)
 */
import { printable } from '../printable.ts';
import { ByteReader, ByteWriter } from './bytes.ts';

/** Why a rank has no stack. `detail` is what the comment names. */
export const StackProblem = {
  none: 0,
  gone: 1,
  notPermitted: 2, // errno
  traced: 3, // process of its debugger
  uninterruptible: 4,
  otherUser: 5, // number of the user
  notStopped: 6,
  notOurs: 7,
  late: 8,
  failed: 9, // errno
} as const;
export type StackProblem = (typeof StackProblem)[keyof typeof StackProblem];

export const STACK_LANGUAGES = ['native', 'python', 'javascript'] as const;

/** A frame as people read it: no arguments, no values. */
export interface StackFrame {
  readonly language: (typeof STACK_LANGUAGES)[number];
  /** Null: the file has no name for it. */
  readonly function: string | null;
  /** Of its source; null for native code. */
  readonly file: string | null;
  readonly line: number | null;
  /** Executable or library; null for code that was made at run time, and for sources. */
  readonly module: string | null;
}

export interface ThreadStack {
  /** As the kernel numbers it. */
  readonly thread: number;
  /** As the program has named it. */
  readonly name: string;
  /** The first of its process. */
  readonly isMain: boolean;
  /** It is one of the engine's own (libnccl.so.2). */
  readonly isEngine: boolean;
  /** Why there are no frames; null: there are. */
  readonly problem: string | null;
  /** The innermost first. */
  readonly frames: readonly StackFrame[];
  /** There are more frames. */
  readonly isCut: boolean;
}

/** Stacks of one rank's process. */
export interface RankStack {
  readonly rank: number;
  readonly pid: number;
  /** Why there are no stacks, or not all; null: all are there. */
  readonly problem: string | null;
  readonly threads: readonly ThreadStack[];
  /** Number of threads that were not looked at. */
  readonly omittedThreads: number;
}

/** Payload of FrameKind.stacks from the launcher. The frame's request number comes back in each answer. */
export interface StackQuery {
  readonly ranks: readonly number[];
  readonly deadlineMs: number;
}

/** Payload of FrameKind.stacks from an agent: each of the ranks asked for that it has, then `end`. */
export type StackAnswer = ({ readonly type: 'rank' } & RankStack) | { readonly type: 'end' };

export const MAX_THREADS = 32;
/** In one order to the guardian. */
export const MAX_TARGETS = 4096;
export const MAX_FRAMES = 512;
export const MAX_STACK_TEXT = 512;

export interface StackTarget {
  readonly rank: number;
  readonly pid: number;
}

export function encodeStackOrder(deadlineMs: number, targets: readonly StackTarget[]): Buffer {
  const writer = new ByteWriter().u32(deadlineMs).u32(targets.length);
  for (const { rank, pid } of targets) writer.u32(rank).u32(pid);
  return writer.finish();
}

/** A native frame as the guardian's reader found it. */
export interface NativeFrame {
  /** Empty: unknown. */
  readonly function: string;
  /** Path; empty: code made at run time. */
  readonly module: string;
}

/** A Python frame as the guardian's reader found it. */
export interface PythonFrame {
  readonly function: string;
  readonly file: string;
  /** 0: unknown. */
  readonly line: number;
  /** C code called the interpreter for it. */
  readonly isEntry: boolean;
}

export interface ReadThread {
  readonly thread: number;
  readonly state: string;
  readonly isRead: boolean;
  readonly isCut: boolean;
  readonly name: string;
  readonly native: readonly NativeFrame[];
  readonly python: readonly PythonFrame[];
}

export interface ReadStack {
  readonly problem: StackProblem;
  readonly detail: number;
  readonly pid: number;
  readonly omittedThreads: number;
  /** Empty: there is nothing to say. */
  readonly pythonProblem: string;
  readonly threads: readonly ReadThread[];
}

const problems: ReadonlySet<number> = new Set(Object.values(StackProblem));

function isProblem(value: number): value is StackProblem {
  return problems.has(value);
}

/** @throws ProtocolError */
export function decodeReadStack(payload: Uint8Array): ReadStack {
  const reader = new ByteReader(payload, 'a stack');
  const problem = reader.u32('the problem');
  if (!isProblem(problem)) throw reader.malformed(`problem ${problem}`);
  const stack = {
    problem,
    detail: reader.u32('the detail'),
    pid: reader.u32('the process'),
    omittedThreads: reader.u32('the threads beyond'),
    pythonProblem: textOf(reader, "Python's problem"),
    threads: listOf(reader, MAX_THREADS, 'threads', readThread),
  };
  reader.end();
  return stack;
}

function readThread(reader: ByteReader): ReadThread {
  const thread = reader.u32('a thread');
  const state = String.fromCodePoint(reader.u32('a state') % 128);
  const flags = reader.u32("a thread's flags");
  return {
    thread,
    state,
    isRead: (flags & 1) !== 0,
    isCut: (flags & 2) !== 0,
    name: textOf(reader, "a thread's name"),
    native: listOf(reader, MAX_FRAMES, 'native frames', readNative),
    python: listOf(reader, MAX_FRAMES, 'Python frames', readPython),
  };
}

function readNative(reader: ByteReader): NativeFrame {
  const name = textOf(reader, 'a function');
  reader.u64('an offset');
  return { function: name, module: textOf(reader, 'a module') };
}

function readPython(reader: ByteReader): PythonFrame {
  return {
    function: textOf(reader, 'a function'),
    file: textOf(reader, 'a file'),
    line: reader.u32('a line'),
    isEntry: (reader.u32("a frame's flags") & 1) !== 0,
  };
}

function listOf<T>(reader: ByteReader, most: number, what: string, read: (reader: ByteReader) => T): T[] {
  const count = reader.u32(`the number of ${what}`);
  if (count > most) throw reader.malformed(`${count} ${what}`);
  return Array.from({ length: count }, () => read(reader));
}

/** The text comes from a process's memory: no letter of it may act on a terminal. */
function textOf(reader: ByteReader, what: string): string {
  return printable(reader.string(what)).slice(0, MAX_STACK_TEXT);
}
