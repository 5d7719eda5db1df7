import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** The persistent names udev assigns to a device. */
export const BlockSymlink = defineResource({
  type: 'BlockSymlinks.block.talos.dev',
  namespace: 'runtime',
  displayType: 'BlockSymlink',
  spec: v.object({ paths: v.optional(v.array(v.string()), []) }),
})
