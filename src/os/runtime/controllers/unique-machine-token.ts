import { type Controller, defineController, exclusive, weak } from '../../../cosi/controller.ts'
import { declared, find } from '../../config/public.ts'
import { MachineConfig } from '../../config/resources/machine-config.ts'
import type { Kernel } from '../../kernel.ts'
import { SideroLinkConfig } from '../../siderolink/documents/siderolink.ts'
import { MetaKey, MetaLoad } from '../resources/meta.ts'
import { UniqueMachineToken } from '../resources/unique-machine-token.ts'

/** META tag 16: the unique token of this machine. */
const tag = '0x10'

/** The unique token of this machine, from META or the configuration; empty where none is set. A container has no META to wait for. */
export const observeMachineToken = ({ mode }: Pick<Kernel, 'mode'>): Controller =>
  defineController({
    name: 'runtime.UniqueMachineTokenController',
    effects: 'none',
    inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }), load: weak(MetaLoad), key: weak(MetaKey, { id: tag }) },
    outputs: { token: exclusive(UniqueMachineToken) },
    reconcile({ config, load, key, token }) {
      if (mode !== 'container' && !load.list().some(({ spec }) => spec.done)) return
      const given = find(declared(config.get('v1alpha1')), SideroLinkConfig)?.uniqueToken
      token.put('unique-machine-token', { token: key.get(tag)?.spec.value || (given ?? '') })
    },
  })
