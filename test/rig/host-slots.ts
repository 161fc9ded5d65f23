/** A host of an allocation, as stated, for tests that mind only some of its properties. */
import type { HostSlots } from '../../launcher/model/types.ts';

export function hostNamed(name: string, properties: Partial<HostSlots> = {}): HostSlots {
  return {
    name,
    user: null,
    port: null,
    slots: 2,
    maxSlots: null,
    devices: null,
    local: false,
    origin: { kind: 'stated', text: '', host: '' },
    ...properties,
  };
}
