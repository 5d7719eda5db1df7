import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** Asks for the machine configuration to be looked for. */
export const AcquireConfigSpec = defineResource({
  type: 'AcquireConfigSpecs.v1alpha1.talos.dev',
  namespace: 'runtime',
  displayType: 'AcquireConfigSpec',
  spec: v.object({}),
})
