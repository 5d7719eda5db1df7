import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** A device entry of the machine configuration, with its selector resolved. */
export const DeviceConfigSpec = defineResource({
  type: 'DeviceConfigSpecs.net.talos.dev',
  namespace: 'network',
  displayType: 'DeviceConfigSpec',
  sensitive: true,
  spec: v.object({ device: v.unknown() }),
})
