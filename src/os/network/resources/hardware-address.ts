import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { mac } from '../../values.ts'

/** The hardware address that identifies this machine. */
export const HardwareAddress = defineResource({
  type: 'HardwareAddresses.net.talos.dev',
  namespace: 'network',
  displayType: 'HardwareAddress',
  spec: v.object({ name: v.string(), hardwareAddr: mac }),
})
