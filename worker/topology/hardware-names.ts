/** What processors, GPUs and their driver are called, from /proc: no library is started for it. */
import { closeSync, openSync, readSync } from 'node:fs';
import { join } from 'node:path';
import type { HostHardware } from '../../control/messages/hardware.ts';
import type { HardwareNames } from '../../control/planner/measured/tables.ts';
import { allGpus } from './gpus.ts';
import { readText } from './system-files.ts';

/** The first processor's lines are the first of a file that may have a thousand times as many. */
const FIRST_BYTES = 4096;
const NVIDIA = 'proc/driver/nvidia';

export function hardwareNames(root = '/'): HardwareNames {
  return {
    processor() {
      const text = beginning(join(root, 'proc/cpuinfo'));
      return /^(?:model name|cpu model|cpu|Processor)\s*:\s*(.+)$/mu.exec(text)?.[1]?.trim() ?? implementer(text);
    },
    gpu: (busId) => modelOf(root, address(busId)),
    driver() {
      return /Module\s+(?:for \S+\s+)?([0-9]+(?:\.[0-9]+)+)/u.exec(readText(root, `${NVIDIA}/version`))?.[1] ?? null;
    },
  };
}

/** What an agent reports to its launcher. */
export function hostHardware(root = '/'): HostHardware {
  const names = hardwareNames(root);
  const [first] = allGpus(root);
  return { processor: names.processor(), gpu: modelOf(root, first ?? ''), driver: names.driver() };
}

function modelOf(root: string, gpu: string): string | null {
  if (gpu === '') return null;
  const text = readText(root, `${NVIDIA}/gpus/${gpu}/information`);
  return /^Model:\s*(.+)$/mu.exec(text)?.[1]?.trim() ?? null;
}

/** Arm's processors have numbers instead of a name. */
function implementer(text: string): string | null {
  const numbers = ['CPU implementer', 'CPU part'].map(
    (name) => new RegExp(`^${name}\\s*:\\s*(\\S+)`, 'mu').exec(text)?.[1],
  );
  return numbers.some((number) => number === undefined) ? null : `arm ${numbers.join(' ')}`;
}

/** `1b000` is 0000:1b:00.0. */
function address(busId: string): string {
  const number = Number.parseInt(busId, 16);
  const part = (shift: number, mask: number, digits: number): string =>
    (Math.floor(number / 2 ** shift) & mask).toString(16).padStart(digits, '0');
  return `${part(20, 0xffff, 4)}:${part(12, 0xff, 2)}:${part(4, 0xff, 2)}.${part(0, 0xf, 1)}`;
}

function beginning(path: string): string {
  let file: number;
  try {
    file = openSync(path, 'r');
  } catch {
    return '';
  }
  try {
    const bytes = Buffer.alloc(FIRST_BYTES);
    return bytes.toString('latin1', 0, readSync(file, bytes));
  } catch {
    return '';
  } finally {
    closeSync(file);
  }
}
