/** What doctor's findings mean for a job that is about to start. */
import { expect, it } from 'vitest';
import type { Finding } from '../../launcher/doctor/finding.ts';
import { failuresOf, noticesOf } from '../../launcher/doctor/preflight.ts';
import { exitStatus } from '../../launcher/model/failure-error.ts';
import { failureText } from '../../launcher/report/failure-text.ts';

const finding = (changes: Partial<Finding>): Finding => ({
  check: 'cpu.load',
  answer: 'warn',
  host: 'a',
  subject: '',
  message: 'busy',
  remedy: 'wait',
  ...changes,
});

it('a job prints warnings and unknown answers, those of several hosts as one, and no notes', () => {
  const findings = [
    finding({ answer: 'unknown', host: 'c', subject: 'GPU 1', remedy: null }),
    finding({}),
    finding({ host: 'b' }),
    finding({ answer: 'note' }),
    finding({ answer: 'ok' }),
  ];
  expect(noticesOf(findings, 3, 1.25)).toEqual([
    'doctor: cpu.load a, b: busy; next: wait',
    'doctor: cpu.load c GPU 1: busy',
    'doctor looked at 3 hosts for 1.3 s: 1 check ok, 2 warnings',
  ]);
  expect(failuresOf(findings)).toBeNull();
});

it('failures keep a job from starting, and name their hosts', () => {
  const failure = failuresOf([
    finding({ answer: 'fail' }),
    finding({ answer: 'fail', host: 'b' }),
    finding({ answer: 'fail', host: null, subject: 'a to c', remedy: null }),
  ]);
  expect(failure).toEqual({
    type: 'preflight',
    hosts: ['a', 'b'],
    findings: [
      { check: 'cpu.load', message: 'a, b: busy', remedy: 'wait' },
      { check: 'cpu.load', message: 'a to c: busy', remedy: null },
    ],
  });
  if (failure === null) return;
  expect(exitStatus(failure)).toBe(125);
  expect(failureText(failure)).toEqual({
    sentence: 'doctor found what makes jobs fail on a, b; no rank was started',
    details: ['cpu.load  a, b: busy; next: wait', 'cpu.load  a to c: busy'],
    remedy: 'mend that, leave the hosts out (--exclude), or start without --doctor',
  });
  expect(failureText({ type: 'preflight', hosts: [], findings: [] }).sentence).toBe(
    'doctor found what makes jobs fail; no rank was started',
  );
});
