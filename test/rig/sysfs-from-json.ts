/** A real machine's /sys, as a list of its PCI devices was kept. */
import { readFileSync } from 'node:fs';
import * as v from 'valibot';
import { FakeSysfs } from './sysfs.ts';

const kept = v.object({
  pci: v.record(v.string(), v.record(v.string(), v.string())),
  numa: v.record(v.string(), v.string()),
  cpuinfo: v.string(),
});

export function sysfsFromJson(file: string): FakeSysfs {
  const { pci, numa, cpuinfo } = v.parse(kept, JSON.parse(readFileSync(file, 'utf8')));
  const sysfs = new FakeSysfs();
  for (const { path = '', ...files } of Object.values(pci)) sysfs.addPci(path.slice(1), files);
  for (const [node, cpumap] of Object.entries(numa)) {
    sysfs.write(`sys/devices/system/node/${node}/cpumap`, cpumap);
    sysfs.write(`sys/devices/system/node/${node}/cpulist`, '0-63');
  }
  sysfs.write('proc/cpuinfo', cpuinfo);
  return sysfs;
}
