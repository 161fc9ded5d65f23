/** What remains of the words of a shell that repeats the script that it was given. */
import { expect, it } from 'vitest';
import { withoutScript } from '../../launcher/remote/without-script.ts';

const script = 'cd /opt/ncclrun && exec node agent.cjs --link stdin --job 12345';

it('words without 20 letters and digits in a row of the script stay as they are', () => {
  const said = 'sh: cd: no such directory\nexec: node: not found';
  expect(withoutScript(said, script)).toBe(said);
  expect(withoutScript('', script)).toBe('');
  expect(withoutScript('cd /opt/ncclrun && exec nod', script)).toBe('cd /opt/ncclrun && exec nod');
});

it('the script in a line becomes three dots, however it is quoted', () => {
  expect(withoutScript(`sh: line 1: '${script}': not found`, script)).toBe('sh: line 1: … not found');
  expect(withoutScript('sh: "cd \\/opt\\/ncclrun \\&\\& exec node\\": bad', script)).toBe('sh: … bad');
});

it('20 letters and digits in a row are enough, at both ends of the script', () => {
  expect(withoutScript('at cd /opt/ncclrun && exec node', script)).toBe('at …');
  expect(withoutScript('by cjs --link stdin --job 12345!', script)).toBe('by …');
  expect(withoutScript('at js --link stdin --job 12345!', script)).toBe('at js --link stdin --job 12345!');
});

it('lines of the script alone go, also the short end of a folded one', () => {
  const said = `+ ${script}\ncd /opt/ncclrun && exec node agent.cjs --link\nstdin --job\n12345\n123\nfailed`;
  expect(withoutScript(said, script)).toBe('123\nfailed');
});

it('a short line goes only if another line repeats the script', () => {
  expect(withoutScript('stdin --job\nfailed', script)).toBe('stdin --job\nfailed');
});
