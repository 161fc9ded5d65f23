/** The link to an agent that Slurm starts: frames wait until its call is admitted, and only the end of that call is reported. */
import { PassThrough } from 'node:stream';
import { expect, it } from 'vitest';
import { StreamLink } from '../../control/link/stream-link.ts';
import { makeFrame } from '../../control/messages/codec.ts';
import { FrameKind } from '../../control/messages/frame.ts';
import { PlacedLink } from '../../launcher/remote/slurm/placed-link.ts';
import { turn } from '../rig/scripted-host.ts';

const beat = (subject: number) => makeFrame(FrameKind.heartbeat, { subject });

async function settle(): Promise<void> {
  for (let turns = 0; turns < 5; turns += 1) await turn();
}

/** An agent that calls; what it gets. */
function agent() {
  const [there, back] = [new PassThrough(), new PassThrough()];
  const [ours, its] = [new StreamLink(back, there), new StreamLink(there, back)];
  const got: (number | string)[] = [];
  its.open({ frame: ({ subject }) => got.push(subject), closed: () => got.push('end') });
  return { ours, its, got };
}

function placed(mayEnd: () => Promise<void> | null = () => null) {
  const link = new PlacedLink(mayEnd);
  const seen: (number | string)[] = [];
  link.open({ frame: ({ subject }) => seen.push(subject), closed: (problem) => seen.push(problem ?? 'clean end') });
  void link.gone.then(() => seen.push('gone'));
  return { link, seen };
}

it('frames wait until the call is admitted, go in their order, and once', async () => {
  const [{ link, seen }, { ours, its, got }] = [placed(), agent()];
  link.send(beat(1));
  expect(link.isCalled).toBe(false);
  link.attach(ours);
  link.send(beat(2));
  its.send(beat(9));
  await settle();
  expect([link.isCalled, got, seen]).toEqual([true, [], [9]]);
  link.admit();
  link.send(beat(3));
  link.flush();
  await settle();
  link.send(beat(4));
  await settle();
  expect(got).toEqual([1, 2, 3, 4]);
});

it('the end of a call is reported, after what delays it', async () => {
  const delay = Promise.withResolvers<void>();
  const [{ link, seen }, { ours, its }] = [placed(() => delay.promise), agent()];
  link.attach(ours);
  link.admit();
  its.close();
  await settle();
  expect(seen).toEqual([]);
  delay.resolve();
  await settle();
  expect(seen).toEqual(['clean end', 'gone']);
});

it('the end of a forgotten call is not reported, and the next call takes its place', async () => {
  const { link, seen } = placed();
  const [first, second] = [agent(), agent()];
  link.attach(first.ours);
  link.forget();
  first.its.close();
  await settle();
  expect([link.isCalled, seen]).toEqual([false, []]);
  link.attach(second.ours);
  link.admit();
  link.send(beat(1));
  await settle();
  expect([first.got, second.got, seen]).toEqual([['end'], [1], []]);
});

it('a link that nobody has called is gone when it is closed, and whoever calls later is sent away', async () => {
  const [{ link, seen }, { ours, got }] = [placed(), agent()];
  link.close();
  await settle();
  expect(seen).toEqual(['gone']);
  link.attach(ours);
  await settle();
  expect(got).toEqual(['end']);
});

it('a link that was called is gone only when its call has ended', async () => {
  const [{ link, seen }, { ours, got }] = [placed(), agent()];
  link.attach(ours);
  link.close();
  expect(seen).toEqual([]);
  await settle();
  expect([got, seen]).toEqual([['end'], ['clean end', 'gone']]);
  const other = placed();
  const silent = agent();
  other.link.attach(silent.ours);
  other.link.abandon();
  await settle();
  expect(other.seen).toEqual(['clean end', 'gone']);
});
