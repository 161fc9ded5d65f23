/** Looks at Slurm, writes down what has become of the tasks, and ends in Slurm what is not to run any more. */
import { hasEnded } from '../../model/states.ts';
import type { Task, TaskEdit } from '../../model/task.ts';
import type { BatchState } from '../state/batch-state.ts';
import type { KnownPiece } from '../store/pieces.ts';
import { cancel } from '../tools/control.ts';
import { endIn, hasBegun, lastAttempt } from './last-attempt.ts';
import { lookAtSlurm } from './look.ts';
import { reasonText } from './reason-text.ts';
import type { Sighting } from './sighting.ts';
import { changeAfter, type Look } from './task-change.ts';

/** A look is good for so long where many ask. */
const FRESH_MS = 900;

export class Follower {
  readonly #state: BatchState;
  #sightings: ReadonlyMap<number, Sighting> = new Map();
  #lookedAt = Number.NEGATIVE_INFINITY;

  constructor(state: BatchState) {
    this.#state = state;
  }

  get isFresh(): boolean {
    return this.#state.options.now() - this.#lookedAt < FRESH_MS;
  }

  /** Rejects with a FailureError (system) where Slurm does not answer: then nothing is known. */
  async look(): Promise<void> {
    const state = this.#state;
    const { tool, now } = state.options;
    const { found, twins, alive } = await lookAtSlurm({
      tool,
      pieces: state.pieces.all,
      isOpen: (task) => state.isOpen(task),
      lastAttempt: (task, piece) => lastAttempt(state.resultsOf(piece), task, piece.before),
    });
    this.#sightings = found;
    this.#lookedAt = now();
    this.#write(found);
    const unwanted = [...alive].filter(([task]) => !state.isOpen(task) || state.store.task(task).cancelAsked);
    await cancel(tool, [...twins, ...unwanted.map(([, target]) => target)]);
  }

  /** What a waiting task waits for. */
  why(task: Task): string {
    const sighting = this.#sightings.get(task.id);
    const { standing, words } = this.#state.standingOf(task);
    const dependency = standing === 'open' ? words : '';
    return sighting?.kind === 'waiting' ? reasonText(sighting.reason, dependency) : dependency;
  }

  #write(found: ReadonlyMap<number, Sighting>): void {
    const state = this.#state;
    const pieces = new Map(state.pieces.all.flatMap((piece) => piece.tasks.map(({ task }) => [task, piece])));
    const places = new Map<number, string>();
    const edits: TaskEdit[] = [];
    const ends: TaskEdit[] = [];
    const perhapsSkipped: TaskEdit[] = [];
    for (const [id, sighting] of found) {
      const [task, piece] = [state.store.task(id), pieces.get(id)];
      if (hasEnded(task.state) || piece === undefined) continue;
      // Until all are submitted, ncclrun itself holds them.
      if (sighting.kind === 'waiting' && piece.stage !== 'released') continue;
      if (sighting.kind !== 'waiting' && sighting.nodes !== '') places.set(id, sighting.nodes);
      const change = changeAfter(task, this.#lookOf(id, piece, sighting));
      if (change === null) continue;
      if (change.state === undefined || !hasEnded(change.state)) edits.push({ id, change });
      else if (isPerhapsSkipped(task, change.state)) perhapsSkipped.push({ id, change });
      else ends.push({ id, change });
    }
    if (places.size > 0) state.pieces.setPlaces(places);
    // A task that runs is not skipped by another's end in the same look.
    state.apply(edits);
    state.apply(ends);
    state.apply(perhapsSkipped.filter(({ id }) => state.isOpen(id)));
  }

  #lookOf(task: number, piece: KnownPiece, sighting: Sighting): Look {
    const look = { sighting, before: piece.before, now: this.#state.options.now() };
    if (sighting.kind === 'running' || sighting.restarts === null) return { ...look, end: null, hasBegun: false };
    const attempt = piece.before + sighting.restarts + (sighting.kind === 'ended' ? 1 : 0);
    const results = this.#state.resultsOf(piece);
    return { ...look, end: endIn(results, task, attempt), hasBegun: hasBegun(results, task, attempt) };
  }
}

/** Slurm cancels what waits in vain; the task that it waits for says why, and may be in the same look. */
function isPerhapsSkipped({ attempt, cancelAsked }: Task, state: Task['state']): boolean {
  return state === 'cancelled' && attempt === 0 && !cancelAsked;
}
