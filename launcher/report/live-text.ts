/** The line of what is going on: whom a start waits for, how many ranks run, who has yet to end. */
import { printable } from '../../control/printable.ts';
import type { JobEvent } from '../model/event.ts';
import { counted, ranksText } from '../text/counted.ts';

/** Progress of a host before its hello. */
interface Reaching {
  readonly step: string;
  /** Milliseconds since 1970: when it was first tried. */
  readonly since: number;
}

export class LiveText {
  #phase: 'start' | 'spawn' | 'run' | 'stop' | 'end' = 'start';
  #hosts = 0;
  readonly #reaching = new Map<string, Reaching>();
  readonly #hostsLeft = new Set<string>();
  #ranks = 0;
  #runningSince = 0;
  readonly #running = new Set<number>();
  #over = 0;

  #again(): void {
    this.#phase = 'start';
    this.#hosts = this.#over = 0;
    for (const left of [this.#reaching, this.#hostsLeft, this.#running]) left.clear();
  }

  event(event: JobEvent): void {
    switch (event.type) {
      case 'job-started':
        this.#ranks = event.ranks;
        return;
      case 'host-connecting':
        this.#hosts += 1;
        this.#reaching.set(event.host, { step: 'queued', since: event.time });
        return;
      case 'host-step':
        this.#step(event.host, event.step);
        return;
      case 'host-staging':
        this.#step(event.host, 'copying ncclrun');
        return;
      case 'host-up':
        this.#reaching.delete(event.host);
        this.#hostsLeft.add(event.host);
        return;
      case 'host-ended':
        this.#reaching.delete(event.host);
        this.#hostsLeft.delete(event.host);
        return;
      case 'rank-started':
        this.#running.add(event.rank);
        return;
      case 'rank-exited':
        this.#running.delete(event.rank);
        this.#over += 1;
        return;
      case 'failure':
        if (event.primary && this.#phase !== 'end') this.#phase = 'stop';
        return;
      case 'phase':
        this.#enter(event);
        return;
      case 'restart':
        this.#again();
        return;
      case 'host-remote-shell':
      case 'binding':
      case 'hang':
      case 'hang-stacks':
      case 'verdict':
      case 'shrink':
      case 'waiting':
      case 'xid':
      case 'communicator':
      case 'tuning':
      case 'signal':
      case 'notice':
      case 'network':
      case 'job-ended':
        return;
      default:
        event satisfies never;
    }
  }

  /** True during the start, whose line shows the missing hosts itself. */
  get starting(): boolean {
    return this.#phase === 'start';
  }

  /** At most `width` characters; empty if there is nothing to report. `now`: milliseconds since 1970. */
  line(width: number, now: number): string {
    switch (this.#phase) {
      case 'start':
        return this.#hosts === 0 ? '' : this.#startLine(width, now);
      case 'spawn':
        return cut(`${this.#running.size}/${this.#ranks} ranks started`, width);
      case 'run':
        return this.#ranks === 1 ? '' : cut(this.#runLine(now), width);
      case 'stop':
        return this.#running.size === 0 ? '' : cut(`waiting for ${this.#names()} to end`, width);
      case 'end':
        return this.#hostsLeft.size === 0 ? '' : fit('cleaning up on ', [...this.#hostsLeft], width);
      default:
        return this.#phase satisfies never;
    }
  }

  #enter({ phase, time }: Extract<JobEvent, { type: 'phase' }>): void {
    if (phase === 'teardown') this.#phase = 'end';
    else if (this.#phase === 'stop') return;
    else if (phase === 'spawn') this.#phase = 'spawn';
    else if (phase === 'run') {
      this.#phase = 'run';
      this.#runningSince = time;
    }
  }

  #step(host: string, step: string): void {
    const known = this.#reaching.get(host);
    if (known !== undefined) this.#reaching.set(host, { ...known, step });
  }

  #startLine(width: number, now: number): string {
    const up = this.#hosts - this.#reaching.size;
    const head = `${up}/${counted(this.#hosts, 'host')} up`;
    // The longest first: they were tried first, and a Map keeps its order.
    const late = Array.from(this.#reaching, ([host, { step, since }]) => `${host} (${step}, ${duration(now - since)})`);
    return late.length === 0 ? cut(head, width) : fit(`${head}; waiting for `, late, width);
  }

  #runLine(now: number): string {
    const took = duration(now - this.#runningSince);
    if (this.#over === 0) return `${this.#ranks} ranks running, ${took}`;
    return `${this.#running.size}/${this.#ranks} ranks running (${this.#names()}), ${took}`;
  }

  #names(): string {
    return ranksText([...this.#running]);
  }
}

/** As many of the names as fit, and how many more there are. */
function fit(head: string, hosts: readonly string[], width: number): string {
  const names = hosts.slice(0, width).map(printable);
  for (let shown = names.length; shown > 0; shown--) {
    const more = hosts.length === shown ? '' : ` and ${hosts.length - shown} more`;
    const text = head + names.slice(0, shown).join(', ') + more;
    if (text.length <= width) return text;
  }
  return cut(`${head}${hosts.length} hosts`, width);
}

function cut(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, Math.max(0, width - 1))}…`;
}

/** `12 s`, `3 min 5 s`, `2 h 10 min` */
function duration(milliseconds: number): string {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  return minutes < 60 ? `${minutes} min ${seconds % 60} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
