/** Title, verdicts, communicators, hosts, and what the file holds. */
import type { PageData, PageVerdict } from '../launcher/replay/page-format.ts';
import { element, make, tableOf } from './dom.ts';
import type { Group } from './model.ts';

export function showAbout(data: PageData, groups: readonly Group[]): void {
  const job = data.jobId === null ? '' : ` of job ${data.jobId}`;
  element('title').textContent = `What each rank${job} did last`;
  const facts = [count(data.ranks.length, 'rank'), count(data.hosts.length, 'host')];
  element('subtitle').textContent = `${facts.join(' on ')}, read at ${new Date(data.takenAt).toISOString()}`;
  element('verdicts').replaceChildren(...verdicts(data));
  element('communicators').replaceChildren(communicators(groups));
  element('hosts').replaceChildren(hosts(data));
  element('contents').replaceChildren(...contents(data, groups).map((text) => make('li', {}, text)));
}

function count(number: number, what: string): string {
  return `${number} ${what}${number === 1 ? '' : 's'}`;
}

function verdicts({ verdicts: all }: PageData): HTMLElement[] {
  if (all.length > 0) return all.map(card);
  const text = 'The file names no failure: it was written while the job ran.';
  return [make('div', { class: 'card calm' }, make('p', {}, text))];
}

function card({ sentence, details, remedy }: PageVerdict): HTMLElement {
  const lines = details.length === 0 ? [] : [make('pre', {}, details.join('\n'))];
  const advice = remedy === null ? [] : [make('p', { class: 'remedy' }, `What to do: ${remedy}`)];
  return make('div', { class: 'card' }, make('p', {}, make('strong', {}, sentence)), ...advice, ...lines);
}

function communicators(groups: readonly Group[]): HTMLElement {
  const columns = [
    { title: 'Name', is: 'wide' },
    { title: 'Id' },
    { title: 'Ranks', is: 'number' },
    { title: 'Recorded by', is: 'wide' },
    { title: 'Operations', is: 'number' },
    { title: 'Not complete', is: 'number' },
    { title: 'Not the same', is: 'number' },
  ] as const;
  const rows = groups.map(({ about, operations }) => {
    const incomplete = operations.filter(({ missing }) => missing.length > 0).length;
    const different = operations.filter(({ differs }) => differs).length;
    return [
      about.name ?? '–',
      about.id,
      `${about.size}`,
      about.members,
      `${operations.length}`,
      incomplete === 0 ? '0' : { bad: `${incomplete}` },
      different === 0 ? '0' : { bad: `${different}` },
    ];
  });
  return rows.length === 0 ? make('p', { class: 'muted' }, 'No rank recorded a communicator.') : tableOf(columns, rows);
}

function hosts({ hosts: all, ranks }: PageData): HTMLElement {
  const columns = [
    { title: 'Host', is: 'wide' },
    { title: 'Ranks', is: 'number' },
    { title: 'Clock', is: 'wide' },
  ] as const;
  const rows = all.map(({ host, clock }, index) => [
    host,
    `${ranks.filter((one) => one.host === index).length}`,
    clock === null
      ? { bad: 'its agent did not answer' }
      : clock.errorNs === 0
        ? 'the same as the launcher’s'
        : `compared with the launcher’s to ± ${Math.ceil(clock.errorNs / 1000)} µs`,
  ]);
  return tableOf(columns, rows);
}

function contents(data: PageData, groups: readonly Group[]): string[] {
  const operations = groups.reduce((sum, group) => sum + group.operations.length, 0);
  const left = data.omitted > 0 ? [`The oldest ${data.omitted} operations are left out to keep the file small.`] : [];
  return [
    data.redacted
      ? 'Host names have been replaced by numbers.'
      : 'Names of hosts. ncclrun replay --redact replaces them.',
    `${operations} operations: what was called, sizes and times; none of the data itself. Names and ids of communicators.`,
    'What went wrong, in the words of the terminal: these may quote the last lines that a rank wrote to stderr.',
    'No environment variables, no command lines of ranks.',
    ...left,
    'The page loads nothing and stores nothing: it works without a network.',
  ];
}
