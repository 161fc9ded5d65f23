/** Topology files: of real and typical machines beside the repository, where they are, and the repository's own. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Element } from '../../control/topology/element.ts';
import { readXml } from '../../control/topology/read-xml.ts';
import { describeIf } from './capability.ts';
import { repository } from './cluster.ts';

const shared = join(repository, '../shared/topologies');

const unavailable = existsSync(join(shared, 'reference.json')) ? null : `${shared} is not there`;

/** A suite that is skipped where the machines are not beside the repository; its body runs even then. */
export function describeMachines(name: string, body: () => void): void {
  describeIf(unavailable, name, body, true);
}

/** Names of the machines, without `.xml`; none where they are not there. */
export function machineNames(): string[] {
  if (unavailable !== null) return [];
  return readdirSync(shared).flatMap((name) => /^([^.]+)\.xml$/u.exec(name)?.[1] ?? []);
}

export function sharedPath(file: string): string {
  return join(shared, file);
}

export function machinePath(name: string): string {
  return sharedPath(`${name}.xml`);
}

export function machineXml(name: string): Element {
  return readXml(readFileSync(machinePath(name), 'utf8'), `${name}.xml`).root;
}

export function sharedText(name: string): string {
  return readFileSync(sharedPath(name), 'utf8');
}

/** The repository's own machines. */
export function ownMachine(name: 'switches' | 'superchips'): Element {
  const path = join(repository, `test/unit/fixtures/${name}.xml`);
  return readXml(readFileSync(path, 'utf8'), `${name}.xml`).root;
}
