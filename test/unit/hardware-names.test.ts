/** The names of a host's hardware, as tables of measured times are found by them. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { hardwareNames } from '../../worker/topology/hardware-names.ts';

describe('hardware names', () => {
  const root = mkdtempSync(join(tmpdir(), 'ncclrun-hardware-'));
  afterAll(() => rmSync(root, { recursive: true }));
  const write = (path: string, text: string): void => {
    mkdirSync(join(root, path, '..'), { recursive: true });
    writeFileSync(join(root, path), text);
  };

  test('hardwareNames reads processor, driver and GPU from /proc', () => {
    write('proc/cpuinfo', 'processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Intel(R) Xeon(R) 8480C\n');
    write(
      'proc/driver/nvidia/version',
      'NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.124.06  Release Build\n',
    );
    write('proc/driver/nvidia/gpus/0000:1b:00.0/information', 'Model: \t\t NVIDIA H200\nIRQ:   \t\t 18\n');
    const here = hardwareNames(root);
    expect(here.processor()).toBe('Intel(R) Xeon(R) 8480C');
    expect(here.driver()).toBe('570.124.06');
    expect([here.gpu('1b000'), here.gpu('1c000')]).toEqual(['NVIDIA H200', null]);
  });

  test('hardwareNames prints numbers for Arm and null for missing files', () => {
    const nothing = hardwareNames(join(root, 'nowhere'));
    expect([nothing.processor(), nothing.driver(), nothing.gpu('0')]).toEqual([null, null, null]);
    write('proc/cpuinfo', 'processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd4f\n');
    expect(hardwareNames(root).processor()).toBe('arm 0x41 0xd4f');
  });
});
