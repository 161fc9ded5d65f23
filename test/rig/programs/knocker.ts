/** node knocker.ts PORT FROM: connects to the port from that address without end, as fast as it can, and says nothing; tells its parent how many times. */
import { connect } from 'node:net';

const [port = '0', localAddress = '127.0.0.1'] = process.argv.slice(2);
const AT_ONCE = 200;
let made = 0;

function knock(): void {
  const socket = connect({ port: Number(port), host: '127.0.0.1', localAddress });
  socket.on('connect', () => {
    made += 1;
    if (made % 100 === 0) process.send?.(made);
  });
  socket.on('error', () => undefined);
  socket.on('close', knock);
}

process.on('disconnect', () => process.exit());
for (let index = 0; index < AT_ONCE; index += 1) knock();
