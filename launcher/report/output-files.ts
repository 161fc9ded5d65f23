/** --output: what the ranks write goes to files too. */
import { resolve } from 'node:path';
import { Writable } from 'node:stream';
import type { JobEvent, OutputChunk } from '../model/event.ts';
import { FailureError } from '../model/failure-error.ts';
import { outputPath, type OutputPattern } from '../model/output-pattern.ts';
import type { RankMap, Reporter } from '../model/types.ts';
import { FilePool } from './file-pool.ts';
import { Lane } from './lane.ts';
import { tagOf, type TagOptions } from './tag.ts';
import { Writer } from './writer.ts';
import { messageOf } from '../../control/message-of.ts';

/** Files made at once. */
const batch = 64;

/** One file, whoever writes to it. */
interface OutputFile {
  readonly path: string;
  readonly given: string;
  readonly ranks: Set<number>;
  readonly writer: Writer;
  readonly lane: Lane;
}

export class OutputFilesReporter implements Reporter {
  readonly #patterns: readonly OutputPattern[];
  readonly #tags: TagOptions;
  readonly #pool = new FilePool();
  readonly #files = new Map<string, OutputFile>();
  /** By rank and stream. */
  readonly #routes = new Map<string, readonly OutputFile[]>();

  constructor(patterns: readonly OutputPattern[], tags: TagOptions) {
    this.#patterns = patterns;
    this.#tags = tags;
  }

  /** Makes and empties every file. Rejects with a FailureError (usage) that names the one which cannot be written. */
  async prepare(map: RankMap): Promise<void> {
    for (const { rank, host: index } of map.ranks) {
      const host = map.hosts[index]?.name ?? '';
      for (const stream of ['stdout', 'stderr'] as const) {
        const source = { rank, host, stream, ranks: map.ranks.length };
        const files = this.#patterns.map((pattern) => this.#file(pattern, outputPath(pattern, source), rank));
        this.#routes.set(routeOf(source), [...new Set(files)]);
      }
    }
    const files = [...this.#files.values()];
    for (let first = 0; first < files.length; first += batch) {
      await Promise.all(files.slice(first, first + batch).map((file) => this.#create(file)));
    }
  }

  async output(chunk: OutputChunk): Promise<void> {
    const files = this.#routes.get(routeOf(chunk)) ?? [];
    await Promise.all(files.map(({ lane }) => lane.output(chunk)));
  }

  event(event: JobEvent): void {
    if (event.type !== 'rank-exited') return;
    const streams = ['stdout', 'stderr'] as const;
    const routes = streams.flatMap((stream) => this.#routes.get(routeOf({ rank: event.rank, stream })) ?? []);
    for (const { lane } of new Set(routes)) lane.rankEnded(event.rank);
  }

  async result(): Promise<void> {
    for (const { ranks, lane, writer } of this.#files.values()) {
      if (ranks.size > 1) lane.endLine();
      await writer.flush();
    }
    await this.#pool.close();
  }

  #file(pattern: OutputPattern, path: string, rank: number): OutputFile {
    const known = this.#files.get(path) ?? this.#open(pattern, path);
    known.ranks.add(rank);
    return known;
  }

  #open({ given }: OutputPattern, path: string): OutputFile {
    const ranks = new Set<number>();
    const full = resolve(path);
    const writer = new Writer(() => appending(this.#pool, full, path));
    const lane = new Lane(writer, (chunk) => tagOf(chunk, ranks.size > 1, this.#tags, (_format, text) => text));
    const file = { path, given, ranks, writer, lane };
    this.#files.set(path, file);
    return file;
  }

  async #create({ path, given }: OutputFile): Promise<void> {
    try {
      await this.#pool.create(resolve(path));
    } catch (error) {
      const message = `${given}: ${path} cannot be written: ${messageOf(error)}`;
      const remedy = 'name a place you may write to; directories that are missing are made';
      throw new FailureError({ type: 'usage', message, remedy }, { cause: error });
    }
  }
}

function routeOf({ rank, stream }: Pick<OutputChunk, 'rank' | 'stream'>): string {
  return `${rank} ${stream}`;
}

function appending(pool: FilePool, full: string, path: string): Writable {
  const append = async (bytes: Uint8Array, done: (error: Error | null) => void): Promise<void> => {
    try {
      await pool.append(full, bytes);
    } catch (error) {
      return done(new Error(`${path}: ${messageOf(error)}`, { cause: error }));
    }
    return done(null);
  };
  return new Writable({ write: (bytes: Uint8Array, _encoding, done) => void append(bytes, done) });
}
