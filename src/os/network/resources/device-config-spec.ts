import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** A network device as the machine configuration has it, its selector resolved. */
export const DeviceConfigSpec = defineResource({
  type: 'DeviceConfigSpecs.net.talos.dev',
  namespace: 'network',
  displayType: 'DeviceConfigSpec',
  sensitive: true,
  spec: v.object({ device: v.unknown() }),
})
