/** Aggregators that a job starts on its hosts: where they are reached, and what is said of hosts on which they do not start. */
import { expect, it } from 'vitest';
import type { AggregateAnswer, AggregateOrder } from '../../control/messages/aggregator.ts';
import { aggregatorsText, startAggregators } from '../../launcher/job/aggregators.ts';
import type { Host } from '../../launcher/job/host.ts';

/** `answer` null: the host is lost before it answers. */
function played(name: string, answer: AggregateAnswer | null, nics: readonly object[] = []) {
  const orders: AggregateOrder[] = [];
  const aggregate = (order: AggregateOrder): Promise<AggregateAnswer | null> => {
    orders.push(order);
    return Promise.resolve(answer);
  };
  const host: Host = Object.assign(Object.create(null), { name, aggregate, hello: { nics } });
  return { host, orders };
}

const started = (...ports: readonly number[]): AggregateAnswer => ({ type: 'aggregating', ports, problem: null });

async function of(...hosts: Parameters<typeof startAggregators>[0]) {
  const problems: string[] = [];
  const found = await startAggregators(hosts, (message) => problems.push(message));
  return { found, problems };
}

it('each aggregator is known with its port, its host and the speed of the NIC that it is reached by', async () => {
  const nics = [
    { address: '10.0.0.9', speedMbps: 1 },
    { address: '10.0.0.1', speedMbps: 100_000 },
  ];
  const [a, b] = [played('a', started(4000, 4001), nics), played('b', started(4000))];
  const { found, problems } = await of(
    { host: a.host, address: '10.0.0.1', index: 0, count: 2 },
    { host: b.host, address: '10.0.0.2', index: null, count: 1 },
  );
  const onA = { index: 0, name: 'a', speedMbps: 100_000 };
  expect(found?.servers).toEqual([
    { address: '10.0.0.1', port: 4000, runsOn: onA },
    { address: '10.0.0.1', port: 4001, runsOn: onA },
    { address: '10.0.0.2', port: 4000, runsOn: { index: null, name: 'b', speedMbps: 0 } },
  ]);
  const { token = '' } = found ?? {};
  expect(token).toMatch(/^[0-9a-f]{32}$/u);
  expect([...a.orders, ...b.orders]).toEqual([
    { count: 2, address: '10.0.0.1', token },
    { count: 1, address: '10.0.0.2', token },
  ]);
  expect(problems).toEqual([]);
  expect(found === null ? '' : aggregatorsText(found)).toBe(
    '3 aggregators: 10.0.0.1 port 4000, 10.0.0.1 port 4001, 10.0.0.2 port 4000',
  );
});

it('a host on which none starts is named with the reason, and a lost host is left out', async () => {
  const failed = played('a', { type: 'aggregating', ports: [], problem: 'no port is free' });
  const lost = played('b', null);
  const hosts = [failed, lost].map(({ host }, index) => ({ host, address: `10.0.0.${index}`, index, count: 1 }));
  expect(await of(...hosts)).toEqual({ found: null, problems: ['a: no aggregator: no port is free'] });
  expect(await of()).toEqual({ found: null, problems: [] });
});
