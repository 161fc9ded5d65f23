/** Has all hosts find out at once what they can with each other, in one job. */
import { randomBytes, randomInt } from 'node:crypto';
import * as v from 'valibot';
import type { PortRange } from '../../control/port-range.ts';
import { fileOf, machineOf, TOGETHER_VARIABLE, togetherAnswer, type TogetherOrder } from '../../control/together.ts';
import type { Finding, ReadHost } from '../doctor/finding.ts';
import { togetherFindings, type AnsweredHost } from '../doctor/together.ts';
import type { DoctorJobs } from './doctor-jobs.ts';
import { answersTogether } from './readings-of-hosts.ts';

/** Below the ports that systems give to outgoing connections. */
const PORTS: PortRange = { first: 20_000, last: 31_999 };

export async function lookedTogether(jobs: DoctorJobs, read: readonly ReadHost[]): Promise<Finding[]> {
  const order = orderFor(read, jobs.portRange ?? PORTS);
  const hosts = read.map(({ name }) => name);
  const answers = await answersTogether(jobs, hosts, ['--readings=together'], {
    exports: [`${TOGETHER_VARIABLE}=${JSON.stringify(order)}`],
  });
  const answered = answers.flatMap(({ name, answer }): AnsweredHost[] => {
    const parsed = v.safeParse(togetherAnswer, answer);
    return parsed.success ? [{ name, answer: parsed.output }] : [];
  });
  const [first] = hosts;
  // It has removed its file unless it was killed before it could.
  if (first !== undefined && !answered.some(({ name }) => name === first)) await removeFile(jobs, first, order);
  return togetherFindings(answered, order.port);
}

function orderFor(read: readonly ReadHost[], { first, last }: PortRange): TogetherOrder {
  return {
    sign: randomBytes(8).toString('hex'),
    port: randomInt(first, last + 1),
    hosts: read.map(({ name, readings: { system, reachable } }) => ({
      name,
      machine: machineOf(system),
      addresses: reachable,
    })),
  };
}

async function removeFile(jobs: DoctorJobs, host: string, order: TogetherOrder): Promise<void> {
  await jobs.run([host], ['rm', '-f', '--', fileOf(order)], {
    event: () => undefined,
    output: async () => undefined,
    result: async () => undefined,
  });
}
