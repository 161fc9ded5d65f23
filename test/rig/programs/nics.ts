/** Rank 0 prints the hosts of the communicator, as JSON, once its ranks have added a MiB. */
import { init } from 'ncclrun';

await using comm = await init();
const [sum] = await comm.allReduce(new Float32Array(1 << 18).fill(1));
if (comm.rank === 0) console.log(JSON.stringify({ sum, hosts: comm.hosts }));
