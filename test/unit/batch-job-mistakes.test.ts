/** Mistakes in the jobs of a batch file: where each stands, and what to write. */
import { expect, it } from 'vitest';
import { usageError } from '../../launcher/model/usage-error.ts';
import { mistakeIn } from '../rig/batch-files.ts';

const job = 'jobs:\n  - name: a\n    command: x\n';

const refuseOne = (words: readonly string[]) => {
  if (words.includes('--refused')) throw usageError('unknown option --refused', 'did you mean --fold?');
};

/** Lines of a job whose first one is line 4 of its file. */
const jobs: readonly (readonly [string, string])[] = [
  ['commands: [y]', '4:15+3 the job has a command and commands | leave one of them out'],
  ['comand: y', '4:5+6 "comand" is no key of a job | did you mean "command"?'],
  ['partition: short', '4:5+9 "partition" is no key of a job | for Slurm alone: write slurm: [--partition=...]'],
  ['mem-per-cpu: 2G', '4:5+11 "mem-per-cpu" is no key of a job | write mem: 200G, which counts on each host'],
  ['nodes: 2\nnodes: 3', '5:5+5 "nodes" appears twice: first in line 4 | leave one of them'],
  [
    'time: 1h\nmax_duration: 2h',
    '5:5+12 "max_duration" appears twice: first in line 4 (as "time") | leave one of them',
  ],
  ['node: 2', '4:5+4 "node" is no key of a job | did you mean "nodes"?'],
  ['Nodes: 2', '4:5+5 "Nodes" is no key of a job | did you mean "nodes"?'],
  [
    'zzzzzz: 2',
    '4:5+6 "zzzzzz" is no key of a job | known: name, command, commands, ntasks, nodes, ntasks_per_node, gpus, gpus_per_node, gpus_per_task, cpus_per_task, mem, resources, hosts, exclude, exclusive, time_limit, working_dir, env, env_from, priority, array, after, retry, requeue, signal, hold, output, options, slurm',
  ],
  ['priority: 101', '4:15+3 "priority" is 101 | write a whole number from 0 to 100'],
  ['priority: high', '4:15+4 "priority" is "high" | write a whole number from 0 to 100'],
  ['hold: yes', '4:11+3 "hold" is "yes" | write true or false'],
  ['exclusive: 1', '4:16+1 "exclusive" is 1 | write true or false'],
  ['nodes: two', '4:12+3 "nodes" is "two" | write a whole number from 1 to 131072'],
  ['nodes: 0', '4:12+1 "nodes" is 0 | write a whole number from 1 to 131072'],
  ['nodes: 1.5', '4:12+3 "nodes" is 1.5 | write a whole number from 1 to 131072'],
  ['nodes: 2-4', '4:12+3 "nodes" is "2-4" | write a whole number from 1 to 131072'],
  ['nodes:', '4:5+5 "nodes" has no value | write a value, or leave the key out'],
  ['nodes: [2]', '4:12+3 "nodes" is a list | write a whole number from 1 to 131072'],
  [
    'working_dir: ~/x',
    '4:18+3 "~/x" begins with "~" | write an absolute path, or one below the directory of the batch: no shell reads it',
  ],
  ['working_dir: "a\\0b"', '4:18+6 the path holds a null character | remove it'],
  ['resources: []', '4:16+2 "resources" is a list | write a map: { gpu: H100:8, memory: 200GB.., cpu: 16.. }'],
  ['retry: [error]', '4:12+7 "retry" is a list | write a map: { on_events: [error, interruption], max_retries: 2 }'],
  ['resources: { gpu: [] }', '4:23+2 "gpu" is a list | write gpu: H100:8'],
  ['array: { lr: [1], exclude: [[1]] }', '4:33+3 exclude has a list in it | write [{ lr: 0.1, seed: 2 }]'],
  ['type: task', '4:5+4 "type" is no key of a job | leave it out: every job is a task'],
  ['env: 3', '4:10+1 "env" is 3 | write a map: { NCCL_DEBUG: INFO }'],
  [
    'time_limit: 60',
    '4:17+2 "time_limit" is 60 | a number alone is ambiguous: write 60m for minutes, as Slurm reads it, or 60s for seconds',
  ],
  [
    'time_limit: 12:30',
    '4:17+5 "time_limit" is "12:30" | this is ambiguous: write 12m30s for minutes and seconds, as Slurm reads it, or 12h30m for hours and minutes',
  ],
  [
    'time_limit: 1 hour',
    '4:17+6 "time_limit" is "1 hour" | write a duration such as 90s, 15m, 12h, 1h30m, 2d, 12:00:00 or 1-12:00:00',
  ],
  ['time_limit: 25d', '4:17+3 "time_limit" is "25d" | write more than 0 s, and at most 24d'],
  ['time_limit: 0s', '4:17+2 "time_limit" is "0s" | write more than 0 s, and at most 24d'],
  [
    'mem: 2000',
    '4:10+4 "mem" is 2000 | a number alone is ambiguous: write 2000M for MiB, as Slurm reads it, or 2000G for GiB',
  ],
  ['mem: 0', '4:10+1 "mem" is 0 | leave it out; exclusive: true gives a job all memory of its hosts'],
  ['mem: 2 GB', '4:10+4 "mem" is "2 GB" | write a size with its unit, such as 200G, 512M or 1.5T'],
  ['mem: 0G', '4:10+2 the memory is "0G" | write a whole number of bytes above 0, such as 512M or 200G'],
  ['mem: 20X', '4:10+3 "mem" is "20X" | write a size with its unit, such as 200G, 512M or 1.5T'],
  [
    'resources: { gpu: H100:80GB:8 }',
    '4:23+11 "gpu" is "H100:80GB:8" | write a number of GPUs, or their model and number: H100:8',
  ],
  ['resources: { disk: 200GB }', '4:18+4 "disk" is no key of resources | known: gpu, memory, cpu'],
  [
    'resources: { memory: ..200GB }',
    '4:26+7 "memory" is "..200GB" | write a size such as 200GB, or at least so much: 200GB..',
  ],
  [
    'resources: { memory: 2G }\nmem: 2G',
    '5:10+2 mem: 2G and resources.memory: 2G say the same twice | leave one of them out',
  ],
  ['resources: { cpu: x }', '4:23+1 "cpu" is "x" | write a number of processors, or at least so many: 16..'],
  [
    'resources: { cpu: 16 }\nntasks: 4',
    '4:16+11 "cpu" counts the processors of a host, and 4 ranks go on any number of hosts | write cpus_per_task:, or nodes:',
  ],
  ['resources: 8', '4:16+1 "resources" is 8 | write a map: { gpu: H100:8, memory: 200GB.., cpu: 16.. }'],
  [
    'ntasks: 16\nnodes: 3\nntasks_per_node: 4',
    '4:13+2 16 ranks on 3 hosts at 4 on each: 3 x 4 = 12 | write nodes: 4, or 12 ranks, or leave one of the three out',
  ],
  [
    'ntasks: 16\nnodes: 3\nntasks_per_node: 5',
    '4:13+2 16 ranks on 3 hosts at 5 on each: 3 x 5 = 15 | write 15 ranks, or leave one of the three out',
  ],
  [
    'ntasks: 10\nntasks_per_node: 4',
    '4:13+2 10 ranks at 4 on each host leave 2 for the last one: 3 x 4 = 12 | write 12 ranks, or nodes: 3 in place of the number on each host',
  ],
  ['ntasks: 2\nnodes: 3', '4:13+1 2 ranks on 3 hosts leave 1 of them without one | write nodes: 2'],
  [
    'ntasks_per_node: 4\ngpus_per_node: 8',
    '4:22+1 4 ranks and 8 GPUs on each host | each rank has one GPU: write 8 for both, or leave ntasks_per_node out',
  ],
  ['ntasks: 4\ngpus: 8', '4:13+1 4 ranks and 8 GPUs | each rank has one GPU: write 8 for both, or leave ntasks out'],
  ['gpus: 8\ngpus_per_node: 0', '5:20+1 gpus: 8 and gpus_per_node: 0 contradict each other | leave one of them out'],
  [
    'gpus_per_node: 8\nresources: { gpu: 4 }',
    '5:23+1 gpus_per_node: 8 and resources.gpu: 4 contradict each other | leave one of them out',
  ],
  [
    'gpus_per_node: A100:8\nresources: { gpu: H100:8 }',
    '5:23+6 gpus_per_node: A100:8 and resources.gpu: H100:8 contradict each other | leave one of them out',
  ],
  [
    'gpus_per_task: 2',
    '4:20+1 a rank wants 2 GPUs | each rank has one GPU: write ntasks for the number of GPUs, and leave gpus_per_task out',
  ],
  [
    'gpus: 9\nnodes: 2\ngpus_per_node: 4',
    '4:11+1 9 ranks on 2 hosts at 4 on each: 2 x 4 = 8 | write 8 ranks, or leave one of the three out',
  ],
  [
    'nodes: 131072\nntasks_per_node: 65536',
    '4:12+6 131072 hosts at 65536 ranks on each are 8589934592 ranks | at most 16777216 are possible; look for a digit too many',
  ],
  ['gpus: many', '4:11+4 "gpus" is "many" | write a number of GPUs, or their model and number: H100:8'],
  ['gpus: 20000000', '4:11+8 "gpus" is 20000000 | write a whole number from 0 to 16777216'],
  ['hosts: "node[1-4"', '4:17+4 the "[" of a range is not closed | write node[1-8] or node[01-04,07]'],
  [
    'hosts: node1:8',
    '4:12+7 "node1:8" has a number of slots | write the name alone: slots and users stand in the hostfile',
  ],
  ['hosts: me@node1', '4:12+8 "me@node1" has a user | write the name alone: slots and users stand in the hostfile'],
  [
    'hosts: [node1, "no de"]',
    '4:21+5 "no de" is not a host name | a host name has letters, digits, dots, dashes and underscores and does not begin with a dash',
  ],
  [
    'hosts: node[1-9999999]',
    '4:12+15 node[1-9999999] names 9999999 hosts | at most 131072 are possible; look for a digit too many',
  ],
  [
    'hosts: node[1-2]\nnodes: 3',
    '4:12+9 the job wants 3 hosts, and "hosts" names 2 | name more hosts, or leave hosts out',
  ],
  [
    'hosts: node[1-2]\nexclude: node[1-2]',
    '4:12+9 the job wants 1 host, and "hosts" names none beside those of exclude | name more hosts, or leave hosts out',
  ],
  ['hosts: ""', '4:12+2 "hosts" is "" | write host names: node[1-4],gpu7, or a list of them'],
  [
    'env: { 1A: x }',
    '4:12+2 "1A" is no name of a variable | a name has letters, digits and underscores and does not begin with a digit',
  ],
  ['env: { A: }', '4:12+1 "A" has no value | write one value'],
  ['env: { A: [1] }', '4:15+3 "A" is a list | write one value'],
  ['env: [A=1, A=2]', '4:16+3 "A" has a value already | leave one of them'],
  [
    'export: ALL',
    '4:13+3 "ALL" of sbatch has no meaning here | write the names of the variables that are passed on: env_from: [TOKEN]',
  ],
  [
    'export: ALL,A=1',
    '4:13+3 "ALL" of sbatch has no meaning here | write the names of the variables that are passed on: env_from: [TOKEN]',
  ],
  ['env_from: [A B]', '4:16+3 a value of "env_from" is "A B" | write names of variables: [TOKEN]'],
  ['env: { A: "a\\0" }', '4:15+5 "A" holds a null character | no variable can hold one'],
  ['signal: USR1@120', '4:13+8 the signal comes ahead of a time limit, and the job has none | add time_limit: 12h'],
  [
    'time: 1m\nsignal: USR1@120',
    '5:13+8 the signal comes 120 s ahead of a time limit of 60 s | write fewer seconds than the time limit has',
  ],
  ['time: 1h\nsignal: USR3@12', '5:13+7 "USR3" is no signal | did you mean USR1@12?'],
  ['time: 1h\nsignal: 99@12', '5:13+5 "99" is no signal | write a signal and seconds: USR1@120'],
  ['signal: "@"', '4:13+3 "signal" is "@" | write a signal and seconds: USR1@120'],
  ['output: "%q.out"', '4:14+2 "%q" means nothing in the name of a file | known: %x %j %a %A %t %n %N %r %%'],
  [
    'output: "%X.out"',
    '4:14+2 "%X" means nothing in the name of a file | did you mean %x? Known: %x %j %a %A %t %n %N %r %%',
  ],
  ['output: "100%"', '4:13+6 the name of a file ends with "%" | write %%'],
  ['retry: 3', '4:12+1 "retry" is 3 | write a map: { on_events: [error, interruption], max_retries: 2 }'],
  [
    'retry: { on_events: [eror] }',
    '4:26+4 a value of "on_events" is "eror" | did you mean error? Known: error, interruption',
  ],
  [
    'retry: { on_events: [no-capacity] }',
    '4:26+11 a value of "on_events" is "no-capacity" | write one of error, interruption',
  ],
  ['retry: { on_events: [error] }', '4:25+7 errors are retried, and nothing says how often | add max_retries: 2'],
  [
    'retry: { on_events: [interruption], max_retries: 2 }',
    '4:54+1 errors have retries, and on_events has no error | add error to on_events',
  ],
  [
    'retry: { on_events: [error], max_retries: 1, max_interruptions: 3 }',
    '4:69+1 interruptions have retries, and on_events has no interruption | leave one of them out',
  ],
  [
    'retry: { delay: 30 }',
    '4:21+2 "delay" is 30 | a number alone is ambiguous: write 30m for minutes, as Slurm reads it, or 30s for seconds',
  ],
  ['retry: { delay: 30d }', '4:21+3 "delay" is "30d" | write more than 0 s, and at most 24d'],
  ['retry: { unless_exit: [0] }', '4:28+1 a value of "unless_exit" is 0 | write a whole number from 1 to 255'],
  ['retry: { on_oom: yes }', '4:22+3 "on_oom" is "yes" | write one of stop, retry'],
  ['retry: { max_retry: 2 }', '4:14+9 "max_retry" is no key of retry | did you mean "max_retries"?'],
  [
    'requeue: false\nretry: { max_interruptions: 3 }',
    '5:33+1 interruptions have retries, and requeue is false | leave one of them out',
  ],
  [
    'requeue: true\nretry: { max_interruptions: 0 }',
    '4:14+4 requeue is true, and retry leaves interruptions out | leave one of them out',
  ],
  ['options: [-H, node1]', '4:15+2 the batch itself decides -H | write hosts: node[1-4]'],
  [
    'options: [--hostfile=x]',
    '4:15+12 the batch itself decides --hostfile=x | ncclrun batch --hostfile FILE gives it to all jobs',
  ],
  ['options: [-n4]', '4:15+3 the batch itself decides -n4 | write ntasks: 16'],
  ['options: [--output, dir=x]', '4:15+8 the batch itself decides --output | write output: FILE'],
  ['options: [--timeout, 5]', '4:15+9 the batch itself decides --timeout | write time_limit: 12h'],
  ['options: --quiet', '4:14+7 "options" is "--quiet" | write a list of options of ncclrun: [--on-hang, restart]'],
  ['options: [--on-hang, restart, --]', '4:35+2 options end before the program | leave "--" out'],
  [
    'slurm: [partition=short]',
    '4:13+15 a value of "slurm" is "partition=short" | write a list of options of sbatch: [--partition=short]',
  ],
  [
    'slurm: --partition=short',
    '4:12+17 "slurm" is "--partition=short" | write a list of options of sbatch: [--partition=short]',
  ],
  ['options: [--refused]', '4:15+9 unknown option --refused | did you mean --fold?'],
  ['array: 5', '4:12+1 "array" is 5 | write "0-4" for 5 tasks, or "5-5" for the one with the number 5'],
  [
    'array: ""',
    '4:12+2 "array" is "" | write a range such as "0-15" or "0-15%4", or a map of words and values: { lr: [0.1, 0.03] }',
  ],
  [
    'array: 0-',
    '4:12+2 "0-" is no range of numbers | write a range such as 0-15, 0-30:2 or 1,3,7, and a limit behind it: 0-15%4',
  ],
  ['array: 5-2', '4:12+3 5-2 runs backwards | write 2-5'],
  ['array: 0-8:0', '4:12+5 the step is 0 | write 0-8:1'],
  ['array: 0-15%0', '4:16+2 "0" after % is no number of tasks | write how many tasks may run at once: 0-15%4'],
  ['array: 0-15%x', '4:16+2 "x" after % is no number of tasks | write how many tasks may run at once: 0-15%4'],
  [
    'array: 0-15,,17',
    '4:12+8 a number is missing | write a range such as 0-15, 0-30:2 or 1,3,7, and a limit behind it: 0-15%4',
  ],
  [
    'array: 0-1000000',
    '4:12+9 the array has more than 100000 tasks | at most 100000 are possible; look for a digit too many',
  ],
  [
    'array: 99999999',
    '4:12+8 "array" is 99999999 | write "0-99999998" for 99999999 tasks, or "99999999-99999999" for the one with the number 99999999',
  ],
  ['array: "99999999"', '4:13+8 the number 99999999 is too large | at most 9999999 is possible'],
  [
    'array: [1, 2]',
    '4:12+6 "array" is a list | write a range such as "0-15", numbers in a text, "1,3,7", or a map: { lr: [0.1, 0.03] }',
  ],
  ['array: {}', '4:12+2 the array has no words | write { lr: [0.1, 0.03], seed: 1..3 }'],
  ['array: { max_parallel: 2 }', '4:12+19 the array has no words | write { lr: [0.1, 0.03], seed: 1..3 }'],
  ['array: { lr: [] }', '4:18+2 "lr" is an empty list | write a list of values, [0.1, 0.03], or a range, 1..8'],
  ['array: { lr: [0.1, 0.1] }', '4:24+3 "0.1" appears twice | leave one of them'],
  ['array: { lr: [[1]] }', '4:19+3 a value of "lr" is a list | write a list of values, [0.1, 0.03], or a range, 1..8'],
  ['array: { lr: }', '4:14+2 "lr" has no value | write a list of values, [0.1, 0.03], or a range, 1..8'],
  [
    'array: { "l r": [1] }',
    '4:14+5 "l r" is no word of an array | a word of an array has letters, digits and underscores and does not begin with a digit',
  ],
  ['array: { index: [1] }', '4:14+5 "index" means something in every array | choose another word'],
  [
    'array: { lr: [1], LR: [2] }',
    '4:23+2 "LR" and "lr" differ in capitals alone | choose other words: their variables are in capitals',
  ],
  ['array: { seed: 3..1 }', '4:20+4 3..1 runs backwards | write 1..3'],
  ['array: { seed: 1..9:0 }', '4:20+6 the step is 0 | write 1..9'],
  [
    'array: { seed: 1..1000000 }',
    '4:20+10 the array has more than 100000 tasks | at most 100000 are possible; look for a digit too many',
  ],
  [
    'array: { a: 1..1000, b: 1..1000 }',
    '4:12+26 the array has 1000000 tasks | at most 100000 are possible; look for a digit too many',
  ],
  ['array: { lr: [0.1], exclude: [{ lx: 0.1 }] }', '4:37+2 "lx" is no word of the array | did you mean "lr"?'],
  ['array: { lr: [0.1], exclude: [{ lr: 0.2 }] }', '4:41+3 no value of "lr" is 0.2 | did you mean "0.1"?'],
  ['array: { lr: [0.1], exclude: [{ lr: 0.10 }] }', '4:34+14 exclude leaves no task | exclude fewer values'],
  ['array: { lr: [0.1], exclude: [{}] }', '4:35+2 an empty map excludes every task | write { lr: 0.1 }'],
  ['array: { lr: [0.1], exclude: 3 }', '4:34+1 "exclude" is 3 | write a list of maps: [{ lr: 0.1, seed: 2 }]'],
  ['array: { lr: [0.1], max-parallel: 0 }', '4:39+1 "max-parallel" is 0 | write a whole number from 1 to 100000'],
  ['array: { lr: [0.1], max_fails: x }', '4:36+1 "max_fails" is "x" | write a whole number from 1 to 100000'],
  ['after: b', '4:12+1 no job has the name "b" | did you mean "a"?'],
  ['after: [aa]', '4:13+2 no job has the name "aa" | did you mean "a"?'],
  ['after: a', '4:12+1 "a" waits for itself | leave it out'],
  ['after: A B', '4:12+3 "A B" is no name of a job | write names of jobs, as in after: [prep, train]'],
  [
    'after: 3',
    '4:12+1 "after" is 3 | write names of jobs: [prep], { prep: ok }, or in the words of Slurm afterok:prep,afterany:train',
  ],
  [
    'after: [[b]]',
    '4:13+3 a value of "after" is a list | write names of jobs: [prep], { prep: ok }, or in the words of Slurm afterok:prep,afterany:train',
  ],
  [
    'after: { b: okay }',
    '4:17+4 "b" is "okay" | write one of ok, any, notok, start, each, afterok, afterany, afternotok, after, aftercorr',
  ],
  [
    'after: { b: later }',
    '4:17+5 "b" is "later" | write one of ok, any, notok, start, each, afterok, afterany, afternotok, after, aftercorr',
  ],
  ['after: afterko:b', '4:12+7 "afterko" is no condition | did you mean "afterok"?'],
  ['after: afterok', '4:12+7 no job has the name "afterok" | known: a'],
  [
    'after: afterok:b?afterok:c',
    '4:21+1 with "?" one of the jobs would be enough | write a comma: a job waits for all that it names',
  ],
  [
    'after: after:b+10',
    '4:18+4 "+10" asks for a delay after the start of a job | write b alone, and sleep in the command',
  ],
  ['after: singleton', '4:12+9 "singleton" is no condition | known: afterok, afterany, afternotok, after, aftercorr'],
  ['after: "afterok:"', '4:12+10 the name of a job is missing | write names of jobs, as in after: [prep, train]'],
  ['after: [b, b]', '4:16+1 "b" appears twice | leave one of them: a job has one condition'],
  [
    'dependency: { b: ok }\nafter: c',
    '5:5+5 "after" appears twice: first in line 4 (as "dependency") | leave one of them',
  ],
  [
    'working_dir: ${{ job.name }}',
    '4:18+15 "working_dir" has a ${{ job.name }} in it | only command, env and output are filled in',
  ],
  [
    'options: ["--x=${{ job.name }}"]',
    '4:15+21 the batch itself decides --x=${{ job.name }} | write env: { NAME: value }, or env_from: [NAME]',
  ],
  [
    'env: { A: "${{ env.B }}", B: "${{ env.A }}" }',
    '4:39+5 variables are made of each other: env.A -> env.B -> env.A | write one of the values out',
  ],
  [
    'env: { A: "${{ env.A }}" }',
    '4:20+5 variables are made of each other: env.A -> env.A | write one of the values out',
  ],
  [
    'output: ${{ array.x }}.out',
    '4:13+14 "array.x" has no value: the job is no array | write array: { lr: [0.1, 0.03] }',
  ],
];

it.each(jobs)('the mistake in a job with %j is placed, named and has a remedy', (lines, expected) => {
  const text = `${job}${lines.replaceAll(/^/gmu, '    ')}\n`;
  expect(mistakeIn(text, refuseOne)).toBe(expected);
});
