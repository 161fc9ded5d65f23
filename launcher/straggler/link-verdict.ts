/** A slow link or NIC as a verdict. */
import type { Evidence, Verdict } from '../model/hang.ts';
import { blamedAs, plainVerdict } from '../hang/ends.ts';
import type { Link, LinkEnd, SlowLink } from './links.ts';

const MAX_LINKS = 8;

/** `counted`: what the kernels of both ends have counted. */
export function slowLinkVerdict({ nic, link, links, usual, others }: SlowLink, counted: readonly Evidence[]): Verdict {
  const busy = Math.round(link.busy * 100);
  const again = link.retransmits === 0 ? '' : `, and ${link.retransmits} packets were sent again`;
  const what =
    nic === null ? nameOf(link) : `the network of ${nic.host} (${nic.nic}), on each of its ${links.length} links`;
  const rest = others === 1 ? 'the other link' : `the median of ${others} others`;
  const message =
    `${what} carries ${rateText(link.bytesPerSecond)} while it has something to carry, ${rest} ${rateText(usual)}; ` +
    `it was busy ${busy} % of the time${again}${errorsText(counted)}`;
  const evidence = [...links.slice(0, MAX_LINKS).flatMap(evidenceOf), ...counted];
  const ends = nic === null ? [link.from, link.to] : [nic];
  return plainVerdict({
    kind: nic === null ? 'slow-link' : 'slow-nic',
    confidence: 'likely',
    message,
    blamed: ends.map(({ ranks, host }) => ({ ...blamedAs(ranks, host, 'inside'), because: evidence })),
    evidence,
  });
}

export function linkEndText({ nic, link }: SlowLink): string {
  return nic === null
    ? `${nameOf(link)} is no longer slower than others`
    : `the network of ${nic.host} (${nic.nic}) is no longer slower than others`;
}

function errorsText(counted: readonly Evidence[]): string {
  const facts = counted
    .slice(0, 3)
    .map(({ host, subject, value, unit }) => `${value} ${unit} of ${subject} on ${host}`);
  return facts.length === 0 ? '' : `; meanwhile ${facts.join(', ')}`;
}

function nameOf({ from, to }: Link): string {
  return `the link from ${endName(from)} to ${endName(to)}`;
}

function endName({ host, nic }: LinkEnd): string {
  return `${host} (${nic})`;
}

function evidenceOf(link: Link): Evidence[] {
  const about = { host: link.from.host, subject: `${endName(link.from)} to ${endName(link.to)}` };
  const evidence: Evidence[] = [
    { kind: 'edge-rate', ...about, value: Math.round(link.bytesPerSecond / 1e4) / 100, unit: 'MB/s' },
    { kind: 'edge-busy', ...about, value: Math.round(link.busy * 100), unit: '%' },
  ];
  if (link.retransmits > 0) evidence.push({ kind: 'retransmits', ...about, value: link.retransmits, unit: 'packets' });
  return evidence;
}

function rateText(bytesPerSecond: number): string {
  const [value, unit] = bytesPerSecond >= 1e9 ? [bytesPerSecond / 1e9, 'GB/s'] : [bytesPerSecond / 1e6, 'MB/s'];
  return `${value >= 100 ? Math.round(value) : value.toPrecision(2)} ${unit}`;
}
