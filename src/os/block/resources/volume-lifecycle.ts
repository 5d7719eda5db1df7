import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** Exists while volumes are in use. Tearing it down releases them all. */
export const VolumeLifecycle = defineResource({
  type: 'VolumeLifecycles.block.talos.dev',
  namespace: 'runtime',
  displayType: 'VolumeLifecycle',
  spec: v.object({}),
})

/** Id of the VolumeLifecycle. */
export const volumeLifecycleId = 'lifecycle'
