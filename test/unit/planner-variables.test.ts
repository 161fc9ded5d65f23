/** NCCL's variables that the planner heeds. */
import { describe, expect, it } from 'vitest';
import { UnplannableError } from '../../control/planner/input/check.ts';
import { planCluster } from '../../control/planner/cluster/plan-cluster.ts';
import type { Cluster } from '../../control/planner/cluster/cluster.ts';
import { plannerVariables } from '../../control/planner/environment.ts';
import { eightGpus } from '../rig/eight-gpus.ts';

function planned(environment: Readonly<Record<string, string>>, hosts = 2): Cluster {
  return planCluster([{ system: eightGpus(), hosts, ranksPerHost: null }], plannerVariables(environment)).cluster;
}

function types(environment: Readonly<Record<string, string>>): string[] {
  const { gpus, nets } = planned(environment).shapes[0]?.routes.machine ?? { gpus: [], nets: [] };
  const routes = planned(environment).shapes[0]?.routes;
  const [one, other] = gpus;
  const [, net] = nets;
  if (routes === undefined || one === undefined || other === undefined || net === undefined) return [];
  return [routes.path(one, other).type, routes.path(one, net).type];
}

describe('variables that configure the planner', () => {
  it('the planner reports no variable by default', () => {
    expect(plannerVariables({}).settings).toEqual([]);
    expect(plannerVariables({ NCCL_CROSS_NIC: '' }).settings).toEqual([]);
  });

  it('NCCL_MIN_NCHANNELS and NCCL_MAX_NCHANNELS determine the number of channels', () => {
    const usual = planned({}).channels;
    expect(planned({ NCCL_MAX_NCHANNELS: '3' }).channels).toBe(3);
    const more = planned({ NCCL_MIN_NCHANNELS: '50' });
    expect(usual).toBeLessThan(50);
    expect(more.channels).toBe(50);
    expect(planned({ NCCL_MIN_NCHANNELS: '128' }).channels).toBe(64);
    expect(planned({ NCCL_MIN_NCHANNELS: '0x32' }).channels).toBe(50);
    expect(planned({ NCCL_MIN_NCHANNELS: '062' }).channels).toBe(50);
    for (const nothing of ['0', '-1']) expect(planned({ NCCL_MIN_NCHANNELS: nothing }).channels).toBe(usual);
    for (const few of ['0', '-1']) expect(planned({ NCCL_MAX_NCHANNELS: few }).channels).toBe(1);
    for (let channel = 0; channel < 50; channel++) {
      const roots = Array.from({ length: more.ranks }, (_, rank) => more.treeNeighbours(rank, channel)).filter(
        ({ parent }) => parent === null,
      );
      expect(roots).toHaveLength(1);
    }
  });

  it('NCCLRUN_MAX_SMS limits the channels, and the smaller limit applies', () => {
    expect(planned({ NCCLRUN_MAX_SMS: '3' }).channels).toBe(3);
    expect(planned({ NCCLRUN_MAX_SMS: '3', NCCL_MAX_NCHANNELS: '5' }).channels).toBe(3);
    expect(planned({ NCCLRUN_MAX_SMS: '5', NCCL_MAX_NCHANNELS: '3' }).channels).toBe(3);
    expect(plannerVariables({ NCCLRUN_MAX_SMS: '3' }).settings).toEqual(['NCCLRUN_MAX_SMS=3']);
    expect(() => plannerVariables({ NCCLRUN_MAX_SMS: '0' })).toThrow(
      'NCCLRUN_MAX_SMS=0: a whole number from 1 to 9999 is wanted',
    );
  });

  it('NCCL_CROSS_NIC=0 keeps each channel on one NIC', () => {
    expect(planned({}).ring.crossNic).toBe(2);
    const { ring, shapes } = planned({ NCCL_CROSS_NIC: '0' });
    expect(ring.crossNic).toBe(0);
    for (const { nets } of shapes[0]?.ring.channels ?? []) expect(nets?.[0]).toBe(nets?.[1]);
  });

  it('NCCL_P2P_LEVEL and similar variables restrict the paths', () => {
    expect(types({})).toEqual(['NVL', 'PXN']);
    expect(types({ NCCL_P2P_DISABLE: '1' })[0]).toBe('PHB');
    expect(types({ NCCL_P2P_LEVEL: 'LOC' })[0]).toBe('PHB');
    expect(types({ NCCL_P2P_LEVEL: '2' })[0]).toBe('NVL');
    expect(types({ NCCL_PXN_DISABLE: '1' })[1]).toBe('PHB');
    expect(types({ NCCL_NET_GDR_LEVEL: 'LOC' })[1]).toBe('PHB');
  });

  it.each([
    { NCCL_P2P_LEVEL: 'near' },
    { NCCL_MAX_NCHANNELS: '08' },
    { NCCL_MIN_NCHANNELS: '0xfg' },
    { NCCL_MIN_NCHANNELS: '9', NCCL_MAX_NCHANNELS: '8' },
    { NCCLRUN_MAX_SMS: '0' },
    { NCCLRUN_MAX_SMS: 'half' },
    { NCCL_MIN_NCHANNELS: '9', NCCLRUN_MAX_SMS: '8' },
    { NCCL_CROSS_NIC: '3' },
    { NCCL_NVB_DISABLE: 'yes' },
  ])('the planner rejects the variables %j', (environment) => {
    expect(() => plannerVariables(environment)).toThrow(UnplannableError);
  });
});
