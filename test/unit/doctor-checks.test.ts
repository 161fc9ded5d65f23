/** What doctor says of a host's readings: each fault by its check, with a remedy; of a host that is well, nothing. */
import { describe, expect, it, test } from 'vitest';
import type { HostReadings } from '../../control/readings.ts';
import { allChecks } from '../../launcher/doctor/checks/all.ts';
import type { Finding } from '../../launcher/doctor/finding.ts';
import { runChecks } from '../../launcher/doctor/run-checks.ts';
import { inDomain, plantedDetails, withCards, withData, withRoce } from '../rig/planted-details.ts';
import { plantedReadings, withDirectory, withXid } from '../rig/planted-readings.ts';
import { wellGpu, wellHost } from '../rig/readings.ts';

/** Beside two others that are well. */
function besideOthers(readings: HostReadings, others: Partial<HostReadings> = {}): Finding[] {
  const machine = (machineName: string) => ({ ...readings.system, machineName });
  const hosts = [
    {
      name: 'h1',
      readings: wellHost({ ...others, system: { ...(others.system ?? wellHost().system), machineName: 'h1' } }),
    },
    {
      name: 'h2',
      readings: wellHost({ ...others, system: { ...(others.system ?? wellHost().system), machineName: 'h2' } }),
    },
    { name: 'h3', readings: { ...readings, system: machine('h3') } },
  ];
  return runChecks(allChecks, hosts).filter(({ answer }) => answer !== 'ok');
}

const ofVersion = (name: string, version: string) => ({
  name,
  readings: wellHost({ version, system: { ...wellHost().system, machineName: name } }),
});

const stealing = (machineName: string, stolen: number, overSeconds = 1) => ({
  name: machineName,
  readings: wellHost({
    system: { ...wellHost().system, machineName },
    processors: { ...wellHost().processors, stolen, overSeconds },
  }),
});

const xidsOf = (changes: Partial<HostReadings>) =>
  besideOthers(wellHost(changes)).flatMap(({ check, message }) => (check === 'gpu.xid' ? [message] : []));

const rows = [...plantedReadings, ...plantedDetails].map((row) => [row[0], row] as const);

describe('the checks of doctor', () => {
  it('hosts that are well have no complaint', () => {
    expect(besideOthers(wellHost())).toEqual([]);
  });

  test.each([
    ['RoCE', withRoce()],
    ['RoCE of which no tool tells', withRoce({ trust: null, pausing: null, notifying: null, reacting: null })],
    ['RoCE without flow control', withRoce({ pausing: [], paused: [], notifying: [], reacting: [] })],
    ['a fabric over several hosts', inDomain()],
    ['cards near GPUs', withCards()],
    ['data', withData(1000)],
    ['a container', { system: { ...wellHost().system, container: true } }],
  ] as const)('hosts that are well with %s have no complaint', (_what, changes) => {
    expect(besideOthers(wellHost(changes), changes).map(({ check, message }) => [check, message])).toEqual([]);
  });

  test.each(rows)('doctor names %s', (_what, [, changes, check, answer, message, others]) => {
    const found = besideOthers(wellHost(changes), others).filter(
      (finding) => finding.check === check && finding.answer === answer,
    );
    expect(found.map((finding) => finding.message)).toContainEqual(expect.stringMatching(message));
    expect(found.map(({ host }) => host)).toEqual(found.map(() => 'h3'));
    if (answer !== 'note') expect(found.every(({ remedy }) => remedy !== null && remedy !== '')).toBe(true);
  });

  it('every check has a row here, but for what hosts have in common', () => {
    const named = new Set(rows.map(([, [, , check]]) => check));
    expect(allChecks.map(({ id }) => id).filter((id) => !named.has(id))).toEqual(['name.unique']);
  });

  it('the checks are tested at the borders of what they name', () => {
    const checksOf = (changes: Partial<HostReadings>) => besideOthers(wellHost(changes)).map(({ check }) => check);
    expect(checksOf(withDirectory('/tmp', { freeFiles: 1000 }))).toEqual([]);
    expect(checksOf(withDirectory('/tmp', { freeFiles: 999 }))).toEqual(['files.space']);
    expect(checksOf(withDirectory('/tmp', { freeFiles: 0 }))).toEqual([]);
    const { gpus } = wellHost();
    const unlike = ['1', '2', '3'].map((vbios, index) => wellGpu({ index, vbios }));
    const three = besideOthers(wellHost({ gpus: { ...gpus, onBus: 3, devices: unlike } }));
    expect(three.filter(({ check }) => check === 'gpu.firmware')).toHaveLength(3);
    const two = besideOthers(wellHost({ gpus: { ...gpus, onBus: 2, devices: unlike.slice(1) } }));
    expect(two.filter(({ check }) => check === 'gpu.firmware')).toEqual([]);
    const none = { nccl: [], visibleGpus: '', engineProblem: null, library: null, libraryVersion: null };
    const one = besideOthers(wellHost({ gpus: { ...gpus, onBus: 1, devices: [wellGpu()] }, environment: none }));
    expect(one.map(({ message }) => message)).toContain('CUDA_VISIBLE_DEVICES= shows 0 GPUs of 1');
  });

  it('a hypervisor that takes as much from the others is a note, and a moment of it nothing', () => {
    const found = (...hosts: ReturnType<typeof stealing>[]) =>
      runChecks(allChecks, hosts).filter(({ check, answer }) => check === 'cpu.stolen' && answer !== 'ok');
    expect(found(stealing('a', 0.05), stealing('b', 0.04), stealing('c', 0.05)).map(({ answer }) => answer)).toEqual([
      'note',
      'note',
      'note',
    ]);
    expect(found(stealing('a', 0.05), stealing('b', 0.01), stealing('c', 0.01))).toMatchObject([
      { answer: 'warn', host: 'a' },
    ]);
    expect(found(stealing('a', 0.05, 0.05))).toEqual([]);
  });

  it('errors of yesterday are no finding, and equal ones are counted', () => {
    expect(xidsOf(withXid({ hoursAgo: 25 }))).toEqual([]);
    const xid = { code: 74, nvswitch: false, address: '0000:02:00', message: 'NVLink', hoursAgo: 0.1 };
    expect(xidsOf({ kernelLog: { readable: true, xids: [xid, xid, { ...xid, address: '0000:03:00' }] } })).toEqual([
      '2 times, Xid 74: NVLink, within the last hour',
      'Xid 74: NVLink, within the last hour',
    ]);
    expect(xidsOf({ ...withXid({}), gpus: { ...wellHost().gpus, onBus: 0 } })).toEqual([]);
  });

  it('two entries that are one machine are named', () => {
    const readings = wellHost();
    const hosts = [
      { name: 'a', readings },
      { name: 'b', readings },
    ];
    const twins = runChecks(allChecks, hosts).filter(({ answer }) => answer === 'fail');
    expect(twins.map(({ check, host }) => [check, host])).toEqual([
      ['name.unique', 'a'],
      ['name.unique', 'b'],
    ]);
  });

  it('nobody is blamed where two halves differ', () => {
    const bad = runChecks(allChecks, [ofVersion('a', '1'), ofVersion('b', '2')]).filter(
      ({ answer }) => answer !== 'ok',
    );
    expect(bad).toMatchObject([
      { check: 'ncclrun.version', host: null, message: 'hosts differ in ncclrun: a: 1; b: 2' },
    ]);
  });
});
