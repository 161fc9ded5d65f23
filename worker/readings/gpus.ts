/**
 * GPUs, as NVIDIA's nvidia-smi tells of them: a process of its own, since the driver may not answer any more. Its fields are those of
 * `nvidia-smi --help-query-gpu`; older drivers lack some, and refuse a query with one that they do not know.
 */
import type { GpuReading, HostReadings } from '../../control/readings.ts';
import { listDirectory, readText } from '../topology/system-files.ts';
import { numberOf } from './whole-numbers.ts';
import { runTool } from './run-tool.ts';

/** A driver that sleeps takes seconds to wake its GPUs. */
const LIMIT_MS = 8000;

const usual = [
  'index',
  'pci.bus_id',
  'name',
  'vbios_version',
  'ecc.mode.current',
  'ecc.mode.pending',
  'ecc.errors.uncorrected.volatile.total',
  'ecc.errors.corrected.volatile.total',
  'persistence_mode',
  'compute_mode',
  'temperature.gpu',
  'power.limit',
  'power.default_limit',
  'clocks.sm',
  'clocks.max.sm',
  'memory.free',
  'memory.total',
  'clocks_throttle_reasons.hw_slowdown',
  'clocks_throttle_reasons.hw_thermal_slowdown',
  'clocks_throttle_reasons.hw_power_brake_slowdown',
  'clocks_throttle_reasons.sw_thermal_slowdown',
  'clocks_throttle_reasons.sw_power_cap',
] as const;
const remapped = [
  'gpu_bus_id',
  'remapped_rows.correctable',
  'remapped_rows.uncorrectable',
  'remapped_rows.pending',
  'remapped_rows.failure',
] as const;

type Row = ReadonlyMap<string, string>;

/** `problem` is called with the reason where the driver is there and cannot be asked. */
export async function readGpus(root: string, problem: (why: string) => void): Promise<HostReadings['gpus']> {
  const onBus = listDirectory(root, 'sys/bus/pci/devices').filter((address) => {
    const path = `sys/bus/pci/devices/${address}`;
    return readText(root, `${path}/vendor`) === '0x10de' && /^0x030[02]/u.test(readText(root, `${path}/class`));
  }).length;
  const driver = readText(root, 'sys/module/nvidia/version');
  const unifiedMemory = listDirectory(root, 'dev').includes('nvidia-uvm');
  if (driver === '') return { driver: null, unifiedMemory, onBus, devices: onBus > 0 ? null : [] };
  const [rows, spare, action, links, errors] = await Promise.all([
    query('--query-gpu', usual),
    query('--query-remapped-rows', remapped),
    query('--query-gpu', ['pci.bus_id', 'gpu_recovery_action']),
    runTool('nvidia-smi', ['nvlink', '--status'], LIMIT_MS),
    runTool('nvidia-smi', ['nvlink', '--errorcounters'], LIMIT_MS),
  ]);
  if (typeof rows === 'string') {
    problem(rows);
    return { driver, unifiedMemory, onBus, devices: null };
  }
  const linkLines = 'output' in links ? linesByGpu(links.output) : new Map<number, readonly string[]>();
  const errorLines = 'output' in errors ? linesByGpu(errors.output) : new Map<number, readonly string[]>();
  const devices = rows.map((row) => ({
    ...gpuOf(row, besideRow(spare, 'gpu_bus_id', row), besideRow(action, 'pci.bus_id', row)),
    activeNvlinks: activeLinks(linkLines.get(Number(row.get('index')))),
    nvlinkErrors: linkErrors(errorLines.get(Number(row.get('index')))),
  }));
  return { driver, unifiedMemory, onBus, devices };
}

/** A row for each GPU, or why there is none. */
async function query(what: string, fields: readonly string[]): Promise<Row[] | string> {
  const answer = await runTool(
    'nvidia-smi',
    [`${what}=${fields.join(',')}`, '--format=csv,noheader,nounits'],
    LIMIT_MS,
  );
  if ('problem' in answer) return answer.problem;
  const lines = answer.output.split('\n').filter((line) => line.includes(','));
  return lines.map((line) => {
    const values = line.split(',').map((value) => value.trim());
    return new Map(fields.map((field, index) => [field, values[index] ?? '']));
  });
}

/** The row of the same GPU in another answer. */
function besideRow(all: readonly Row[] | string, key: string, row: Row): Row {
  const found = typeof all === 'string' ? undefined : all.find((one) => one.get(key) === row.get('pci.bus_id'));
  return found ?? new Map();
}

type Links = 'activeNvlinks' | 'nvlinkErrors';

function gpuOf(row: Row, spare: Row, action: Row): Omit<GpuReading, Links> {
  // "[N/A]", "[Not Supported]"
  const text = (from: Row, field: string): string | null => {
    const value = from.get(field) ?? '';
    return value === '' || /^\[|^N\/A$/u.test(value) ? null : value;
  };
  const number = (field: string) => numberOf(row.get(field));
  const whole = (field: string) => {
    const value = number(field);
    return value === null ? null : Math.round(value);
  };
  const flag = (from: Row, field: string, yes: RegExp): boolean | null => {
    const value = text(from, field);
    return value === null ? null : yes.test(value);
  };
  const mebibytes = (field: string) => {
    const value = number(field);
    return value === null ? null : value * 2 ** 20;
  };
  const enabled = /^enabled$/iu;
  const pending = flag(row, 'ecc.mode.pending', enabled);
  const current = flag(row, 'ecc.mode.current', enabled);
  const reasons = usual.filter((field) => field.startsWith('clocks_throttle_reasons.'));
  return {
    index: whole('index') ?? 0,
    busId: row.get('pci.bus_id') ?? '',
    name: row.get('name') ?? '',
    vbios: text(row, 'vbios_version'),
    eccEnabled: current,
    eccPending: pending === null || current === null ? null : pending !== current,
    uncorrectedErrors: whole('ecc.errors.uncorrected.volatile.total'),
    correctedErrors: whole('ecc.errors.corrected.volatile.total'),
    remappedRows: sumOf(spare, ['remapped_rows.correctable', 'remapped_rows.uncorrectable']),
    remapPending: flag(spare, 'remapped_rows.pending', /^(yes|1)$/iu),
    remapFailed: flag(spare, 'remapped_rows.failure', /^(yes|1)$/iu),
    recoveryAction: text(action, 'gpu_recovery_action'),
    persistence: flag(row, 'persistence_mode', enabled),
    computeMode: text(row, 'compute_mode'),
    temperature: number('temperature.gpu'),
    powerLimitWatts: number('power.limit'),
    defaultPowerLimitWatts: number('power.default_limit'),
    smClockMhz: whole('clocks.sm'),
    maximumSmClockMhz: whole('clocks.max.sm'),
    throttled: reasons
      .filter((field) => /^active$/iu.test(row.get(field) ?? ''))
      .map((field) => field.slice('clocks_throttle_reasons.'.length)),
    freeBytes: mebibytes('memory.free'),
    totalBytes: mebibytes('memory.total'),
  };
}

function sumOf(row: Row, fields: readonly string[]): number | null {
  const values = fields.map((field) => numberOf(row.get(field))).filter((value) => value !== null);
  return values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0);
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

/** `Link 0: Replay Errors: 0` */
function linkErrors(lines: readonly string[] | undefined): number | null {
  if (lines === undefined) return null;
  return lines.reduce((sum, line) => sum + Number(/^Link \d+: .*Errors?: (\d+)$/u.exec(line)?.[1] ?? 0), 0);
}
