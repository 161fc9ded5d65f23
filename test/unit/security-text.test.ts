/** What others say (peers, files, processes) reaches no terminal as anything but text, and passes for no line of ours. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { printable, printableLine, printableLines } from '../../control/printable.ts';
import { dryRunText } from '../../launcher/cli/dry-run.ts';
import { hostsTable } from '../../launcher/cli/hosts-table.ts';
import { shellLine } from '../../launcher/cli/normalise.ts';
import { resultWithoutJob } from '../../launcher/cli/refused.ts';
import type { JobEvent } from '../../launcher/model/event.ts';
import { jobsText } from '../../launcher/jobs/text.ts';
import { makePaint } from '../../launcher/text/colour.ts';
import { EventsReporter } from '../../launcher/report/events.ts';
import { LiveText } from '../../launcher/report/live-text.ts';
import type { PlainOptions } from '../../launcher/report/plain.ts';
import { JsonResultReporter, ResultFileReporter } from '../../launcher/report/result.ts';
import { failureBlock, ourLine } from '../../launcher/report/summary.ts';
import { tagOf } from '../../launcher/report/tag.ts';
import { Writer } from '../../launcher/report/writer.ts';
import { hostNamed } from '../rig/host-slots.ts';
import { plainReporter, type PlainReporterRig } from '../rig/plain-reporter.ts';
import { harmlessTexts, HOSTILE, hostileEvents, hostileFailures, obeyed } from '../rig/hostile.ts';

/** A plain reporter, whose stderr is a terminal with colours, and what it wrote there. */
function rig(options: Partial<PlainOptions> = {}): PlainReporterRig {
  return plainReporter(
    { tagOutput: 'host', verbose: true, paint: (isTerminal) => makePaint(isTerminal, {}), ...options },
    ['stderr'],
  );
}

/** Ours alone: what a Paint writes. */
function withoutColours(text: string): string {
  const escape = String.fromCodePoint(0x1b);
  return ['1', '2', '22', '31', '33', '39'].reduce((left, code) => left.replaceAll(`${escape}[${code}m`, ''), text);
}

const lineOfOurs = /^(ncclrun: | {4} *| {2}next: )\S/;

describe('every event and failure', () => {
  test('the hostile samples put hostile text into every field', () => {
    const whole = { events: hostileEvents, failures: hostileFailures };
    expect(harmlessTexts(whole)).toEqual([]);
  });

  test.each(hostileEvents.map((event) => [JSON.stringify(event).slice(0, 60), event] as const))(
    'the reporter prints %s only in lines of its own and without control characters',
    async (_name, event) => {
      const { reporter, seen } = rig();
      reporter.event(event);
      await reporter.result({ ...resultWithoutJob({ type: 'timeout', seconds: 1 }), ok: true, failures: [] });
      const text = withoutColours(seen.stderr);
      expect(obeyed(text)).toEqual([]);
      for (const line of text.split('\n').slice(0, -1)) expect(line).toMatch(lineOfOurs);
      expect(text).not.toContain('\nncclrun: all fine');
    },
  );

  test('hostile text contains no working colour codes', () => {
    const { reporter, seen } = rig({ paint: (isTerminal) => makePaint(isTerminal, { NO_COLOR: '1' }) });
    for (const event of hostileEvents) reporter.event(event);
    expect(obeyed(seen.stderr)).toEqual([]);
  });

  test('the summary prints hostile text only in lines of its own', async () => {
    for (const primary of hostileFailures) {
      const { reporter, seen } = rig();
      await reporter.result({ ...resultWithoutJob(primary), failures: [primary, ...hostileFailures] });
      const text = withoutColours(seen.stderr);
      expect(obeyed(text)).toEqual([]);
      for (const line of text.split('\n').slice(0, -1)) expect(line).toMatch(lineOfOurs);
    }
  });

  test('the live line contains no control characters', () => {
    const text = new LiveText();
    const shown: string[] = [];
    const at = (event: JobEvent | undefined) => {
      if (event !== undefined) text.event(event);
      shown.push(text.line(500, 1000));
    };
    for (const type of ['host-connecting', 'host-step', 'host-up', 'rank-started'] as const)
      at(hostileEvents.find((event) => event.type === type));
    at({ time: 1, type: 'phase', phase: 'teardown' });
    expect(shown.join('')).toContain(String.raw`h\x1b]0;pwned`);
    expect(obeyed(shown.join(''))).toEqual([]);
    expect(shown.join('')).not.toContain('\n');
  });

  test('events and results are JSON that preserves hostile text without control characters', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'ncclrun-test-'));
    const [events, report] = [join(directory, 'events'), join(directory, 'report')];
    try {
      const reporter = await EventsReporter.open(events);
      for (const event of hostileEvents) reporter.event(event);
      await reporter.result();
      const lines = readFileSync(events, 'utf8');
      expect(obeyed(lines)).toEqual([]);
      const read: unknown[] = lines
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line));
      expect(read).toEqual(hostileEvents.map((event) => ({ schemaVersion: 1, ...event })));

      const result = { ...resultWithoutJob({ type: 'timeout', seconds: 1 }), failures: hostileFailures };
      await (await ResultFileReporter.open(report)).result(result);
      const { streams, seen } = rig();
      await new JsonResultReporter(streams.stdout).result(result);
      for (const text of [readFileSync(report, 'utf8'), seen.stdout]) {
        expect(obeyed(text)).toEqual([]);
        expect(JSON.parse(text)).toEqual(result);
      }
    } finally {
      rmSync(directory, { recursive: true });
    }
  });
});

describe('the output of ranks', () => {
  const bytes = Buffer.concat([Buffer.from(`${HOSTILE}\n`), Uint8Array.of(0x9b, 0xff, 0x1b, 0x0a)]);
  const chunk = { rank: 1, stream: 'stdout', time: 0, bytes, partial: false } as const;

  test('the output of ranks passes unchanged', async () => {
    const seen: Buffer[] = [];
    const stream = new PassThrough();
    stream.on('data', (data: Buffer) => seen.push(data));
    const { streams } = rig();
    const { reporter } = rig({ tagOutput: 'none', streams: { ...streams, stdout: new Writer(() => stream) } });
    await reporter.output({ ...chunk, host: 'node1' });
    expect(Buffer.concat(seen)).toEqual(bytes);
  });

  test("the tag contains the host's name without control characters", () => {
    const options = { tagOutput: 'host', timestamps: true } as const;
    const tag = tagOf({ ...chunk, host: HOSTILE }, true, options, makePaint(false, {}));
    expect(obeyed(tag)).toEqual([]);
    expect(tag).not.toContain('\n');
  });
});

describe('the output of commands', () => {
  const origin = { kind: 'stated', text: `stated at ${HOSTILE}`, host: `${HOSTILE}; x` } as const;
  const host = { ...hostNamed('h'), name: HOSTILE, user: HOSTILE, origin };
  const leftOut = [{ name: HOSTILE, reason: HOSTILE }];
  const command = ['ncclrun', '-x', HOSTILE];

  test.each([
    ['hosts', hostsTable({ hosts: [host, host], leftOut }), 4],
    [
      'ps',
      jobsText(
        [
          {
            schemaVersion: 1,
            jobId: HOSTILE,
            startedAt: 1,
            pid: 4,
            programs: [[HOSTILE]],
            hosts: [{ name: HOSTILE, ranks: [0] }],
          },
        ],
        2,
      ),
      3,
    ],
    ['--dry-run', dryRunText({ schemaVersion: 1, command, hosts: [host], leftOut, ranks: null }, true), 6],
    ['config', `${shellLine(command)}\n`, 1],
  ])('the command %s prints the right number of lines without control characters', (_name, text, lines) => {
    expect(obeyed(text)).toEqual([]);
    expect(text.trimEnd().split('\n')).toHaveLength(lines);
  });

  test('bash reads a quoted line as the original words', async () => {
    const { execFileSync } = await import('node:child_process');
    const words = ['a b', "it's", '\\n\u001B[31m\n\'"$(x)', 'é\u009B\u202E\u007F1', ''];
    const output = execFileSync('bash', ['-c', `printf '%s\\0' ${shellLine(words)}`], {
      env: { ...process.env, LC_ALL: 'C.UTF-8' },
    });
    expect(output.toString().split('\0').slice(0, -1)).toEqual(words);
  });

  test('every module of the launcher prints through the sanitizing writer', () => {
    const root = join(import.meta.dirname, '../../launcher');
    const raw = readdirSync(root, { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.ts'))
      .filter((file) => {
        const source = readFileSync(join(root, file), 'utf8');
        return /\b(stdout|stderr|[wW]riter)\b[^;\n]*\.write\(Buffer|console\.|writeSync\(/.test(source);
      });
    // Files of batches; a script for another process; the line that is redrawn, whose text LiveText has made harmless.
    expect(raw.toSorted()).toEqual([
      'batch/attempt/durable-file.ts',
      'remote/staging/remote-script.ts',
      'report/live.ts',
    ]);
  });
});

describe('hostile text', () => {
  test('plain text of any script stays unchanged', () => {
    const text = 'node1 ~ é日本👍\tनमस्ते می‌خواهم "\\x1b"';
    for (const shown of [printable(text), printableLine(text), printableLines(`${text}\n`).trimEnd()])
      expect(shown).toBe(text);
  });

  test.each([
    ['\u001B[31m', String.raw`\x1b[31m`],
    ['a\r\nb', String.raw`a\r\nb`],
    ['\u007F\u009B', String.raw`\u007f\u009b`],
    ['\u202E\u2066\u2028\uFEFF', String.raw`\u202e\u2066\u2028\ufeff`],
    ['\uD800x', String.raw`\ud800x`],
    ['\u{E0041}', String.raw`\udb40\udc41`],
  ])('printable() escapes %j', (text, shown) => {
    expect(printable(text)).toBe(shown);
  });

  test('a text of megabytes is shortened with the number of bytes left out', () => {
    const text = failureBlock(
      { type: 'agent', host: 'h', phase: 'run', message: 'é'.repeat(4e6), remedy: null },
      makePaint(false, {}),
    );
    expect(text.length).toBeLessThan(9000);
    expect(text).toMatch(/é… \([0-9]+ more bytes\)\n$/);
    expect(printable(`${'x'.repeat(8191)}👍`)).toBe(`${'x'.repeat(8191)}… (4 more bytes)`);
  });

  test('a text of many lines is shortened', () => {
    const detail = 'a line\n'.repeat(1e5);
    const base = { type: 'host-unreachable', host: 'h', phase: 'connect', cause: 'other', remedy: null } as const;
    const lines = failureBlock({ ...base, detail }, makePaint(false, {}))
      .trimEnd()
      .split('\n');
    expect(lines).toHaveLength(18);
    expect(lines.at(-1)).toBe('    … (99984 more lines)');
  });

  test('colours of our own survive', () => {
    const escape = String.fromCodePoint(0x1b);
    const line = ourLine('x', makePaint(true, {}));
    expect(line).toBe(`${escape}[2mncclrun:${escape}[22m x\n`);
  });
});
