/** What hosts report alike before their ranks start. */
import { expect, it } from 'vitest';
import { StartNotices } from '../../launcher/job/start-notices.ts';

it('hosts that report the same share a line, in their order', () => {
  const notices = new StartNotices();
  for (const host of ['h10', 'h2', 'h1', 'h2']) notices.add(host, 'there is no /work');
  notices.add('h3', 'there is no /data');
  expect(notices.take()).toEqual(['h[1-2,10]: there is no /work', 'h3: there is no /data']);
  expect(notices.take()).toEqual([]);
});

it('a host that reports ever new things fills the notices', () => {
  const notices = new StartNotices();
  let kinds = 0;
  while (!notices.isFull && kinds < 100) notices.add('h1', `notice ${(kinds += 1)}`);
  expect(kinds).toBe(16);
  notices.take();
  expect(notices.isFull).toBe(false);
});
