/**
 * Every rank joins the job's communicator and says who it is; together they count who is there.
 *
 *     npx ncclrun -n 4 examples/hello.ts
 */
import { init } from 'ncclrun';

await using comm = await init();

console.log(`hello from rank ${comm.rank} of ${comm.size}, number ${comm.localRank} on ${comm.hosts[comm.host]?.name}`);
const [present] = await comm.allReduce(Int32Array.of(1));
if (comm.rank === 0) console.log(`all ${present} are there`);
