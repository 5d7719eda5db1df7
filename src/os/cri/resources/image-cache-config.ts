import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** Where the images that came with the machine are served from. */
export const ImageCacheConfig = defineResource({
  type: 'ImageCacheConfigs.cri.talos.dev',
  namespace: 'cri',
  displayType: 'ImageCacheConfig',
  columns: { Status: '{.status}', CopyStatus: '{.copyStatus}', Roots: '{.roots}' },
  spec: v.object({ status: v.string(), copyStatus: v.string(), roots: v.optional(v.array(v.string()), []) }),
})
