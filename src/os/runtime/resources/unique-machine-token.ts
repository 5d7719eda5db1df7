import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** A unique token of this machine. */
export const UniqueMachineToken = defineResource({
  type: 'UniqueMachineTokens.runtime.talos.dev',
  namespace: 'runtime',
  displayType: 'UniqueMachineToken',
  columns: { Token: '{.token}' },
  spec: v.object({ token: v.string() }),
})
