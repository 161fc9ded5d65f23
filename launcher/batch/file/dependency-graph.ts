/** What can only be known of the jobs together: names that no job has, circles, arrays that wait task by task. */
import type { ArraySpec } from '../model/spec.ts';
import { placeOfMention, type Mention } from './dependencies.ts';
import { meant, type Source } from './source.ts';

interface Node {
  readonly name: string;
  readonly array: ArraySpec | null;
  readonly mentions: readonly Mention[];
}

/** Names of a circle that a message has room for. */
const shownNames = 20;

/** Throws a FailureError (usage) at the mention that cannot be meant. */
export function checkDependencies(jobs: readonly Node[], source: Source): void {
  const byName = new Map(jobs.map((job) => [job.name, job]));
  for (const job of jobs) {
    for (const mention of job.mentions) {
      const other = byName.get(mention.job);
      if (other === undefined) {
        throw source.mistake(
          placeOfMention(mention, source),
          `no job has the name "${mention.job}"`,
          meant(mention.job, [...byName.keys()].slice(0, 1000)),
        );
      }
      if (other === job)
        throw source.mistake(placeOfMention(mention, source), `"${job.name}" waits for itself`, 'leave it out');
      if (mention.each) checkEach(job, other, mention, source);
    }
  }
  const circle = circleIn(jobs, byName);
  if (circle === null) return;
  const names = circle.map(({ name }) => name);
  const [first = ''] = names;
  const [begin, rest] =
    names.length <= shownNames ? [names, []] : [names.slice(0, shownNames), names.slice(shownNames)];
  const path = [...begin, ...(rest.length === 0 ? [] : ['...']), first].join(' -> ');
  const mention = circle[0]?.mentions.find(({ job }) => job === (names[1] ?? first));
  const message = `${names.length} jobs wait for each other: ${path}`;
  throw source.mistake(
    mention === undefined ? { start: 0, end: 1 } : placeOfMention(mention, source),
    message,
    'remove one of these dependencies',
  );
}

function checkEach(job: Node, other: Node, mention: Mention, source: Source): void {
  const span = () => placeOfMention(mention, source);
  for (const { name, array } of [job, other]) {
    if (array !== null) continue;
    const remedy = 'write ok in place of each: it waits for all tasks';
    throw source.mistake(span(), `"${name}" is no array, and cannot be waited for task by task`, remedy);
  }
  const [own = [], others = []] = [job.array?.tasks, other.array?.tasks];
  if (own.length !== others.length) {
    const message = `"${job.name}" has ${own.length} tasks and "${other.name}" ${others.length}: each task waits for the one of its number`;
    throw source.mistake(span(), message, 'write arrays of the same length, or ok in place of each');
  }
  const differing = own.findIndex(({ index }, at) => index !== others[at]?.index);
  if (differing === -1) return;
  const message = `the tasks of "${job.name}" and "${other.name}" have different numbers: ${own[differing]?.index} and ${others[differing]?.index}`;
  throw source.mistake(span(), message, 'write the same range for both, or ok in place of each');
}

/** Jobs that wait in a circle, each for the next, from the first of the file on; null if there are none. */
function circleIn(jobs: readonly Node[], byName: ReadonlyMap<string, Node>): Node[] | null {
  const waits = new Map(jobs.map((job) => [job, job.mentions.length]));
  const followers = new Map<string, Node[]>();
  for (const job of jobs) {
    for (const { job: name } of job.mentions) {
      const list = followers.get(name) ?? [];
      list.push(job);
      followers.set(name, list);
    }
  }
  const free = jobs.filter(({ mentions }) => mentions.length === 0);
  for (let job = free.pop(); job !== undefined; job = free.pop()) {
    waits.delete(job);
    for (const follower of followers.get(job.name) ?? []) {
      const left = (waits.get(follower) ?? 0) - 1;
      waits.set(follower, left);
      if (left === 0) free.push(follower);
    }
  }
  // Every job that is left waits for another one that is left: whoever follows these comes round.
  const path: Node[] = [];
  const places = new Map<Node, number>();
  let job = jobs.find((one) => waits.has(one));
  while (job !== undefined && !places.has(job)) {
    places.set(job, path.length);
    path.push(job);
    job = job.mentions.map(({ job: name }) => byName.get(name)).find((one) => one !== undefined && waits.has(one));
  }
  if (job === undefined) return null;
  const circle = path.slice(places.get(job));
  const order = new Map(jobs.map((one, index) => [one, index]));
  const start = circle.reduce(
    (best, one, at) => ((order.get(one) ?? 0) < (order.get(circle[best] ?? one) ?? 0) ? at : best),
    0,
  );
  return [...circle.slice(start), ...circle.slice(0, start)];
}
