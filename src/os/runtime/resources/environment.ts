import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** Environment variables of services. */
export const Environment = defineResource({
  type: 'Environments.runtime.talos.dev',
  namespace: 'runtime',
  displayType: 'Environment',
  aliases: ['env'],
  columns: { Variables: '{.variables}' },
  spec: v.object({ variables: v.optional(v.array(v.string()), []) }),
})
