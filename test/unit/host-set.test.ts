/** The hosts of an attempt: when all that its ranks need are up, what goes to which of them, and what becomes of spares. */
import { expect, it } from 'vitest';
import { makeFrame } from '../../control/messages/codec.ts';
import { FrameKind } from '../../control/messages/frame.ts';
import { HostSet } from '../../launcher/job/host-set.ts';
import type { Host } from '../../launcher/job/host.ts';

const frame = makeFrame(FrameKind.heartbeat, {});

function playedHosts(): (name: string) => {
  host: Host;
  seen: string[];
  state: (name: string, isOver?: boolean) => void;
} {
  return (name) => {
    const seen: string[] = [];
    const played = {
      name,
      state: { name: 'connecting' },
      isOver: false,
      connect: () => void seen.push('connect'),
      send: () => void seen.push('frame'),
      suspend: () => Promise.resolve(void seen.push('suspend')),
      resume: () => void seen.push('resume'),
      end: () => void seen.push('end'),
      close: () => Promise.resolve(void seen.push('close')),
    };
    const host: Host = Object.assign(Object.create(null), played);
    return {
      host,
      seen,
      state: (of, isOver = false) => void Object.assign(host, { state: { name: of }, isOver }),
    };
  };
}

/** Hosts a and b are needed, s and t are spares. */
function set() {
  const [a, b, s, t] = ['a', 'b', 's', 't'].map(playedHosts());
  if (a === undefined || b === undefined || s === undefined || t === undefined) throw new Error('four hosts');
  const hosts = new HostSet();
  const before: string[] = [];
  hosts.connect(
    [a.host, b.host],
    [s.host, t.host],
    () => {
      throw new Error('the hosts are played');
    },
    ({ name }) => before.push(name),
  );
  return { hosts, a, b, s, t, before, seen: () => [a, b, s, t].map(({ seen }) => seen.splice(0).join(' ')) };
}

it('needed hosts are connected at once, and spares when they are asked for', () => {
  const { hosts, s, before, seen } = set();
  expect([before, hosts.isSpare(s.host), seen()]).toEqual([['a', 'b'], false, ['connect', 'connect', '', '']]);
  hosts.connectSpares();
  expect([before, hosts.isSpare(s.host), seen()]).toEqual([['a', 'b', 's', 't'], true, ['', '', 'connect', 'connect']]);
});

it('the ranks may start when the last needed host is up, whatever spares do', () => {
  const { hosts, a, b, s, t } = set();
  hosts.connectSpares();
  expect([s, a, t, b].map(({ host }) => hosts.isUp(host))).toEqual([false, false, false, true]);
});

it('a frame goes to the needed hosts that run', () => {
  const { hosts, a, s, seen } = set();
  hosts.connectSpares();
  a.state('running');
  s.state('running');
  seen();
  hosts.send(frame);
  expect(seen()).toEqual(['frame', '', '', '']);
});

it('spares that are lost are named, and the hosts are over when all are, spares too', () => {
  const { hosts, a, b, s, t } = set();
  hosts.connectSpares();
  for (const one of [a, b, t]) one.state('ended', true);
  s.state('lost', false);
  expect([[...hosts.lostSpares], hosts.areOver]).toEqual([['s'], false]);
  s.state('lost', true);
  expect(hosts.areOver).toBe(true);
});

it('all hosts are suspended, resumed, ended and closed', async () => {
  const { hosts, seen } = set();
  hosts.connectSpares();
  seen();
  await hosts.suspend();
  hosts.resume();
  hosts.end();
  await hosts.close();
  expect(seen()).toEqual(Array(4).fill('suspend resume end close'));
});
