/**
 * What `ncclrun ps` finds of a running job: memory of the launcher's with a name that others see below its /proc, and its user alone can read.
 * There is nothing to remove, whatever ends the launcher.
 */
import type { JobEvent } from '../model/event.ts';
import { mappedRanksByHost } from '../mapping/ranks-by-host.ts';
import type { RankMap, Reporter } from '../model/types.ts';
import { showMemory } from '../local/host.ts';

export const NOTE_NAME = 'ncclrun-job';

/** Where `ncclrun logs` and `attach` find a job's output. */
export interface FollowPlace {
  /** Name of an abstract Unix socket. */
  readonly socket: string;
  readonly key: string;
}

export interface Note {
  readonly schemaVersion: 1;
  readonly jobId: string;
  /** Milliseconds since 1970. */
  readonly startedAt: number;
  readonly programs: readonly (readonly string[])[];
  readonly hosts: readonly { readonly name: string; readonly ranks: readonly number[] }[];
  /** Left out until the job has lasted for a moment. */
  readonly output?: FollowPlace;
}

export class JobNote implements Reporter {
  #map: RankMap | null = null;
  #note: Note | null = null;
  #memory: { release(): void } | null = null;

  prepare(map: RankMap): Promise<void> {
    this.#map = map;
    return Promise.resolve();
  }

  event(event: JobEvent): void {
    if (event.type === 'job-started') {
      const { jobId, programs, time } = event;
      this.#show({ schemaVersion: 1, jobId, startedAt: time, programs, hosts: this.#hosts(event.hosts) });
    } else if (event.type === 'restart' && this.#note !== null) {
      this.#show({ ...this.#note, hosts: this.#hosts(event.hosts) });
    }
  }

  /** The job's output can be followed there from now on. */
  serves(output: FollowPlace): void {
    if (this.#note !== null) this.#show({ ...this.#note, output });
  }

  /** One that takes another's place has its ranks. */
  #hosts(names: readonly string[]): Note['hosts'] {
    const ranks = this.#map === null ? [] : mappedRanksByHost(this.#map);
    return names.map((name, index) => ({ name, ranks: (ranks[index] ?? []).map(({ rank }) => rank) }));
  }

  #show(note: Note): void {
    const earlier = this.#memory;
    this.#note = note;
    this.#memory = showMemory(Buffer.from(JSON.stringify(note)), NOTE_NAME);
    earlier?.release();
  }

  output(): Promise<void> {
    return Promise.resolve();
  }

  result(): Promise<void> {
    this.#memory?.release();
    this.#memory = null; // a result that could not be printed is followed by another one
    return Promise.resolve();
  }
}
