import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** Held while volumes are in use; torn down to let them all go. */
export const VolumeLifecycle = defineResource({
  type: 'VolumeLifecycles.block.talos.dev',
  namespace: 'runtime',
  displayType: 'VolumeLifecycle',
  spec: v.object({}),
})
