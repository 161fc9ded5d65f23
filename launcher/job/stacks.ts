/** Asks the agents for stacks of ranks: for `ncclrun stack`, and for verdicts about hangs. */
import { parseStackAnswer } from '../../control/link/stack.ts';
import { encodeJson, makeFrame } from '../../control/messages/codec.ts';
import { FrameKind, type Frame } from '../../control/messages/frame.ts';
import type { HostRankStack, StackReport } from '../model/stack.ts';
import { ranges } from '../text/ranges.ts';
import { HostQuestions } from './host-questions.ts';

/** For reading on a host. */
const DEADLINE_MS = 2500;
/** For the way there and back. */
const WAY_MS = 500;
/** Of all answers to one question, as agents send them. */
const MAX_BYTES = 64 * 1024 * 1024;

interface StackHost {
  readonly name: string;
  readonly ranks: readonly number[];
}

interface StackReaderOptions {
  /** Hosts that have ranks and may answer. */
  hosts(): readonly StackHost[];
  send(host: string, frame: Frame): void;
}

interface Question {
  readonly hosts: readonly StackHost[];
  readonly done: Set<string>;
  readonly stacks: Map<number, HostRankStack>;
  readonly resolve: (report: StackReport) => void;
  bytes: number;
}

export class StackReader {
  readonly #options: StackReaderOptions;
  readonly #questions = new HostQuestions<Question>((question) => question.resolve(reportOf(question)));

  constructor(options: StackReaderOptions) {
    this.#options = options;
  }

  /** Of all ranks for null. Resolves once every host has answered, or when `deadlineMs` are over. */
  read(wanted: readonly number[] | null, deadlineMs = DEADLINE_MS): Promise<StackReport> {
    const ranks = wanted === null ? null : new Set(wanted);
    const hosts = this.#options
      .hosts()
      .map((host) => ({ ...host, ranks: host.ranks.filter((rank) => ranks?.has(rank) ?? true) }))
      .filter((host) => host.ranks.length > 0);
    const { promise, resolve } = Promise.withResolvers<StackReport>();
    const question = { hosts, done: new Set<string>(), stacks: new Map<number, HostRankStack>(), resolve, bytes: 0 };
    const request = this.#questions.begin(question, deadlineMs + WAY_MS);
    for (const { name, ranks: its } of hosts)
      this.#options.send(
        name,
        makeFrame(FrameKind.stacks, { request, payload: encodeJson({ ranks: its, deadlineMs }) }),
      );
    this.#questions.settleIfAll(request);
    return promise;
  }

  /** @throws ProtocolError */
  receive(host: string, { request, payload }: Frame): void {
    const answer = parseStackAnswer(payload);
    const question = this.#questions.get(request);
    const asked = question?.hosts.find(({ name }) => name === host);
    if (question === undefined || asked === undefined || question.done.has(host)) return;
    if (answer.type === 'end') {
      question.done.add(host);
      return this.#questions.settleIfAll(request);
    }
    question.bytes += payload.length;
    if (!asked.ranks.includes(answer.rank) || question.bytes > MAX_BYTES) return;
    const { type: _, ...stack } = answer;
    question.stacks.set(stack.rank, { ...stack, host });
  }

  /** No host answers any more. */
  close(): void {
    this.#questions.close();
  }
}

function reportOf({ hosts, stacks }: Question): StackReport {
  const missing = hosts.flatMap(({ ranks }) => ranks).filter((rank) => !stacks.has(rank));
  return {
    schemaVersion: 1,
    takenAt: Date.now(),
    ranks: [...stacks.values()].toSorted((one, other) => one.rank - other.rank),
    missing: ranges(missing.toSorted((one, other) => one - other)),
  };
}
