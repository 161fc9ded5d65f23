/** Mistakes in files of ncclrun batch: each has its place, the value seen and a remedy. */
import { expect, it } from 'vitest';
import { maximumBytes } from '../../launcher/batch/file/decode.ts';
import { mistakeIn } from '../rig/batch-files.ts';

const job = 'jobs:\n  - name: a\n    command: x\n';

/** A file, and `line:column+length message | remedy`. */
const files: readonly (readonly [string, string])[] = [
  ['', '1:1+1 the file has no jobs | write at least one job: jobs: [{ name: hello, command: hostname }]'],
  ['# nothing\n', '1:1+1 the file has no jobs | write at least one job: jobs: [{ name: hello, command: hostname }]'],
  ['- a\n', '1:1+3 the file is a list, and no map | write "jobs:" above the list'],
  [
    'just text\n',
    '1:1+9 the file is "just text", and no map | write at least one job: jobs: [{ name: hello, command: hostname }]',
  ],
  ['7\n', '1:1+1 the file is 7, and no map | write at least one job: jobs: [{ name: hello, command: hostname }]'],
  ['jobs:\n\t- name: a\n', '2:1+1 a tab indents the line | indent with blanks: YAML takes no tabs'],
  [
    'jobs: [1, 2\nname: b',
    '2:1+1 the indentation fits no line above | indent lines of one list or map alike, and close each [ and {',
  ],
  [
    'jobs: *nope\n',
    '1:7+5 no earlier value has the anchor "nope" | write &nope in front of an earlier value; a text that begins with * stands in quotes',
  ],
  [
    'jobs:\n  - name: a\n    command: x\n---\njobs: []\n',
    '4:1+3 a second document begins here | write one document: all jobs stand in one list',
  ],
  [
    '%YAML 1.1\n---\njobs:\n  - name: a\n    command: x\n',
    '1:1+9 the file says YAML 1.1 | remove the line: YAML 1.2 is read',
  ],
  ['jobs: !foo 3', '1:7+4 the file has a tag | put a text that begins with ! in quotes'],
  ['name: "x\n', '2:1+1 the quotes are not closed | write the closing quote'],
  [
    'name: b: c',
    '1:7+1 a key stands where a value goes on | put a text that has ": " in it in quotes, or check the indentation',
  ],
  ['name: @x', '1:7+1 a text begins with "@" | put the text in quotes'],
  [
    'name: "\\x"',
    '1:8+1 double quotes hold a backslash that means nothing | put the text in single quotes, which keep backslashes',
  ],
  ['{"jobs": []}}', '1:13+1 "}" is not expected here | check quotes, brackets and the indentation of the lines above'],
  [
    'jobs: {{ x }}\n',
    '1:8+5 a map stands where a key is expected | put a text that begins with "{" in quotes: "{{ x }}"',
  ],
  ['? [a]\n: 3\n', '1:3+3 the key is not a text | a key is a word, as in "nodes: 2"'],
  [
    'jobs:\n  - name: a\n    command: x\njobs:\n  - name: a\n    command: x\n',
    '4:1+4 "jobs" appears twice: first in line 1 | leave one of them',
  ],
  [
    '<<: {a: 1}\n',
    '1:1+2 "<<" is no key of a batch file | write defaults: for what all jobs share; an alias stands for a whole value',
  ],
  [
    'name: &a [*a]\n',
    '1:11+2 no earlier value has the anchor "a" | write &a in front of an earlier value; a text that begins with * stands in quotes',
  ],
  [
    'jobs: [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]\n',
    '1:39+16 the values are nested too deeply | at most 32 levels are possible',
  ],
  [
    'x: &a [0,0,0,0,0,0,0,0,0,0]\ny: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nz: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nu: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\n',
    '4:29+2 with *c the aliases stand for more than 10000 values | write defaults: for what all jobs share',
  ],
  [
    'version: 2\njobs:\n  - name: a\n    command: x\n',
    '1:10+1 the version is 2 | write version: 1, the one that this ncclrun reads',
  ],
  [
    'version: "1"\njobs:\n  - name: a\n    command: x\n',
    '1:10+3 the version is "1" | write version: 1, the one that this ncclrun reads',
  ],
  [
    'name: A b\njobs:\n  - name: a\n    command: x\n',
    '1:7+3 "name" is "A b" | write a-b: 1 to 63 of a-z, 0-9, - and _, the first of them no - or _',
  ],
  [
    'name: 7\njobs:\n  - name: a\n    command: x\n',
    '1:7+1 "name" is 7 | write 1 to 63 of a-z, 0-9, - and _, the first of them no - or _',
  ],
  ['name: a\n', '1:1+4 the file has no "jobs" | write jobs:'],
  ['jobs: []\n', '1:7+2 "jobs" is an empty list | write at least one job: - { name: hello, command: hostname }'],
  ['jobs:\n', '1:1+4 "jobs" has no value | write a list: each job begins with "- name:"'],
  ['jobs: { a: { command: x } }\n', '1:7+21 "jobs" is a map | write a list: each job begins with "- name:"'],
  ['jobs: [x]\n', '1:8+1 the job is "x" | write a map: { name: prep, command: python3 prep.py }'],
  ['jobs:\n  - command: x\n', '2:5+7 the job has no "name" | write name: prep'],
  ['jobs:\n  - name: a\n', '2:11+1 the job has no command | write command: python3 train.py'],
  ['jobs:\n  - name: a\n    command:\n', '3:5+7 "command" has no value | write a value, or leave the key out'],
  [
    'jobs:\n  - name: a\n    command: ""\n',
    '3:14+2 "command" is "" | write a text for sh -c, or a list: the program and its arguments',
  ],
  [
    'jobs:\n  - name: a\n    command: []\n',
    '3:14+2 "command" is an empty list | write a text for sh -c, or a list: the program and its arguments',
  ],
  [
    'jobs:\n  - name: a\n    command: [""]\n',
    '3:15+2 the name of the program is empty | write the program first: [python3, train.py]',
  ],
  [
    'jobs:\n  - name: a\n    command: { x: 1 }\n',
    '3:14+8 "command" is a map | write a text for sh -c, or a list: the program and its arguments',
  ],
  [
    'jobs:\n  - name: a\n    command: [[x]]\n',
    '3:15+3 a value of "command" is a list | write a text for sh -c, or a list: the program and its arguments',
  ],
  [
    'jobs:\n  - name: Train One\n    command: x\n',
    '2:11+9 "name" is "Train One" | write train-one: 1 to 63 of a-z, 0-9, - and _, the first of them no - or _',
  ],
  [
    'jobs:\n  - name: -a\n    command: x\n',
    '2:11+2 "name" is "-a" | write a: 1 to 63 of a-z, 0-9, - and _, the first of them no - or _',
  ],
  [
    'jobs:\n  - name: a\n    command: x\n  - name: a\n    command: y\n',
    '4:11+1 two jobs have the name "a": the first in line 2 | rename one of them',
  ],
  [
    'jobs:\n  - name: a\n    command: x\nnodes: 2\n',
    '4:1+5 "nodes" is no key of a batch file | "nodes" is a key of a job: write it there, or below defaults: for all jobs',
  ],
  [
    'jobs:\n  - name: a\n    command: x\non_falure: stop\n',
    '4:1+9 "on_falure" is no key of a batch file | did you mean "on_failure"?',
  ],
  [
    'jobs:\n  - name: a\n    command: x\non_failure: stopp\n',
    '4:13+5 "on_failure" is "stopp" | did you mean stop? Known: continue, finish, stop',
  ],
  [
    'jobs:\n  - name: a\n    command: x\nnotify: {a: 1}\n',
    '4:9+6 "notify" is a map | write a text for sh -c, or a list: the program and its arguments',
  ],
  [
    'defaults: 3\njobs:\n  - name: a\n    command: x\n',
    '1:11+1 "defaults" is 3 | write a map, such as { time_limit: 4h }',
  ],
  [
    'defaults: { name: a }\njobs:\n  - name: a\n    command: x\n',
    '1:13+4 "name" is no key of defaults | known: command, commands, ntasks, nodes, ntasks_per_node, gpus, gpus_per_node, gpus_per_task, cpus_per_task, mem, resources, hosts, exclude, exclusive, time_limit, working_dir, env, env_from, priority, array, after, retry, requeue, signal, hold, output, options, slurm',
  ],
  [
    'defaults: { nodes: x }\njobs:\n  - name: a\n    command: x\n',
    '1:20+1 "nodes" is "x" | write a whole number from 1 to 131072',
  ],
  [
    'defaults: { nodes: }\njobs:\n  - name: a\n    command: x\n',
    '1:13+5 "nodes" has no value | write a whole number from 1 to 131072',
  ],
  ['jobs: [[x]]\n', '1:8+3 the job is a list | write a map: { name: prep, command: python3 prep.py }'],
  ['defaults: []\njobs: []\n', '1:11+2 "defaults" is a list | write a map, such as { time_limit: 4h }'],
  ['jobs:\n  - name: a\n    commands: [x, ""]\n', '3:19+2 the command is empty | write command: python3 train.py'],
  ['jobs:\n  - name: a\n    command: "  "\n', '3:14+4 the command is empty | write command: python3 train.py'],
  [
    'jobs:\n  - name: a\n    command: [x, "a\\0"]\n',
    '3:18+5 the command holds a null character | no argument can hold one: remove it',
  ],
  [
    'jobs:\n  - { name: a, command: x, array: 0-59999 }\n  - { name: b, command: x, array: 0-59999 }\n',
    '3:35+7 the jobs up to here have 120000 tasks | a batch has at most 100000: write several batches',
  ],
  [
    'jobs:\n  - { name: a, command: x, after: c }\n  - { name: b, command: x, after: a }\n  - { name: c, command: x, after: b }\n',
    '2:35+1 3 jobs wait for each other: a -> c -> b -> a | remove one of these dependencies',
  ],
  [
    'jobs:\n  - { name: z, command: x, after: b }\n  - { name: a, command: x, after: b }\n  - { name: b, command: x, after: { a: any } }\n',
    '3:35+1 2 jobs wait for each other: a -> b -> a | remove one of these dependencies',
  ],
  [
    'jobs:\n  - { name: a, command: x, array: 0-3 }\n  - { name: b, command: x, array: 0-4, after: { a: each } }\n',
    '3:49+1 "b" has 5 tasks and "a" 4: each task waits for the one of its number | write arrays of the same length, or ok in place of each',
  ],
  [
    'jobs:\n  - { name: a, command: x, array: 0-3 }\n  - { name: b, command: x, array: 1-4, after: aftercorr:a }\n',
    '3:47+1 the tasks of "b" and "a" have different numbers: 1 and 0 | write the same range for both, or ok in place of each',
  ],
  [
    'jobs:\n  - { name: a, command: x }\n  - { name: b, command: x, array: 1-4, after: { a: each } }\n',
    '3:49+1 "a" is no array, and cannot be waited for task by task | write ok in place of each: it waits for all tasks',
  ],
  [
    'jobs:\n  - name: a\n    command: echo ${{ array.lr }}\n',
    '3:19+15 "array.lr" has no value: the job is no array | write array: { lr: [0.1, 0.03] }',
  ],
  [
    'jobs:\n  - name: a\n    command: echo ${{ array.lx }}\n    array: { lr: [1] }\n',
    '3:19+15 "array.lx" has no value | did you mean "array.lr"?',
  ],
  [
    'jobs:\n  - name: a\n    command: echo ${{ job.nam }}\n',
    '3:19+14 "job.nam" has no value | did you mean "job.name"?',
  ],
  [
    'jobs:\n  - name: a\n    command: echo ${{ 1 + 1 }}\n',
    '3:19+12 "1 + 1" is no name of a value | no code is run here: write one of job.name, batch.name; for the text itself $${{',
  ],
  [
    'jobs:\n  - name: a\n    command: echo ${{ job.name\n',
    '3:19+3 "${{" has no "}}" | write ${{ array.lr }}; for the text itself $${{',
  ],
  [
    'jobs:\n  - name: a\n    command: [echo, "${{ env.X }}"]\n    env: { Y: 1 }\n',
    '3:22+12 "env.X" has no value | did you mean "env.Y"?',
  ],
  [
    'jobs:\n  - name: a\n    command: [echo, "${{ env.TOKEN }}"]\n    env_from: TOKEN\n',
    '3:22+16 the value of TOKEN is known when the job starts | write $TOKEN in a command that a shell reads',
  ],
  [
    'jobs:\n  - name: a\n    command: |\n      first\n      echo ${{ secrets.X }}\n',
    '5:12+16 "secrets.X" has no value | known: job.name, batch.name',
  ],
];

it.each(files)('the mistake in %j is placed, named and has a remedy', (text, expected) => {
  expect(mistakeIn(text)).toBe(expected);
});

it('a circle of many jobs is named up to its 20th', () => {
  const list = Array.from(
    { length: 30 },
    (_, index) => `  - { name: j${index}, command: x, after: j${(index + 1) % 30} }`,
  );
  const path = Array.from({ length: 20 }, (_, index) => `j${index}`).join(' -> ');
  expect(mistakeIn(`jobs:\n${list.join('\n')}\n`)).toBe(
    `2:36+2 30 jobs wait for each other: ${path} -> ... -> j0 | remove one of these dependencies`,
  );
});

it('a variable that others make too long is refused', () => {
  const text = `${job}    env: { A: "${'x'.repeat(70_000)}", B: "\${{ env.A }}\${{ env.A }}" }\n`;
  expect(mistakeIn(text)).toContain('"B" has more than 131072 characters');
});

it('a file above its greatest size is refused before it is read', () => {
  expect(mistakeIn(new Uint8Array(maximumBytes + 1))).toBe(
    '- batch.yaml has 1.0 MiB, and a batch file at most 1 MiB | write many alike jobs as one job with an array, and data into files of their own',
  );
});

it.each<[string, Uint8Array, string]>([
  ['latin1', Buffer.from(`${job}    # caf\u00e9\n`, 'latin1'), '4:10+1 the byte 0xe9 is not UTF-8'],
  [
    'half a character',
    Buffer.concat([Buffer.from('# \ufffd '), Buffer.from([0xc3])]),
    '1:5+1 the byte 0xc3 is not UTF-8',
  ],
  ['UTF-16', Buffer.from(`\ufeff${job}`, 'utf16le'), '- batch.yaml is UTF-16, and not UTF-8'],
])('a file that is no UTF-8 but %s is refused', (_what, content, expected) => {
  expect(mistakeIn(content).split(' | ')[0]).toBe(expected);
});

it('a byte order mark does not move the place of a mistake', () => {
  expect(mistakeIn('\ufeffjobs: []\n')).toMatch(/^1:7\+2 /u);
});

const broken = () => {
  throw new TypeError('a bug');
};

it('an error that is no failure of the options passes unchanged', () => {
  expect(() => mistakeIn(`${job}    options: [--quiet]\n`, broken)).toThrow(TypeError);
});
