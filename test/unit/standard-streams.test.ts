/** What the launcher knows of the terminals that its output goes to. */
import { expect, it, onTestFinished } from 'vitest';
import { standardStreams } from '../../launcher/report/standard-streams.ts';

/** Until the end of the test. */
function pretend(name: 'stdout' | 'stderr', properties: { readonly isTTY: boolean; readonly columns?: number }): void {
  for (const [key, value] of Object.entries(properties)) {
    const own = Object.getOwnPropertyDescriptor(process[name], key);
    Object.defineProperty(process[name], key, { value, configurable: true });
    onTestFinished(() => {
      if (own === undefined) Reflect.deleteProperty(process[name], key);
      else Object.defineProperty(process[name], key, own);
    });
  }
}

it.each([
  [true, true, true],
  [true, false, false],
  [false, true, false],
  [false, false, false],
])('stdout is a terminal: %s, stderr is a terminal: %s, both are one: %s', (stdout, stderr, both) => {
  pretend('stdout', { isTTY: stdout });
  pretend('stderr', { isTTY: stderr });
  const streams = standardStreams();
  expect([streams.stdoutIsTerminal(), streams.stderrIsTerminal(), streams.onOneTerminal()]).toEqual([
    stdout,
    stderr,
    both,
  ]);
});

it.each([
  [132, 132],
  [1, 1],
  [0, 80],
])('lines of a terminal of %i columns have %i', (columns, expected) => {
  pretend('stderr', { isTTY: true, columns });
  expect(standardStreams().columns()).toBe(expected);
});
