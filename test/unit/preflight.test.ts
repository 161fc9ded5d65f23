import { expect, it } from 'vitest';
import { differences } from '../../launcher/job/preflight.ts';

const host = (name: string, facts: Record<string, string>, clockAheadMs = 0) => ({ name, facts, clockAheadMs });

it('differences() reports nothing for equal hosts', () => {
  expect(differences([host('a', { CUDA: '13.0' }, 300), host('b', { CUDA: '13.0' }, -300)])).toEqual([]);
});

it('differences() names few hosts and counts many', () => {
  const many = Array.from({ length: 14 }, (_, index) =>
    host(`${'abcdefghijklmn'[index]}x`, { 'NVIDIA driver': '580.159' }),
  );
  expect(differences([...many, host('node7', { 'NVIDIA driver': '570.86' })])).toEqual([
    'hosts differ in NVIDIA driver: 14 hosts: 580.159; node7: 570.86',
  ]);
});

it('differences() shortens names and reports which hosts lack a fact', () => {
  const hosts = [host('n1', {}), host('n2', { CUDA: '13.0' }), host('n3', { CUDA: '13.0' })];
  expect(differences(hosts)).toEqual(['hosts differ in CUDA: n[2-3]: 13.0; n1: none']);
});

it('differences() reports clocks that deviate', () => {
  expect(differences([host('a', {}, 4321), host('b', {}, -60_000)])).toEqual([
    "the clock of a is 4.3 s ahead of this host's",
    "the clock of b is 60 s behind this host's",
  ]);
});
