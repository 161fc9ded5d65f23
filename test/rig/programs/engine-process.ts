/** node engine-process.ts SOCKET JOB RANK: an engine in a process of its own; joins what its parent's messages name, until it is killed. */
import { EngineClient } from '../engine-client.ts';

const [path = '', jobId = '', rank = '0'] = process.argv.slice(2);
const client = await EngineClient.connect(path);
await client.hello(Number(rank), jobId);
process.on('message', (message: unknown) => {
  if (typeof message !== 'object' || message === null || !('id' in message) || typeof message.id !== 'string') return;
  const size = 'size' in message && typeof message.size === 'number' ? message.size : 0;
  const key = { id: message.id, epoch: 0, round: 0xffff_ffff };
  void client.join(key, size, Number(rank)).then(() => process.send?.('joined'));
  process.send?.('asked');
});
process.on('disconnect', () => process.exit());
process.send?.('ready');
