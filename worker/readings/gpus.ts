/**
 * GPUs, as NVIDIA's nvidia-smi tells of them: a process of its own, since the driver may not answer any more. `nvidia-smi -q -x` is refused by no
 * driver, unlike a query of fields.
 */
import type { HostReadings } from '../../control/readings.ts';
import { listDirectory, readText } from '../topology/system-files.ts';
import { gpusInXml } from './gpu-xml.ts';
import { runTool } from './run-tool.ts';

/** A driver that sleeps takes seconds to wake its GPUs. */
const LIMIT_MS = 8000;

/** `problem` is called with the reason where the driver is there and cannot be asked. */
export async function readGpus(root: string, problem: (why: string) => void): Promise<HostReadings['gpus']> {
  const onBus = listDirectory(root, 'sys/bus/pci/devices').filter((address) => {
    const path = `sys/bus/pci/devices/${address}`;
    return readText(root, `${path}/vendor`) === '0x10de' && /^0x030[02]/u.test(readText(root, `${path}/class`));
  }).length;
  const driver = readText(root, 'sys/module/nvidia/version');
  const unifiedMemory = listDirectory(root, 'dev').includes('nvidia-uvm');
  const common = {
    unifiedMemory,
    onBus,
    // The driver's own way into other devices' memory needs its open kernel modules (docs/design/network.md).
    peerMemory: listDirectory(root, 'sys/module').includes('nvidia_peermem'),
    openDriver: readText(root, 'proc/driver/nvidia/version').includes('Open Kernel Module'),
  };
  if (driver === '') return { ...common, driver: null, devices: onBus > 0 ? null : [] };
  const [all, links, errors] = await Promise.all([
    runTool('nvidia-smi', ['-q', '-x'], LIMIT_MS),
    runTool('nvidia-smi', ['nvlink', '--status'], LIMIT_MS),
    runTool('nvidia-smi', ['nvlink', '--errorcounters'], LIMIT_MS),
  ]);
  const gpus = 'output' in all ? gpusInXml(all.output) : [];
  if (gpus.length === 0 && onBus > 0) {
    problem('problem' in all ? all.problem : 'nvidia-smi -q -x names no GPU');
    return { ...common, driver, devices: null };
  }
  const linkLines = 'output' in links ? linesByGpu(links.output) : new Map<number, readonly string[]>();
  const errorLines = 'output' in errors ? linesByGpu(errors.output) : new Map<number, readonly string[]>();
  const devices = gpus.map((gpu) => ({
    ...gpu,
    activeNvlinks: activeLinks(linkLines.get(gpu.index)),
    nvlinkSpeeds: linkSpeeds(linkLines.get(gpu.index)),
    nvlinkErrors: linkErrors(errorLines.get(gpu.index)),
  }));
  return { ...common, driver, devices };
}

/** `GPU 0: NVIDIA H100 …`, then lines of its links. */
function linesByGpu(text: string): Map<number, readonly string[]> {
  const found = new Map<number, string[]>();
  let own: string[] = [];
  for (const line of text.split('\n')) {
    const gpu = /^GPU (\d+):/u.exec(line)?.[1];
    if (gpu === undefined) own.push(line.trim());
    else found.set(Number(gpu), (own = []));
  }
  return found;
}

/** `Link 3: 26.562 GB/s`; one that is down says `<inactive>`. */
function activeLinks(lines: readonly string[] | undefined): number | null {
  return lines === undefined ? null : lines.filter((line) => /^Link \d+: [\d.]+ GB\/s$/u.test(line)).length;
}

/** Different ones, in GB/s. */
function linkSpeeds(lines: readonly string[] | undefined): number[] {
  const speeds = (lines ?? []).flatMap((line) => /^Link \d+: ([\d.]+) GB\/s$/u.exec(line)?.[1] ?? []);
  return [...new Set(speeds.map(Number))].toSorted((one, other) => one - other);
}

/** `Link 0: Replay Errors: 0` */
function linkErrors(lines: readonly string[] | undefined): number | null {
  if (lines === undefined) return null;
  return lines.reduce((sum, line) => sum + Number(/^Link \d+: .*Errors?: (\d+)$/u.exec(line)?.[1] ?? 0), 0);
}
