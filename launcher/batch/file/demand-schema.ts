/** Keys that say what a job needs at once. */
import * as v from 'valibot';
import { key, listOf, patternText, size, sizeRange, textOf, truth, wholeNumber } from './schema-parts.ts';

const maximumRanks = 2 ** 24;
const maximumNodes = 131_072;
const maximumOfHost = 65_536;

const gpusWanted = 'write a number of GPUs, or their model and number: H100:8';
const cpusWanted = 'write a number of processors, or at least so many: 16..';
const hostsWanted = 'write host names: node[1-4],gpu7, or a list of them';

const gpuCount = v.union(
  [wholeNumber(0, maximumRanks), patternText(/^[A-Za-z][A-Za-z0-9_.-]*:[0-9]{1,7}$/, gpusWanted)],
  gpusWanted,
);

const hostNames = v.union([textOf(hostsWanted), listOf(hostsWanted)], hostsWanted);

export const gpuEntries = {
  name: v.optional(textOf('write the model of the GPU, such as H100')),
  count: v.optional(wholeNumber(0, maximumRanks)),
};

/** dstack's, for each host. */
export const resourcesEntries = {
  gpu: v.optional(
    v.union(
      [
        wholeNumber(0, maximumRanks),
        patternText(/^(?:[0-9]{1,7}|[A-Za-z][A-Za-z0-9_.-]*(?::[0-9]{1,7})?)$/, gpusWanted),
        v.strictObject(gpuEntries, gpusWanted),
      ],
      gpusWanted,
    ),
  ),
  memory: v.optional(sizeRange),
  cpu: v.optional(
    v.union(
      [wholeNumber(1, maximumOfHost), patternText(/^[0-9]{1,5}(?:\.\.(?:[0-9]{1,5})?)?$/, cpusWanted)],
      cpusWanted,
    ),
  ),
};

export const demandEntries = {
  ntasks: key(wholeNumber(1, maximumRanks), 'Number of ranks'),
  nodes: key(wholeNumber(1, maximumNodes), 'Number of hosts'),
  ntasks_per_node: key(wholeNumber(1, maximumOfHost), 'Ranks on each host'),
  gpus: key(gpuCount, 'GPUs in all, one for each rank; 0: none'),
  gpus_per_node: key(gpuCount, 'GPUs on each host, one for each rank; 0: none'),
  gpus_per_task: key(wholeNumber(0, maximumOfHost), 'GPUs of each rank: 1, or 0 for none'),
  cpus_per_task: key(wholeNumber(1, maximumOfHost), 'Processors of each rank'),
  mem: key(size, 'Memory on each host, such as 200G'),
  resources: key(
    v.strictObject(resourcesEntries, 'write a map: { gpu: H100:8, memory: 200GB.., cpu: 16.. }'),
    'What each host must have, in the words of dstack',
  ),
  hosts: key(hostNames, 'Hosts that the job may use: node[1-4]'),
  exclude: key(hostNames, 'Hosts that the job does not use'),
  exclusive: key(truth, 'True if no other job runs on its hosts meanwhile'),
};
