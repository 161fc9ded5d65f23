/** Topology files: of real and typical machines beside the repository, where they are, and the repository's own. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Element } from '../../control/topology/element.ts';
import { readXml } from '../../control/topology/read-xml.ts';
import { repository } from './cluster.ts';

const shared = join(repository, '../shared/topologies');

/** Null, or the sentence why tests with them cannot run here. */
export function topologiesUnavailable(): string | null {
  return existsSync(join(shared, 'reference.json')) ? null : `${shared} is not there`;
}

/** Names of the machines, without `.xml`; none where they are not there. */
export function machineNames(): string[] {
  if (topologiesUnavailable() !== null) return [];
  return readdirSync(shared).flatMap((name) => /^([^.]+)\.xml$/u.exec(name)?.[1] ?? []);
}

export function machinePath(name: string): string {
  return join(shared, `${name}.xml`);
}

export function machineXml(name: string): Element {
  return readXml(readFileSync(machinePath(name), 'utf8'), `${name}.xml`).root;
}

export function sharedText(name: string): string {
  return readFileSync(join(shared, name), 'utf8');
}

/** The repository's own machines. */
export function ownMachine(name: 'switches' | 'superchips'): Element {
  const path = join(repository, `test/unit/fixtures/${name}.xml`);
  return readXml(readFileSync(path, 'utf8'), `${name}.xml`).root;
}
