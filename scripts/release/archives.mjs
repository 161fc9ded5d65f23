// Writes reproducible archives.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { need } from '../tool.mjs';

/** npm pack gives every file the same date and owner. */
export function packForNpm(directory, out) {
  need('npm', ['pack', '--ignore-scripts', '--silent', '--pack-destination', out], { cwd: directory });
}

/** Packs the directory `name` of `parent`. */
export function packForTar(parent, name, file, seconds) {
  const owner = ['--owner=0', '--group=0', '--numeric-owner', '--sort=name', '--format=ustar', `--mtime=@${seconds}`];
  need('tar', ['-C', parent, ...owner, '--mode=u=rwX,go=rX', '-I', 'zstd -12 -T0', '-cf', file, name]);
}

/** Writes SHA256SUMS for `sha256sum --check`. */
export function writeSums(out) {
  const names = readdirSync(out).filter((name) => /\.(tgz|zst)$/.test(name));
  const lines = names.toSorted().map(
    (name) =>
      `${createHash('sha256')
        .update(readFileSync(join(out, name)))
        .digest('hex')}  ${name}\n`,
  );
  writeFileSync(join(out, 'SHA256SUMS'), lines.join(''));
}
