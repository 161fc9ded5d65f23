/** What a job has left on the hosts of its cluster and where it was started. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Cluster, ClusterHost } from '../rig/cluster.ts';
import type { Command } from '../rig/command.ts';
import { partsOn } from '../rig/faults.ts';
import { alive } from '../rig/processes.ts';

/** Directories that every host has for itself. */
const places = ['tmp', 'dev/shm', 'run'];
/** States of /proc/net/tcp. */
const ESTABLISHED = '01';
const LISTEN = '0A';
const SSH = '0016';

/** What there is on the hosts before a job comes. */
export class Remains {
  readonly #cluster: Cluster;
  readonly #before: ReadonlySet<string>;

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
    this.#before = new Set(cluster.hosts.flatMap((host) => thingsOn(host)));
  }

  /** Lines that say what has come to it; none: nothing. `silenced`: a host whose sshd could not be told that the connection is over. */
  of(command: Command, jobId: string | null, silenced: ClusterHost | null): string[] {
    const onHosts = this.#cluster.hosts.flatMap((host) => [
      ...thingsOn(host).filter((thing) => !this.#before.has(thing)),
      ...processesOn(host, host !== silenced),
    ]);
    const here = command.survivors().map(({ pid, argv }) => `login: process ${pid} ${argv.join(' ')}`);
    return [...onHosts, ...here, ...(jobId === null ? [] : filesOf(jobId))];
  }
}

function processesOn(host: ClusterHost, sshdToo: boolean): string[] {
  if (!alive(host.init)) return [];
  const left = [...host.guests(), ...(sshdToo ? partsOn(host, 'sshd') : [])];
  return left.map(({ pid, state, argv }) => `${host.name}: process ${pid} ${state} ${argv.join(' ')}`);
}

/** Files and sockets with names, and TCP sockets that somebody holds. */
function thingsOn(host: ClusterHost): string[] {
  const { init, name } = host;
  if (!alive(init)) return [];
  const files = places.flatMap((place) =>
    list(`/proc/${init}/root/${place}`).map((file) => `${name}: /${place}/${file}`),
  );
  const named = rows(`/proc/${init}/net/unix`).flatMap((words) =>
    words[7] === undefined ? [] : [`${name}: socket ${words[7]}`],
  );
  const held = ['tcp', 'tcp6'].flatMap((kind) => rows(`/proc/${init}/net/${kind}`).filter(isHeld));
  return [...files, ...named, ...held.map((words) => `${name}: TCP socket ${words[1]} ${words[2]}`)];
}

function isHeld(words: readonly string[]): boolean {
  const [, local = '', , state = ''] = words;
  return (state === LISTEN || state === ESTABLISHED) && words[9] !== '0' && !local.endsWith(`:${SSH}`);
}

/** Where the launcher runs; other jobs leave their things there too. */
function filesOf(jobId: string): string[] {
  const found = ['/tmp', '/dev/shm', process.env['XDG_RUNTIME_DIR'] ?? ''].filter((place) => place !== '');
  return found.flatMap((place) =>
    list(place)
      .filter((file) => file.includes(jobId))
      .map((file) => `login: ${join(place, file)}`),
  );
}

function rows(path: string): string[][] {
  try {
    return readFileSync(path, 'utf8')
      .trim()
      .split('\n')
      .slice(1)
      .map((line) => line.trim().split(/\s+/));
  } catch {
    return []; // the host has died meanwhile
  }
}

function list(path: string): string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}
