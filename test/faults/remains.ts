/** What a job has left on the hosts of its cluster and where it was started. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ClusterHost } from '../rig/cluster.ts';
import type { Command } from '../rig/command.ts';
import { partsOn } from '../rig/faults.ts';
import { alive } from '../rig/processes.ts';
import type { JobSetup } from './kind.ts';

/** Directories that every host has for itself. */
const places = ['tmp', 'dev/shm', 'run'];
/** States of /proc/net/tcp. */
const ESTABLISHED = '01';
const LISTEN = '0A';
const SSH = '0016';

/** What there is on the hosts before a job comes. */
export class Remains {
  readonly #place: JobSetup;
  readonly #sshdToo: boolean;
  readonly #before: ReadonlySet<string>;
  /** Of earlier jobs, of whose end it could not be told. */
  readonly #sshd: ReadonlySet<number>;

  /** `sshdToo`: the struck host's sshd learns that the connection is over. */
  constructor(place: JobSetup, sshdToo: boolean) {
    const { hosts } = place.cluster;
    this.#place = place;
    this.#sshdToo = sshdToo;
    this.#before = new Set(hosts.flatMap((host) => thingsOn(host)));
    this.#sshd = new Set(hosts.flatMap((host) => partsOn(host, 'sshd').map(({ pid }) => pid)));
  }

  /** Lines that say what has come to it; none: nothing. */
  of(command: Command, jobId: string | null): string[] {
    const { cluster, directory } = this.#place;
    const onHosts = cluster.hosts.flatMap((host) => [
      ...thingsOn(host).filter((thing) => !this.#before.has(thing)),
      ...this.#processesOn(host),
    ]);
    const here = command.survivors().map(({ pid, argv }) => `login: process ${pid} ${argv.join(' ')}`);
    const written = list(join(directory, 'work')).map((file) => `login: ${file} where the ranks worked`);
    return [...onHosts, ...here, ...written, ...(jobId === null ? [] : filesOf(jobId))];
  }

  #processesOn(host: ClusterHost): string[] {
    if (!alive(host.init)) return [];
    const sshd = host === this.#place.host && !this.#sshdToo ? [] : partsOn(host, 'sshd');
    const left = [...host.guests(), ...sshd.filter(({ pid }) => !this.#sshd.has(pid))];
    return left.map(({ pid, state, argv }) => `${host.name}: process ${pid} ${state} ${argv.join(' ')}`);
  }
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
