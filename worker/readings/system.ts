/** What system and machine a host is. */
import { hostname } from 'node:os';
import type { HostReadings } from '../../control/readings.ts';
import { listDirectory, readText } from '../topology/system-files.ts';

export function readSystem(root: string): HostReadings['system'] {
  const processor = readText(root, 'proc/cpuinfo');
  const flags = /^flags\s*:(.*)$/mu.exec(processor)?.[1];
  return {
    kernel: readText(root, 'proc/sys/kernel/osrelease'),
    distribution: /^PRETTY_NAME="?([^"\n]*)"?$/mu.exec(readText(root, 'etc/os-release'))?.[1] ?? '',
    node: process.version,
    libc: libcOf(),
    virtual: flags === undefined ? null : /\bhypervisor\b/u.test(flags),
    container: isContainer(root),
    bootId: readText(root, 'proc/sys/kernel/random/boot_id'),
    machineName: hostname(),
  };
}

/** By Node's own report, since the file of the library lies elsewhere on each distribution. */
function libcOf(): string | null {
  const report: unknown = process.report.getReport();
  if (typeof report !== 'object' || report === null || !('header' in report)) return null;
  const { header } = report;
  if (typeof header !== 'object' || header === null || !('glibcVersionRuntime' in header)) return null;
  return typeof header.glibcVersionRuntime === 'string' ? header.glibcVersionRuntime : null;
}

/** Docker, Podman and systemd-nspawn leave a mark; Kubernetes a variable. */
export function isContainer(root: string): boolean {
  const marks = ['.dockerenv', 'run/.containerenv', 'run/systemd/container'];
  const inRoot = [...listDirectory(root, ''), ...listDirectory(root, 'run').map((name) => `run/${name}`)];
  return (
    marks.some((mark) => inRoot.includes(mark)) ||
    listDirectory(root, 'run/systemd').includes('container') ||
    process.env['KUBERNETES_SERVICE_HOST'] !== undefined
  );
}
