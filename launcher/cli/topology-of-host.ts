/** Topology of another host: runs `ncclrun topo` there as a job of one rank, so every remote shell works, and staging copies ncclrun if needed. */
import { join } from 'node:path';
import { printableLine } from '../../control/printable.ts';
import { element } from '../../control/topology/element.ts';
import type { Element } from '../../control/topology/element.ts';
import { plainReporter, runReported } from './launch.ts';
import { jobRequest } from './job-request.ts';
import type { JobOptionName } from './options.ts';
import type { Settings } from './settings.ts';
import type { JobEvent, OutputChunk } from '../model/event.ts';
import { FailureError } from '../model/failure-error.ts';
import type { JobResult, RankMap, Reporter } from '../model/types.ts';
import { installationRoot, type localTopology } from '../local/host.ts';
import { readVerbsViews, type VerbsPortView } from '../topology/verbs.ts';
import type { StandardStreams } from '../report/standard-streams.ts';

type Detected = Awaited<ReturnType<typeof localTopology>>;

/** What `ncclrun topo` shows of a host. */
export interface ShownHost extends Detected {
  readonly verbs: readonly VerbsPortView[];
}

/** `settings` has the options of remote shells. Returns the exit status of a job that failed and reported it. Throws a FailureError. */
export async function otherHost(
  host: string,
  settings: Settings<JobOptionName>,
  streams: StandardStreams,
): Promise<ShownHost | number> {
  const command = [join(installationRoot, 'bin', 'ncclrun'), 'topo', '--format', 'json'];
  const base = jobRequest(settings, command);
  const programs = base.programs.map((program) => ({ ...program, ranks: 1 }));
  const request = { ...base, programs, hostList: host, stdin: { type: 'none' } } as const;
  const options = { json: false, verbose: settings.flag('verbose'), eventsFile: null, reportFile: null };
  const answer = new Answer(plainReporter(streams, request, options));
  const { exitCode } = await runReported(request, answer);
  return exitCode === 0 ? read(answer.text(), host) : exitCode;
}

/** Collects the rank's stdout; reports everything else as in any job. */
class Answer implements Reporter {
  readonly #inner: Reporter;
  readonly #chunks: Uint8Array[] = [];

  constructor(inner: Reporter) {
    this.#inner = inner;
  }

  text(): string {
    return Buffer.concat(this.#chunks).toString('utf8');
  }

  async prepare(map: RankMap): Promise<void> {
    await this.#inner.prepare?.(map);
  }

  event(event: JobEvent): void {
    this.#inner.event(event);
  }

  async output(chunk: OutputChunk): Promise<void> {
    if (chunk.stream === 'stdout') this.#chunks.push(Uint8Array.from(chunk.bytes));
    else await this.#inner.output(chunk);
  }

  async result(result: JobResult): Promise<void> {
    await this.#inner.result(result);
  }
}

/** Throws a FailureError (agent) for what `--format json` does not print. */
function read(text: string, host: string): ShownHost {
  const document = parsed(text);
  const system = fieldOf(document, 'system');
  const notes = fieldOf(document, 'notes');
  const root = elementOf(system);
  if (root !== null && Array.isArray(notes)) {
    const verbs = readVerbsViews(fieldOf(document, 'verbs'));
    return { system: root, notes: notes.filter((note) => typeof note === 'string'), verbs };
  }
  const message = `ncclrun topo printed no topology there: ${JSON.stringify(text.slice(0, 80))}`;
  throw new FailureError({
    type: 'agent',
    host,
    phase: 'run',
    message,
    remedy: `see what ncclrun topo prints on ${host}`,
  });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function fieldOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Object.getOwnPropertyDescriptor(value, name)?.value : undefined;
}

/** As json.ts writes it; null: it is none. */
function elementOf(value: unknown): Element | null {
  const name = fieldOf(value, 'name');
  const attributes = fieldOf(value, 'attributes');
  const children = fieldOf(value, 'children');
  if (typeof name !== 'string' || typeof attributes !== 'object' || attributes === null || !Array.isArray(children))
    return null;
  const entries = Object.entries(attributes).map(([key, text]) => [key, printableLine(String(text))]);
  const elements = children.map(elementOf);
  const whole = elements.filter((child) => child !== null);
  return whole.length < elements.length ? null : element(name, Object.fromEntries(entries), whole);
}
