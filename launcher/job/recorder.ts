/** Gathers what the ranks' flight recorders hold, from the agents: at failures and hangs for the report, and for `ncclrun dump`. */
import { encodeJson, makeFrame } from '../../control/messages/codec.ts';
import { parseRecorderAnswer } from '../../control/link/recorder.ts';
import { FrameKind, type Frame } from '../../control/messages/frame.ts';
import { RECORDER_ENTRIES, type RecorderQuery } from '../../control/messages/recorder.ts';
import type { HostClocks } from '../clocks/host-clocks.ts';
import type { HostClock, RecordedGroup, RecordedRank, Recorder } from '../model/recorder.ts';
import { ranges } from '../text/ranges.ts';
import type { Verdict } from '../model/hang.ts';
import { HostQuestions } from './host-questions.ts';
import type { UntimedEvent } from './job-parts.ts';

/** An agent that has not answered by then is not waited for. */
const ANSWER_MS = 2000;
/** Operations of every rank. */
const LAST = 256;
/** Ranks beside the blamed ones of which all operations are kept. */
const WITNESSES = 10;
/** Of all processes in one report, as agents send them. */
const MAX_BYTES = 64 * 1024 * 1024;

interface RecorderHost {
  readonly name: string;
  readonly ranks: readonly number[];
}

interface RecorderOptions {
  /** False: nobody wants what was recorded when something went wrong. */
  readonly isWanted: boolean;
  /** All operations of all ranks. */
  readonly wantsAll: boolean;
  /** Hosts that have ranks and may answer. */
  hosts(): readonly RecorderHost[];
  readonly clocks: HostClocks;
  send(host: string, frame: Frame): void;
}

interface Question {
  readonly hosts: readonly RecorderHost[];
  readonly done: Set<string>;
  readonly ranks: RecordedRank[];
  bytes: number;
  omitted: number;
  readonly resolve: (recorder: Recorder) => void;
}

export class RecorderReader {
  readonly #options: RecorderOptions;
  readonly #questions = new HostQuestions<Question>((question) =>
    question.resolve(recorderOf(question, this.#options.clocks)),
  );
  #taken: Promise<Recorder> | null = null;

  constructor(options: RecorderOptions) {
    this.#options = options;
  }

  /** What was recorded when something went wrong last; null: nothing did, or nobody wants it. */
  get taken(): Promise<Recorder> | null {
    return this.#taken;
  }

  /** Something went wrong, and these ranks may be to blame. A later answer with fewer ranks does not replace an earlier one. */
  failed(blamed: readonly number[]): void {
    if (!this.#options.isWanted || this.#options.hosts().length === 0) return;
    const [before, now] = [this.#taken, this.read(blamed)];
    this.#taken =
      before === null
        ? now
        : Promise.all([before, now]).then(([one, other]) => (other.ranks.length < one.ranks.length ? one : other));
  }

  event(event: UntimedEvent): void {
    if (event.type === 'hang') this.failed(blamedBy(event.verdict));
    if (event.type === 'shrink' || (event.type === 'failure' && event.primary))
      this.failed('rank' in event.failure ? [event.failure.rank] : []);
  }

  /** Resolves once every host has answered, or in 2 s. */
  read(blamed: readonly number[]): Promise<Recorder> {
    const hosts = this.#options.hosts();
    const { promise, resolve } = Promise.withResolvers<Recorder>();
    const question: Question = {
      hosts,
      done: new Set(),
      ranks: [],
      bytes: 0,
      omitted: 0,
      resolve,
    };
    const request = this.#questions.begin(question, ANSWER_MS);
    const last = this.#options.wantsAll ? RECORDER_ENTRIES : LAST;
    const query: RecorderQuery = { last, full: [...new Set([...blamed, ...witnesses(hosts, blamed)])] };
    const frame = makeFrame(FrameKind.recorder, { request, payload: encodeJson(query) });
    for (const { name } of hosts) this.#options.send(name, frame);
    this.#questions.settleIfAll(request);
    return promise;
  }

  /** @throws ProtocolError */
  receive(host: string, { request, payload }: Frame): void {
    const answer = parseRecorderAnswer(payload);
    const question = this.#questions.get(request);
    if (question === undefined || question.done.has(host)) return;
    switch (answer.type) {
      case 'process': {
        const { type: _, ...process } = answer;
        question.bytes += payload.length;
        if (question.bytes > MAX_BYTES) question.omitted += 1;
        else question.ranks.push({ ...process, host });
        return;
      }
      case 'end':
        return void this.#readClock(question, host, request);
      default:
        return answer satisfies never;
    }
  }

  /** Its operations have come. Once its clock has been read, the host is done. */
  async #readClock(question: Question, host: string, request: number): Promise<void> {
    await this.#options.clocks.read([host]);
    question.done.add(host);
    this.#questions.settleIfAll(request);
  }

  /** No host answers any more. */
  close(): void {
    this.#questions.close();
  }
}

function recorderOf({ hosts, ranks: unordered, omitted }: Question, clocks: HostClocks): Recorder {
  const ranks = unordered.toSorted((one, other) => one.rank - other.rank || one.pid - other.pid);
  return {
    schemaVersion: 1,
    takenAt: Date.now(),
    hosts: hosts.map(({ name }) => ({ host: name, clock: clockOf(clocks.of(name)) })),
    communicators: groupsOf(ranks),
    ranks,
    omitted,
  };
}

/** Null: its agent did not answer in time, or is lost. */
function clockOf(clock: HostClock | null): HostClock | null {
  return clock === null ? null : { offsetNs: clock.offsetNs, errorNs: clock.errorNs };
}

function witnesses(hosts: readonly RecorderHost[], blamed: readonly number[]): number[] {
  return hosts
    .flatMap(({ ranks }) => ranks)
    .filter((rank) => !blamed.includes(rank))
    .toSorted((one, other) => one - other)
    .slice(0, WITNESSES);
}

function groupsOf(ranks: readonly RecordedRank[]): RecordedGroup[] {
  const groups = new Map<string, { group: Omit<RecordedGroup, 'members'>; members: Set<number> }>();
  for (const { rank, communicators } of ranks) {
    for (const { id, epoch, name, size } of communicators) {
      const key = `${id}:${epoch}`;
      const known = groups.get(key) ?? {
        group: { id, epoch, name: name === '' ? null : name, size },
        members: new Set(),
      };
      groups.set(key, known);
      known.members.add(rank);
    }
  }
  return Array.from(groups.values(), ({ group, members }) => ({
    ...group,
    members: ranges([...members].toSorted((one, other) => one - other)),
  }));
}

/** The first rank of each that a verdict names: one that stands for many is a witness for them. */
function blamedBy({ blamed }: Verdict): number[] {
  return blamed.flatMap(({ ranks }) => /^[0-9]+/u.exec(ranks)?.map(Number) ?? []);
}
