/** Answers the launcher's queries for stacks. The guardian, the ancestor of all ranks, reads them. */
import { existsSync } from 'node:fs';
import { encodeJson, makeFrame } from '../../control/messages/codec.ts';
import { parseStackQuery } from '../../control/link/stack.ts';
import { ALL_RANKS, FrameKind } from '../../control/messages/frame.ts';
import type { Frame } from '../../control/messages/frame.ts';
import {
  decodeReadStack,
  encodeStackOrder,
  MAX_TARGETS,
  type RankStack,
  type ReadStack,
  type ReadThread,
  type StackAnswer,
  StackProblem,
  type StackTarget,
  type ThreadStack,
} from '../../control/messages/stack.ts';
import { ProtocolError } from '../../control/messages/protocol-error.ts';
import { framesOf, isEngineThread } from './stack-frames.ts';
import { programOf } from './stack-process.ts';
import { stackProblem } from './stack-problem.ts';

/** What the guardian needs beyond a query's deadline to say that it is over. */
const GRACE_MS = 500;
const MAX_WAITING = 16;
const MAX_REQUEST = 2 ** 32;

interface EnginePage {
  readonly jobRank: number;
  readonly pid: number;
}

interface StacksOptions {
  sendToGuardian(frame: Frame): void;
  sendUp(frame: Frame): void;
  /** Of processes with an engine. */
  telemetry(): readonly EnginePage[];
}

interface Question {
  /** Of the launcher. */
  readonly request: number;
  readonly deadlineMs: number;
  readonly ranks: readonly number[];
}

interface Reading {
  /** Of ours. */
  readonly number: number;
  readonly question: Question;
  readonly missing: Map<number, StackTarget>;
  readonly timeout: NodeJS.Timeout;
}

export class Stacks {
  readonly #options: StacksOptions;
  readonly #spawned = new Map<number, number>();
  readonly #ended = new Set<number>();
  #reading: Reading | null = null;
  #waiting: Question[] = [];
  #readings = 0;

  constructor(options: StacksOptions) {
    this.#options = options;
  }

  spawned(rank: number, pid: number): void {
    this.#spawned.set(rank, pid);
  }

  ended(rank: number): void {
    this.#ended.add(rank);
  }

  /** The launcher's query. @throws ProtocolError */
  asked({ payload, request }: Frame): void {
    const question = { request, ...parseStackQuery(payload) };
    if (this.#waiting.length === MAX_WAITING) return this.#up(question, { type: 'end' });
    this.#waiting.push(question);
    this.#next();
  }

  /** A frame of the guardian. */
  read({ subject, request, payload }: Frame): void {
    const reading = this.#reading;
    if (reading === null || reading.number !== request) return undefined;
    if (subject === ALL_RANKS) return this.#finish(reading);
    const target = reading.missing.get(subject);
    if (target === undefined) return undefined;
    reading.missing.delete(subject);
    const stack = decoded(payload);
    if (stack === null) return this.#refuse(reading.question, target, StackProblem.failed);
    return this.#up(reading.question, { type: 'rank', ...rankStack(subject, stack) });
  }

  close(): void {
    if (this.#reading !== null) clearTimeout(this.#reading.timeout);
    this.#reading = null;
    this.#waiting = [];
  }

  #next(): void {
    if (this.#reading !== null) return;
    const question = this.#waiting.shift();
    if (question === undefined) return;
    const engines = enginePids(this.#options.telemetry());
    const targets = question.ranks.flatMap((rank) => {
      const pid = this.#spawned.get(rank);
      return pid === undefined
        ? []
        : [{ rank, pid: this.#ended.has(rank) ? 0 : (engines.get(rank) ?? programOf(pid)) }];
    });
    const living = targets.filter(({ pid }) => pid !== 0);
    for (const target of targets) if (target.pid === 0) this.#refuse(question, target, StackProblem.gone);
    for (const target of living.slice(MAX_TARGETS)) this.#refuse(question, target, StackProblem.late);
    const missing = new Map(living.slice(0, MAX_TARGETS).map((target) => [target.rank, target]));
    const number = (this.#readings = (this.#readings + 1) % MAX_REQUEST);
    const timeout = setTimeout(() => this.#expired(number), question.deadlineMs + GRACE_MS).unref();
    this.#reading = { number, question, missing, timeout };
    if (missing.size === 0) return this.#finish(this.#reading);
    const payload = encodeStackOrder(question.deadlineMs, [...missing.values()]);
    this.#options.sendToGuardian(makeFrame(FrameKind.readStack, { request: number, payload }));
  }

  #expired(number: number): void {
    if (this.#reading?.number === number) this.#finish(this.#reading);
  }

  #finish({ question, missing, timeout }: Reading): void {
    clearTimeout(timeout);
    for (const target of missing.values()) this.#refuse(question, target, StackProblem.failed);
    this.#up(question, { type: 'end' });
    this.#reading = null;
    this.#next();
  }

  #refuse(question: Question, { rank, pid }: StackTarget, problem: StackProblem): void {
    const sentence = stackProblem({ problem, detail: 0, pid });
    this.#up(question, { type: 'rank', rank, pid, problem: sentence, threads: [], omittedThreads: 0 });
  }

  #up({ request }: Question, answer: StackAnswer): void {
    this.#options.sendUp(makeFrame(FrameKind.stacks, { request, payload: encodeJson(answer) }));
  }
}

/** The first process with an engine of each rank, of those that live. */
function enginePids(pages: readonly EnginePage[]): Map<number, number> {
  const pids = new Map<number, number>();
  for (const { jobRank, pid } of pages) if (!pids.has(jobRank) && existsSync(`/proc/${pid}`)) pids.set(jobRank, pid);
  return pids;
}

/** Null for what makes no sense: the reader reads what may be damaged. */
function decoded(payload: Uint8Array): ReadStack | null {
  try {
    return decodeReadStack(payload);
  } catch (error) {
    if (error instanceof ProtocolError) return null;
    throw error;
  }
}

function rankStack(rank: number, read: ReadStack): RankStack {
  const { pid, threads, omittedThreads, pythonProblem } = read;
  const problem = read.problem === StackProblem.none ? pythonProblem || null : stackProblem(read);
  return { rank, pid, problem, threads: threads.map((thread) => threadStack(thread, pid)), omittedThreads };
}

function threadStack(read: ReadThread, pid: number): ThreadStack {
  const { thread, name, isCut, isRead, state } = read;
  const problem = isRead ? null : state === 'D' ? 'it is in uninterruptible sleep' : 'it did not stop in time';
  const isEngine = thread !== pid && isEngineThread(read);
  return { thread, name, isMain: thread === pid, isEngine, problem, frames: framesOf(read), isCut };
}
