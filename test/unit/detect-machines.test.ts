/** Machines as topology files describe them are detected as what they are. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { readXml } from '../../control/topology/read-xml.ts';
import { writeXml } from '../../control/topology/write-xml.ts';
import { assemble } from '../../worker/topology/assemble.ts';
import { canonical, machineFrom } from '../rig/machine-from-xml.ts';
import { describeMachines, machineNames, machinePath } from '../rig/topologies.ts';

const own = join(import.meta.dirname, 'fixtures');

const filesIn = (directory: string) =>
  readdirSync(directory).filter((name) => name.endsWith('.xml') && !name.includes('graph'));

function detected(path: string) {
  const { root: file, comments } = readXml(readFileSync(path, 'utf8'), path);
  using machine = machineFrom(file);
  const system = assemble(machine.root, machine.facts);
  return { file, system, xml: writeXml(system, comments) };
}

describe('detection of the fixtures', () => {
  test.each(filesIn(own))('%s is detected with its elements and attributes in order', (name) => {
    const path = join(own, name);
    expect(detected(path).xml).toBe(readFileSync(path, 'utf8'));
  });
});

describeMachines('detection of known machines', () => {
  test.each(machineNames())('%s is detected element for element', (name) => {
    const { file, system } = detected(machinePath(name));
    expect(canonical(system)).toBe(canonical(file));
  });
});
