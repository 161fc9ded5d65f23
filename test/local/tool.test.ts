import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Command } from '../rig/command.ts';
import { alive } from '../rig/processes.ts';
import { until } from '../rig/until.ts';
import { makeFrame } from '../../control/messages/codec.ts';
import { FrameKind } from '../../control/messages/frame.ts';
import type { Frame } from '../../control/messages/frame.ts';
import { exitOf } from '../../control/messages/payload.ts';
import { loadNative } from '../../worker/engine/load.ts';
import { NativeLink } from '../../worker/engine/native-link.ts';

const native = loadNative();

/** A shell command at the other end of a link. */
function tool(command: string, changes: readonly string[] = []) {
  const link = new NativeLink(native, (onEvent) => native.toolStart(['sh', '-c', command], changes, onEvent));
  const frames: Frame[] = [];
  const ends: (string | null)[] = [];
  link.open({ frame: (frame) => frames.push(frame), closed: (problem) => ends.push(problem) });
  const died = link.died.finally(() => link.release());
  return { link, frames, ends, died };
}

/** A header that no frame of ours has. */
const NO_FRAME = String.raw`printf '\377\377\377\377\001%011d' 0`;

describe('a child process whose streams are a link', () => {
  it('the child receives all frames sent before the close, and its exit status and stderr are reported', async () => {
    const { link, frames, ends, died } = tool('wc -c >&2; exit 7');
    const payload = new Uint8Array(3 << 20).map((_, i) => i % 251);
    link.send(makeFrame(FrameKind.stdin, { subject: 5, payload }));
    link.send(makeFrame(FrameKind.lease));
    link.close();
    const { waitStatus, stderr } = await died;
    expect(exitOf(waitStatus ?? 0)).toEqual({ exitCode: 7, signalNumber: null });
    expect(Number(stderr)).toBe(16 + payload.length + 16);
    expect(frames.length + ends.length).toBe(0);
  });

  it('the child returns frames while it runs', async () => {
    const { link, frames, ends, died } = tool('head -c 48; echo done >&2');
    link.send(makeFrame(FrameKind.lease, { request: 1, payload: new Uint8Array(8) }));
    link.send(makeFrame(FrameKind.lease, { request: 2, payload: new Uint8Array(8) }));
    expect(await died).toMatchObject({ waitStatus: 0, stderr: 'done\n' });
    expect(frames.map(({ request }) => request)).toEqual([1, 2]);
    expect(ends).toEqual([null]);
  });

  it('the link keeps the end of a long stderr and kills the child on request', async () => {
    const { link, frames, ends, died } = tool(`seq 1 20000 >&2; ${NO_FRAME}; sleep 1000`);
    const closed = new Promise<void>((resolve) => {
      link.open({ frame: () => undefined, closed: (problem) => resolve(void ends.push(problem)) });
    });
    await closed;
    link.kill();
    const { waitStatus, stderr } = await died;
    expect(exitOf(waitStatus ?? 0)).toEqual({ exitCode: null, signalNumber: 9 });
    expect(stderr).toHaveLength(4096);
    expect(stderr.trimEnd().split('\n').at(-1)).toBe('20000');
    expect(ends[0]).toMatch(/^it sent a frame of 4294967295 bytes;/);
    expect(frames).toEqual([]);
  });

  it('kill() ends the child together with its descendants', async () => {
    const { link, died } = tool(`sleep 1000 & echo $! >&2; ${NO_FRAME}; wait`);
    await new Promise<void>((resolve) => link.open({ frame: () => undefined, closed: () => resolve() }));
    link.kill();
    const child = Number((await died).stderr);
    expect(child).toBeGreaterThan(1);
    await until('its child is gone', () => !alive(child));
  });

  it('a released child ends by itself', async () => {
    const { link, died } = tool('cat; sleep 0.2; echo farewell >&2; exit 3');
    link.letGo();
    expect(await died).toMatchObject({ waitStatus: 3 << 8, stderr: 'farewell\n' });
  });

  it('a released child that does not end is killed', async () => {
    const { link, died } = tool('cat; exec sleep 1000');
    link.letGo();
    expect(await died).toMatchObject({ waitStatus: 9 });
  });

  it('killAlone() spares the descendants of the child', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'ncclrun-tool-'));
    const script = `{ cat; touch ${directory}/left; } <&0 >/dev/null 2>&1 & ${NO_FRAME}; wait`;
    const { link, died } = tool(script);
    await new Promise<void>((resolve) => link.open({ frame: () => undefined, closed: () => resolve() }));
    link.killAlone();
    await died;
    await until('its child has left', () => existsSync(join(directory, 'left')));
    rmSync(directory, { recursive: true });
  });

  it('the child has the environment of this process with the given changes', async () => {
    const { died } = tool('echo $SHELL:$NCCLRUN_TEST_NEW:$PATH >&2', ['SHELL=/changed', 'NCCLRUN_TEST_NEW=a=b']);
    expect((await died).stderr).toBe(`/changed:a=b:${process.env.PATH}\n`);
    expect(process.env.SHELL).not.toBe('/changed');
  });

  it('toolStart names a missing program', () => {
    expect(() => native.toolStart(['no-such-tool'], [], () => undefined)).toThrow(
      /cannot start no-such-tool: No such file or directory/,
    );
  });
});

describe('exitNow()', () => {
  it('exitNow() runs no exit handlers but sends queued data', async () => {
    const program = `
      const { loadNative } = await import(${JSON.stringify(new URL('../../worker/engine/load.ts', import.meta.url).href)});
      const native = loadNative();
      process.on('exit', () => console.log('Node ends'));
      const tool = native.toolStart(['sh', '-c', '{ cat; echo " read all"; } >"$FIFO"'], [], () => undefined);
      native.localServerWrite(tool, 1, Buffer.from('sent'));
      native.exitNow(7);`;
    // The tool reads when the process has ended.
    const script = 'export FIFO=$(mktemp -u) && mkfifo "$FIFO" && "$@"; echo status $?; cat "$FIFO"; rm "$FIFO"';
    const argv = ['-c', script, 'sh', process.execPath, '--input-type=module', '-e', program];
    const { stdout } = await Command.run(argv, { program: 'sh' });
    expect(stdout).toBe('status 7\nsent read all\n');
  });
});

describe('a child process that runs to its end', () => {
  it('toolRun returns the output of both streams and the wait status', async () => {
    expect(await native.toolRun(['sh', '-c', 'echo one; echo two >&2; exit 3'])).toEqual({
      waitStatus: 3 << 8,
      output: 'one\ntwo\n',
    });
  });

  it('the child of toolRun reads nothing from our stdin', async () => {
    expect(await native.toolRun(['cat'])).toEqual({ waitStatus: 0, output: '' });
  });

  it('toolRun names a missing program', async () => {
    await expect(native.toolRun(['no-such-tool'])).rejects.toThrow(/cannot start no-such-tool: No such file/);
  });
});
