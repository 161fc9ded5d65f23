// An esbuild plugin that keeps out of a start what the package ssh2 loads and a connection of ours never uses. Each of these would cost it
// a millisecond or several.
const unused = {
  // Pageant, for Windows.
  child_process: 'module.exports = {};',
  // Names are resolved by node:net.
  dns: 'module.exports = {};',
  // Compression is never offered. The module makes an inflater when it is loaded, to have its class.
  zlib: `module.exports = { createInflate: () => ({ _handle: {} }), constants: {} };`,
  // No channel of ours carries files.
  './protocol/SFTP.js': 'exports.SFTP = class {};',
  // Turns passphrases into keys; nobody is asked for one.
  'bcrypt-pbkdf': `exports.pbkdf = () => { throw new Error('no passphrase is ever given'); };`,
  // Native code of its own, which is not built (package.json, allowScripts); looking for it goes through many folders.
  'cpu-features': `throw new Error('not installed');`,
  './crypto/build/Release/sshcrypto.node': `throw new Error('not built');`,
};

export const leanSsh2 = {
  name: 'lean-ssh2',
  setup(build) {
    const names = Object.keys(unused).map((name) => name.replaceAll('.', '\\.'));
    build.onResolve({ filter: new RegExp(`^(${names.join('|')})$`) }, ({ path, importer }) =>
      /[/\\]ssh2[/\\]lib[/\\]/.test(importer) ? { path, namespace: 'lean-ssh2' } : undefined,
    );
    build.onLoad({ filter: /./, namespace: 'lean-ssh2' }, ({ path }) => ({ contents: unused[path], loader: 'js' }));
  },
};
